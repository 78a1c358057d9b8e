// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "planner/readers/onnx/OnnxFile.h"

#include <cstdint>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

namespace shardscope::planner {

struct OnnxShape {
    std::vector<std::int64_t> extents;
    bool isFloat = false;

    double elements() const;
};

/// The shapes of every value of a graph, for one sample length.
struct OnnxShapes {
    std::unordered_map<std::string, OnnxShape> values;
    std::int64_t batch = 1;        ///< samples that the graph was exported for
    std::int64_t sequence = 1;     ///< tokens of a sample; 1 for graphs without such an axis
    bool symbolicSequence = false; ///< the length may be chosen
    std::vector<std::string> notes;

    const OnnxShape* find(const std::string& value) const;
};

/// Gives symbolic axes of the inputs their sizes (the first axis is one sample, those of rank-4 inputs are 224 pixels,
/// the others `sequence`, 0: 512) and infers the rest with the onnx library. Values that it cannot infer are left out
/// and counted in the notes. Errors: BadInput.
contract::Result<OnnxShapes> inferShapes(const OnnxFile& file, std::int64_t sequence);

} // namespace shardscope::planner
