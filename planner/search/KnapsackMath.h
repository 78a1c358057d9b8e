// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <cstdint>
#include <limits>
#include <numeric>

namespace shardscope::planner {

/// Products of two 62-bit quantities are exact in it; no double ever decides an inequality in the solver.
__extension__ using Int128 = __int128;

/// Largest sum of bytes or of time an instance may reach: differences and products with it stay exact.
inline constexpr std::int64_t kMaximumSum = std::int64_t{1} << 62;

/// What a lower bound says where nothing fits.
inline constexpr std::int64_t kInfeasibleTime = std::numeric_limits<std::int64_t>::max();

/// Time saved per byte spent, as an exact fraction; bytes == 0 means infinitely steep.
struct Slope {
    std::int64_t time = 0;
    std::int64_t bytes = 1;

    double value() const { return static_cast<double>(time) / static_cast<double>(bytes); }
};

inline bool steeper(const Slope& a, const Slope& b) {
    return static_cast<Int128>(a.time) * b.bytes > static_cast<Int128>(b.time) * a.bytes;
}

/// a*b/c rounded down, for non-negative a, b and positive c.
inline std::int64_t multiplyDivideDown(std::int64_t a, std::int64_t b, std::int64_t c) {
    return static_cast<std::int64_t>(static_cast<Int128>(a) * b / c);
}

/// The smallest value >= `value` that differs from `origin` by a multiple of `step`; `step` 0 means the value is
/// `origin`.
inline std::int64_t roundUpTo(std::int64_t value, std::int64_t origin, std::int64_t step) {
    if (step <= 1)
        return step == 0 ? (value > origin ? value : origin) : value;
    const std::int64_t remainder = (value - origin) % step;
    if (remainder == 0)
        return value;
    return value + (remainder > 0 ? step - remainder : -remainder);
}

/// The largest value <= `value` that differs from `origin` by a multiple of `step`, for value >= origin.
inline std::int64_t roundDownTo(std::int64_t value, std::int64_t origin, std::int64_t step) {
    return step == 0 ? origin : origin + (value - origin) / step * step;
}

} // namespace shardscope::planner
