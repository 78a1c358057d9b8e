// SPDX-License-Identifier: GPL-3.0-or-later
#include "runtime/contract/Preset.h"

namespace shardscope::contract {

const std::vector<Preset>& presets() {
    static const std::vector<Preset> kPresets{
        {"fp32-adam", 4, 4, 8, 4},      {"bf16-adam", 2, 2, 12, 2},    {"bf16-adam-fp32grad", 2, 4, 12, 2},
        {"bf16-pure-adam", 2, 2, 4, 2}, {"bf16-adam8bit", 2, 2, 6, 2}, {"fp32-sgd-momentum", 4, 4, 4, 4},
        {"fsdp2-mixed", 0, 4, 12, 2},
    };
    return kPresets;
}

std::optional<Preset> findPreset(std::string_view name) {
    for (const Preset& preset : presets()) {
        if (preset.name == name)
            return preset;
    }
    return std::nullopt;
}

std::string presetNames() {
    std::string names;
    for (const Preset& preset : presets())
        names += (names.empty() ? "" : ", ") + preset.name;
    return names;
}

} // namespace shardscope::contract
