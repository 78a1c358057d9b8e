// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

namespace shardscope::planner {

/// What a second of step time is spent on. The order is that of every waterfall shown.
enum class Cause {
    Compute,       ///< forward and backward
    Recomputation, ///< forward again, inside the backward pass
    ExposedGather, ///< waiting for bytes of an all-gather
    ExposedReduce, ///< waiting for bytes of a reduce-scatter or all-reduce
    Optimizer,     ///< updating what this rank owns
    Fixed,         ///< waiting for what collectives cost whatever their bytes: latency of ring steps, the host's cost
};
inline constexpr int kCauseCount = 6;
/// The JSON key: "compute", "recomputation", "exposed_gather", "exposed_reduce", "optimizer", "fixed".
std::string_view causeName(Cause cause);

/// Picoseconds of one step by cause. Integers, so that the parts sum to the whole exactly.
struct Waterfall {
    std::array<std::int64_t, kCauseCount> picoseconds{};

    std::int64_t& operator[](Cause cause) { return picoseconds[static_cast<std::size_t>(cause)]; }
    std::int64_t operator[](Cause cause) const { return picoseconds[static_cast<std::size_t>(cause)]; }
    std::int64_t total() const;
    Waterfall& operator+=(const Waterfall& other);
    bool operator==(const Waterfall&) const = default;
};
Waterfall operator-(const Waterfall& a, const Waterfall& b);

constexpr double toSeconds(std::int64_t picoseconds) {
    return static_cast<double>(picoseconds) * 1e-12;
}
/// Rounded to the nearest. The caller keeps to what 63 bits hold (106 days).
std::int64_t toPicoseconds(double seconds);

} // namespace shardscope::planner
