// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace shardscope::fuzz {

/// Gives the bytes to one reader. Whatever they are, it must return.
struct Target {
    std::string_view name;
    void (*read)(std::string_view bytes);
};

/// config, safetensors, index, onnx, graph, cluster.
const std::vector<Target>& targets();

} // namespace shardscope::fuzz
