// SPDX-License-Identifier: GPL-3.0-or-later
#include "planner/timeline/Waterfall.h"

#include <cmath>
#include <numeric>

namespace shardscope::planner {

std::string_view causeName(Cause cause) {
    constexpr std::array<std::string_view, kCauseCount> kNames{"compute",        "recomputation", "exposed_gather",
                                                               "exposed_reduce", "optimizer",     "fixed"};
    return kNames[static_cast<std::size_t>(cause)];
}

std::int64_t Waterfall::total() const {
    return std::accumulate(picoseconds.begin(), picoseconds.end(), std::int64_t{0});
}

Waterfall& Waterfall::operator+=(const Waterfall& other) {
    for (std::size_t i = 0; i < picoseconds.size(); ++i)
        picoseconds[i] += other.picoseconds[i];
    return *this;
}

Waterfall operator-(const Waterfall& a, const Waterfall& b) {
    Waterfall difference;
    for (std::size_t i = 0; i < a.picoseconds.size(); ++i)
        difference.picoseconds[i] = a.picoseconds[i] - b.picoseconds[i];
    return difference;
}

std::int64_t toPicoseconds(double seconds) {
    return std::llround(seconds * 1e12);
}

} // namespace shardscope::planner
