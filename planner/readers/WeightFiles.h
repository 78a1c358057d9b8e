// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "planner/readers/SafetensorsHeader.h"

#include <optional>
#include <string>
#include <vector>

namespace shardscope::planner {

/// The tensors of one network, in one safetensors file or in the shards of an index.
struct WeightFiles {
    std::string source; ///< what was named or found: the file or the index
    std::vector<std::string> files;
    std::vector<StoredTensor> tensors; ///< in the order of files and offsets
    std::vector<std::string> notes;
};

/// Opens a `.safetensors` file or a `.safetensors.index.json`. Of the data nothing is read. Errors: BadInput.
contract::Result<WeightFiles> openWeights(const std::string& path);

/// The weights that lie in a folder, if any: model.safetensors.index.json, model.safetensors, or one other file.
std::optional<std::string> findWeights(const std::string& folder);

/// Whether two tensors of the same dtype and shape hold the same bytes: small ones as a whole, large ones at many
/// places.
bool holdSameBytes(const WeightFiles& weights, const StoredTensor& first, const StoredTensor& second);

} // namespace shardscope::planner
