// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace shardscope::fuzz {

/// Gives the bytes to one reader. Whatever they are, it must return, and must have taken no more memory than a right
/// file of that size or network of that kind can need.
struct Target {
    std::string_view name;
    void (*read)(std::string_view bytes);
    std::string_view right;  ///< a right file, for whatever is made once by the first
    std::size_t network = 0; ///< bytes of the largest network that a few words may describe ("num_hidden_layers")

    /// Bytes that one allocation may have for a file of `size` bytes: ten times the file.
    std::size_t largestAllocation(std::size_t size) const { return kSlack + network + 10 * size; }
    /// Bytes that may be alive at a time. Parsed values are larger than their text: an empty message of two bytes
    /// becomes an object of a few hundred.
    std::size_t largestHeap(std::size_t size) const { return kSlack + 2 * network + 200 * size; }

    static constexpr std::size_t kSlack = 256 * 1024; ///< buffers of streams, hash tables of few entries
};

/// config, safetensors, index, onnx, graph, cluster.
const std::vector<Target>& targets();

} // namespace shardscope::fuzz
