// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <string_view>
#include <vector>

namespace shardscope::contract {

/// The presets that our engine trains with, on processor cores or on GPUs; other programs may train with more.
inline const std::vector<std::string_view>& trainedPresets(bool isCpu) {
    static const std::vector<std::string_view> kCpu{"fp32-adam", "fp32-sgd-momentum"};
    static const std::vector<std::string_view> kCuda{"fp32-adam", "bf16-adam", "bf16-adam-fp32grad", "bf16-pure-adam",
                                                     "fp32-sgd-momentum"};
    return isCpu ? kCpu : kCuda;
}

} // namespace shardscope::contract
