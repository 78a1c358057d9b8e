// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "runtime/contract/Result.h"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace shardscope::planner {

/// One tensor of a safetensors file: https://github.com/huggingface/safetensors#format
struct StoredTensor {
    std::string name;
    std::string dtype; ///< "F32", "BF16", "I64", ...
    std::vector<std::int64_t> shape;
    std::int64_t elements = 0;
    std::int64_t begin = 0; ///< of its bytes, from the start of the file
    std::int64_t end = 0;
    std::int32_t file = 0; ///< index into WeightFiles::files
};

/// Bits of one element of a dtype, 0 when it is unknown.
int dtypeBits(std::string_view dtype);
/// Indices, masks and flags: what is no parameter whatever its name.
bool isIntegerDtype(std::string_view dtype);

/// Parses the text of a header. `dataBytes` is what follows the header in the file. Refused, by file and tensor: text
/// that is not a safetensors header, shapes that overflow, offsets that are out of range, overlap, leave holes, or do
/// not fit the shape.
contract::Result<std::vector<StoredTensor>> parseSafetensorsHeader(std::string_view header, std::int64_t dataBytes,
                                                                   const std::string& file);

/// Reads the header of a file and nothing else of it. Errors: BadInput.
contract::Result<std::vector<StoredTensor>> readSafetensorsHeader(const std::string& path);

} // namespace shardscope::planner
