// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace shardscope::test {

struct TensorText {
    std::string name;
    std::string dtype = "F32";
    std::vector<std::int64_t> shape;
    char fill = 0; ///< every byte of its data
};

/// A safetensors file: the length, the header and the data.
std::string safetensorsText(const std::vector<TensorText>& tensors);
/// The same around a header that may be wrong.
std::string safetensorsWithHeader(std::string_view header, std::string_view data = {});

} // namespace shardscope::test
