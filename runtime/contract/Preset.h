// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace shardscope::contract {

/// Bytes a precision and optimizer choice stores per parameter. Presets are data; see presets().
struct Preset {
    std::string name;
    std::int64_t weightBytes = 0;    ///< stored weight (0 when only the gathered copy is in compute precision)
    std::int64_t gradientBytes = 0;  ///< stored and unreduced gradient
    std::int64_t optimizerBytes = 0; ///< moments and any master copy
    std::int64_t gatheredBytes = 0;  ///< weight in compute precision, as gathered; also one activation element

    std::int64_t statePerParameter() const { return weightBytes + gradientBytes + optimizerBytes; }
    /// The optimizer whose state is stored: "adamw" (two moments) or "sgd" (a momentum).
    std::string_view optimizer() const { return name.ends_with("momentum") ? "sgd" : "adamw"; }
    bool operator==(const Preset&) const = default;
};

/// The built-in presets in the order in which they are offered; the table in cost-model "States per parameter".
const std::vector<Preset>& presets();
std::optional<Preset> findPreset(std::string_view name);
/// "fp32-adam, bf16-adam, ...": for messages.
std::string presetNames();

} // namespace shardscope::contract
