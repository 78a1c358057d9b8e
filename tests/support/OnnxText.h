// SPDX-License-Identifier: GPL-3.0-or-later
// Writes the wire format of ONNX graphs by hand, right ones and wrong ones. Field numbers are those of onnx.proto.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace shardscope::test::onnx_text {

inline std::string varint(std::uint64_t value) {
    std::string bytes;
    for (; value >= 0x80; value >>= 7)
        bytes += static_cast<char>((value & 0x7f) | 0x80);
    return bytes + static_cast<char>(value);
}
inline std::string number(int field, std::int64_t value) {
    return varint(static_cast<std::uint64_t>(field) << 3) + varint(static_cast<std::uint64_t>(value));
}
inline std::string text(int field, std::string_view content) {
    return varint(static_cast<std::uint64_t>(field) << 3 | 2) + varint(content.size()) + std::string(content);
}

inline std::string tensor(std::string_view name, const std::vector<std::int64_t>& dims, std::string_view raw,
                          std::int64_t type = 1, std::string_view more = {}) {
    std::string bytes;
    for (const std::int64_t extent : dims)
        bytes += number(1, extent);
    bytes += number(2, type) + text(8, name);
    return text(5, bytes + (raw.empty() ? std::string() : text(9, raw)) + std::string(more));
}
/// Of a tensor whose elements are in another file.
inline std::string external(std::string_view location, std::string_view offset = {}, std::string_view length = {}) {
    const auto entry = [](std::string_view key, std::string_view value) {
        return text(13, text(1, key) + text(2, value));
    };
    return entry("location", location) + (offset.empty() ? "" : entry("offset", offset)) +
           (length.empty() ? "" : entry("length", length)) + number(14, 1);
}
inline std::string node(std::string_view type, const std::vector<std::string>& inputs,
                        const std::vector<std::string>& outputs, std::string_view name = {}) {
    std::string bytes;
    for (const std::string& input : inputs)
        bytes += text(1, input);
    for (const std::string& output : outputs)
        bytes += text(2, output);
    return text(1, bytes + text(3, name) + text(4, type));
}
/// Fixed extents; a negative one is a free axis named "n".
inline std::string value(int field, std::string_view name, const std::vector<std::int64_t>& extents,
                         std::int64_t type = 1) {
    std::string shape;
    for (const std::int64_t extent : extents)
        shape += text(1, extent < 0 ? text(2, "n") : number(1, extent));
    return text(field, text(1, name) + text(2, text(1, number(1, type) + text(2, shape))));
}
inline std::string input(std::string_view name, const std::vector<std::int64_t>& extents, std::int64_t type = 1) {
    return value(11, name, extents, type);
}
inline std::string output(std::string_view name) {
    return text(12, text(1, name));
}

inline std::string model(std::string_view graph, std::int64_t opset = 17) {
    return number(1, 8) + text(8, text(1, "") + number(2, opset)) + text(7, std::string(graph) + text(2, "g"));
}

/// y = x W, W of 4 x 8 elements in the file.
inline std::string linear() {
    return model(node("MatMul", {"x", "fc.weight"}, {"y"}, "/fc/MatMul") +
                 tensor("fc.weight", {4, 8}, std::string(128, '\1')) + input("x", {1, 3, 4}) + output("y"));
}

/// 5,000 layers of a product and a Relu: 10,000 nodes, 20 MB.
inline std::string tenThousandNodes() {
    std::string graph = input("x0", {1, 64, 32});
    for (int i = 0; i < 5000; ++i) {
        const std::string n = std::to_string(i);
        graph += tensor("layers." + n + ".fc.weight", {32, 32}, std::string(4096, '\1')) +
                 node("MatMul", {"x" + n, "layers." + n + ".fc.weight"}, {"y" + n}, "/layers." + n + "/fc/MatMul") +
                 node("Relu", {"y" + n}, {"x" + std::to_string(i + 1)}, "/layers." + n + "/act/Relu");
    }
    return model(graph + output("x5000"));
}

} // namespace shardscope::test::onnx_text
