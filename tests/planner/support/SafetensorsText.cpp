// SPDX-License-Identifier: GPL-3.0-or-later
#include "planner/support/SafetensorsText.h"

#include "planner/readers/SafetensorsHeader.h"

namespace shardscope::test {

std::string safetensorsWithHeader(std::string_view header, std::string_view data) {
    std::string text;
    for (std::uint64_t length = header.size(); text.size() < 8; length >>= 8)
        text += static_cast<char>(length & 0xff);
    return text.append(header).append(data);
}

std::string safetensorsText(const std::vector<TensorText>& tensors) {
    std::string header = R"({"__metadata__":{"format":"pt"})";
    std::string data;
    for (const TensorText& tensor : tensors) {
        std::int64_t bits = planner::dtypeBits(tensor.dtype);
        std::string shape;
        for (const std::int64_t extent : tensor.shape) {
            bits *= extent;
            shape += (shape.empty() ? "" : ",") + std::to_string(extent);
        }
        const std::size_t begin = data.size();
        data.append(static_cast<std::size_t>((bits + 7) / 8), tensor.fill);
        header += ",\"" + tensor.name + R"(":{"dtype":")" + tensor.dtype + R"(","shape":[)" + shape +
                  "],\"data_offsets\":[" + std::to_string(begin) + "," + std::to_string(data.size()) + "]}";
    }
    return safetensorsWithHeader(header + "}", data);
}

} // namespace shardscope::test
