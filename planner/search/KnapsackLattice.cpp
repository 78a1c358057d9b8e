// SPDX-License-Identifier: GPL-3.0-or-later
// A bound for times that are affine in bytes. Where communication costs a latency per message and a time per byte, and
// little else, every option's time is const - c * bytes + kappa * L with a whole number L of messages. The linear
// relaxation takes a fraction of a message; a sum of whole numbers does not.
#include "planner/search/Knapsack.h"

#include <algorithm>
#include <cmath>

namespace shardscope::planner {

namespace {

struct Affine {
    long double perByte = 0; ///< c
    long double offset = 0;  ///< the time between the ends of a group beyond c * bytes
};

/// Least squares through (bytes, time) differences of the groups' ends.
bool fit(const std::vector<std::pair<long double, long double>>& ends, Affine& affine) {
    long double n = 0, x = 0, y = 0, xx = 0, xy = 0;
    for (const auto& [bytes, time] : ends) {
        n += 1;
        x += bytes;
        y += time;
        xx += bytes * bytes;
        xy += bytes * time;
    }
    const long double spread = n * xx - x * x;
    if (n < 2 || spread <= 0)
        return false;
    affine.perByte = (n * xy - x * y) / spread;
    affine.offset = (y - affine.perByte * x) / n;
    return affine.perByte > 0;
}

/// The fit that most groups agree on: those far from it (with fewer options, say) are left out and the rest fitted
/// again.
bool fitMost(std::vector<std::pair<long double, long double>> ends, Affine& affine) {
    constexpr int kRounds = 8;
    for (int round = 0; round < kRounds; ++round) {
        if (!fit(ends, affine))
            return false;
        std::vector<long double> residuals;
        for (const auto& [bytes, time] : ends)
            residuals.push_back(std::abs(time - affine.perByte * bytes - affine.offset));
        std::vector<long double> sorted = residuals;
        const auto middle = sorted.begin() + static_cast<std::ptrdiff_t>(sorted.size() / 2);
        std::nth_element(sorted.begin(), middle, sorted.end());
        const long double tolerated = std::max<long double>(2, 4 * *middle);
        std::vector<std::pair<long double, long double>> kept;
        for (std::size_t i = 0; i < ends.size(); ++i) {
            if (residuals[i] <= tolerated)
                kept.push_back(ends[i]);
        }
        if (kept.size() == ends.size())
            break;
        ends = std::move(kept);
    }
    return true;
}

} // namespace

std::int64_t Knapsack::latticeBound(std::int64_t capacity) const {
    if (capacity < minimumBytes())
        return kInfeasibleTime;
    const std::int64_t usable = usableCapacity(capacity);
    std::vector<std::pair<long double, long double>> ends;
    for (std::size_t g = 0; g < groupCount(); ++g) {
        const Point& least = m_points[m_firstPoint[g]];
        const Point& fastest = m_points[m_firstPoint[g + 1] - 1];
        if (fastest.bytes > least.bytes)
            ends.emplace_back(fastest.bytes - least.bytes, least.time - fastest.time);
    }
    Affine affine;
    if (!fitMost(std::move(ends), affine))
        return 0;
    // Any step makes a sound bound; a wrong one makes it weak. A message is the offset or a small part of it.
    constexpr int kLargestPart = 8;
    constexpr std::int64_t kMostMessages = 1 << 20;
    std::int64_t best = 0;
    for (int part = 1; part <= kLargestPart; ++part) {
        const long double step = std::abs(affine.offset) / part;
        if (step < 1)
            break;
        long double sum = -affine.perByte * static_cast<long double>(usable);
        long double slack = 1; // what options may lie below their multiple of the step
        std::vector<KnapsackGroup> messages;
        bool possible = true;
        for (std::size_t g = 0; g < groupCount() && possible; ++g) {
            const auto weight = [&](std::int32_t p) {
                return static_cast<long double>(m_points[p].time) +
                       affine.perByte * static_cast<long double>(m_points[p].bytes);
            };
            long double least = weight(m_firstPoint[g]);
            for (std::int32_t p = m_firstPoint[g]; p < m_firstPoint[g + 1]; ++p)
                least = std::min(least, weight(p));
            KnapsackGroup group{m_counts[g], {}};
            long double deviation = 0;
            for (std::int32_t p = m_firstPoint[g]; p < m_firstPoint[g + 1]; ++p) {
                const long double excess = weight(p) - least;
                const long double count = std::round(excess / step);
                possible = possible && count < kMostMessages;
                deviation = std::max(deviation, count * step - excess);
                group.options.push_back({m_points[p].bytes, static_cast<std::int64_t>(count)});
            }
            sum += least * m_counts[g];
            slack += deviation * m_counts[g];
            messages.push_back(std::move(group));
        }
        if (!possible || slack >= step)
            continue; // the noise hides the steps
        const auto counting = create(messages);
        if (!counting)
            continue;
        const long double value = sum + step * static_cast<long double>(counting->lowerBound(usable)) - slack;
        // Stay below what rounding may have added to the sums.
        best = std::max(best, static_cast<std::int64_t>(std::floor(value - 1e-16L * std::abs(sum))));
        break;
    }
    return best;
}

} // namespace shardscope::planner
