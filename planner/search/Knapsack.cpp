// SPDX-License-Identifier: GPL-3.0-or-later
#include "planner/search/Knapsack.h"

#include "planner/search/KnapsackSearch.h"

#include <algorithm>
#include <numeric>
#include <string>

namespace shardscope::planner {

namespace {

/// sum + count * value, or nothing when it reaches 2^62.
std::optional<std::int64_t> addedUp(std::int64_t sum, std::int32_t count, std::int64_t value) {
    const Int128 total = static_cast<Int128>(count) * value + sum;
    if (total >= kMaximumSum)
        return std::nullopt;
    return static_cast<std::int64_t>(total);
}

} // namespace

contract::Result<Knapsack> Knapsack::create(const std::vector<KnapsackGroup>& groups) {
    Knapsack knapsack;
    std::int64_t largestBytes = 0;
    std::int64_t largestTime = 0;
    for (std::size_t g = 0; g < groups.size(); ++g) {
        const KnapsackGroup& group = groups[g];
        const std::string name = "group " + std::to_string(g);
        if (group.count < 1)
            return contract::badInput(name + ": the count is " + std::to_string(group.count) + ", must be at least 1");
        if (group.options.empty())
            return contract::badInput(name + ": has no options, needs at least one");
        std::int64_t bytes = 0;
        std::int64_t time = 0;
        for (const KnapsackOption& option : group.options) {
            if (option.bytes < 0 || option.time < 0)
                return contract::badInput(name + ": bytes and time must not be negative");
            bytes = std::max(bytes, option.bytes);
            time = std::max(time, option.time);
        }
        const auto bytesSum = addedUp(largestBytes, group.count, bytes);
        const auto timeSum = addedUp(largestTime, group.count, time);
        if (!bytesSum || !timeSum)
            return contract::badInput(name + ": the sums of bytes and of time must stay below 2^62");
        largestBytes = *bytesSum;
        largestTime = *timeSum;
    }
    knapsack.m_prefixBytes.push_back(0);
    knapsack.m_prefixTime.push_back(0);
    knapsack.m_firstPoint.push_back(0);
    for (const KnapsackGroup& group : groups)
        knapsack.addGroup(group);
    knapsack.sortSegments();
    return knapsack;
}

contract::Result<Knapsack> Knapsack::createRelaxation(const std::vector<KnapsackGroup>& groups) {
    auto knapsack = create(groups);
    if (knapsack)
        knapsack->m_byteStep = knapsack->m_timeStep = 1;
    return knapsack;
}

void Knapsack::addGroup(const KnapsackGroup& group) {
    const auto groupIndex = static_cast<std::int32_t>(m_counts.size());
    m_counts.push_back(group.count);
    m_optionCounts.push_back(static_cast<std::int32_t>(group.options.size()));

    std::vector<std::int32_t> order(group.options.size());
    std::iota(order.begin(), order.end(), 0);
    std::sort(order.begin(), order.end(), [&](std::int32_t a, std::int32_t b) {
        const KnapsackOption& x = group.options[a];
        const KnapsackOption& y = group.options[b];
        return std::tie(x.bytes, x.time, a) < std::tie(y.bytes, y.time, b);
    });
    const auto first = static_cast<std::int32_t>(m_points.size());
    for (const std::int32_t index : order) {
        const KnapsackOption& option = group.options[index];
        const bool dominated =
            static_cast<std::int32_t>(m_points.size()) > first && m_points.back().time <= option.time;
        if (!dominated)
            m_points.push_back({option.bytes, option.time, index});
    }
    m_firstPoint.push_back(static_cast<std::int32_t>(m_points.size()));
    for (std::size_t p = first + 1; p < m_points.size(); ++p) {
        m_byteStep = std::gcd(m_byteStep, m_points[p].bytes - m_points[first].bytes);
        m_timeStep = std::gcd(m_timeStep, m_points[first].time - m_points[p].time);
    }

    // Lower left hull. Points on an edge are kept: they are exact solutions between its ends.
    const auto edge = [&](std::int32_t from, std::int32_t to) {
        return Segment{m_points[to].bytes - m_points[from].bytes,
                       m_points[from].time - m_points[to].time,
                       group.count,
                       groupIndex,
                       from,
                       to};
    };
    const std::size_t firstSegment = m_segments.size();
    std::int32_t last = first;
    for (std::int32_t p = first + 1; p < m_firstPoint.back(); ++p) {
        Segment segment = edge(last, p);
        while (m_segments.size() > firstSegment && steeper(segment.slope(), m_segments.back().slope())) {
            last = m_segments.back().from;
            m_segments.pop_back();
            segment = edge(last, p);
        }
        m_segments.push_back(segment);
        last = p;
    }
    m_prefixBytes.front() += m_points[first].bytes * group.count;
    m_prefixTime.front() += m_points[first].time * group.count;
}

void Knapsack::sortSegments() {
    std::stable_sort(m_segments.begin(), m_segments.end(),
                     [](const Segment& a, const Segment& b) { return steeper(a.slope(), b.slope()); });
    m_prefixBytes.reserve(m_segments.size() + 1);
    m_prefixTime.reserve(m_segments.size() + 1);
    m_firstSegment.assign(groupCount() + 1, 0);
    for (const Segment& segment : m_segments) {
        m_prefixBytes.push_back(m_prefixBytes.back() + segment.bytes * segment.count);
        m_prefixTime.push_back(m_prefixTime.back() - segment.time * segment.count);
        ++m_firstSegment[segment.group + 1];
    }
    std::partial_sum(m_firstSegment.begin(), m_firstSegment.end(), m_firstSegment.begin());
    std::vector<std::int32_t> next(m_firstSegment.begin(), m_firstSegment.end() - 1);
    m_groupSegments.resize(m_segments.size());
    for (std::size_t s = 0; s < m_segments.size(); ++s)
        m_groupSegments[next[m_segments[s].group]++] = static_cast<std::int32_t>(s);
}

std::int64_t Knapsack::usableCapacity(std::int64_t capacity) const {
    return roundDownTo(std::min(capacity, fastestBytes()), minimumBytes(), m_byteStep);
}

Knapsack::Break Knapsack::findBreak(std::int64_t capacity) const {
    const auto above = std::upper_bound(m_prefixBytes.begin(), m_prefixBytes.end(), capacity);
    Break at{static_cast<std::size_t>(above - m_prefixBytes.begin()) - 1, 0, 0, 0};
    at.bytes = m_prefixBytes[at.segment];
    at.time = m_prefixTime[at.segment];
    if (at.segment < m_segments.size()) {
        const Segment& segment = m_segments[at.segment];
        at.copies = static_cast<std::int32_t>((capacity - at.bytes) / segment.bytes);
        at.bytes += at.copies * segment.bytes;
        at.time -= at.copies * segment.time;
    }
    return at;
}

std::int64_t Knapsack::linearBound(const Break& at, std::int64_t capacity) const {
    if (at.segment == m_segments.size())
        return at.time;
    const Segment& segment = m_segments[at.segment];
    const std::int64_t bound = at.time - multiplyDivideDown(segment.time, capacity - at.bytes, segment.bytes);
    return roundUpTo(bound, minimumTime(), m_timeStep);
}

std::int64_t Knapsack::lowerBound(std::int64_t capacity) const {
    if (capacity < minimumBytes())
        return kInfeasibleTime;
    const std::int64_t usable = usableCapacity(capacity);
    return linearBound(findBreak(usable), usable);
}

std::int64_t Knapsack::lowerBound(std::int64_t capacity, const std::vector<std::int32_t>& counts,
                                  Slope& multiplier) const {
    std::int64_t bytes = 0;
    std::int64_t time = 0;
    for (std::size_t g = 0; g < groupCount(); ++g) {
        const Point& least = m_points[m_firstPoint[g]];
        bytes += least.bytes * counts[g];
        time += least.time * counts[g];
    }
    multiplier = {0, 1};
    if (bytes > capacity)
        return kInfeasibleTime;
    for (const Segment& segment : m_segments) {
        const std::int64_t wanted = segment.bytes * counts[segment.group];
        if (wanted > capacity - bytes) {
            multiplier = segment.slope();
            return time - multiplyDivideDown(segment.time, capacity - bytes, segment.bytes);
        }
        bytes += wanted;
        time -= segment.time * counts[segment.group];
    }
    return time;
}

Slope Knapsack::multiplier(std::int64_t capacity) const {
    if (capacity < minimumBytes())
        return {0, 1};
    const std::size_t segment = findBreak(usableCapacity(capacity)).segment;
    return segment < m_segments.size() ? m_segments[segment].slope() : Slope{0, 1};
}

std::vector<std::int32_t> Knapsack::pointsBefore(std::size_t segment) const {
    std::vector<std::int32_t> points(groupCount());
    for (std::size_t g = 0; g < groupCount(); ++g) {
        const auto begin = m_groupSegments.begin() + m_firstSegment[g];
        const auto end = m_groupSegments.begin() + m_firstSegment[g + 1];
        const auto next = std::lower_bound(begin, end, static_cast<std::int32_t>(segment));
        points[g] = next == begin ? m_firstPoint[g] : m_segments[*(next - 1)].to;
    }
    return points;
}

std::vector<std::int32_t> Knapsack::greedyCounts(std::int64_t capacity, std::int64_t& bytes, std::int64_t& time) const {
    const Break at = findBreak(capacity);
    const std::vector<std::int32_t> points = pointsBefore(at.segment);
    std::vector<std::int32_t> pointCounts(m_points.size(), 0);
    for (std::size_t g = 0; g < groupCount(); ++g)
        pointCounts[points[g]] = m_counts[g];
    bytes = at.bytes;
    time = at.time;
    if (at.segment == m_segments.size())
        return pointCounts;

    const Segment& broken = m_segments[at.segment];
    pointCounts[broken.from] -= at.copies;
    pointCounts[broken.to] += at.copies;
    // Fill what is left with the next best moves that fit. A move is possible while an item stands at its start.
    const std::size_t end = std::min(m_segments.size(), at.segment + 1 + groupCount());
    for (std::size_t s = at.segment + 1; s < end && bytes < capacity; ++s) {
        const Segment& segment = m_segments[s];
        const std::int64_t fitting = (capacity - bytes) / segment.bytes;
        const auto copies = static_cast<std::int32_t>(std::min<std::int64_t>(pointCounts[segment.from], fitting));
        pointCounts[segment.from] -= copies;
        pointCounts[segment.to] += copies;
        bytes += copies * segment.bytes;
        time -= copies * segment.time;
    }
    return pointCounts;
}

void Knapsack::setCounts(KnapsackSolution& solution, const std::vector<std::int32_t>& pointCounts) const {
    solution.counts.resize(groupCount());
    for (std::size_t g = 0; g < groupCount(); ++g) {
        solution.counts[g].assign(m_optionCounts[g], 0);
        for (std::int32_t p = m_firstPoint[g]; p < m_firstPoint[g + 1]; ++p)
            solution.counts[g][m_points[p].option] = pointCounts[p];
    }
}

KnapsackSolution Knapsack::incumbent(std::int64_t capacity, std::size_t width, const Interrupt& interrupt) const {
    KnapsackSolution solution;
    solution.lowerBound = lowerBound(capacity);
    if (capacity < minimumBytes()) {
        solution.proven = true;
        return solution;
    }
    const std::int64_t usable = usableCapacity(capacity);
    setCounts(solution, filledCounts(usable, width, solution.bytes, solution.time, interrupt));
    solution.shadowPrice = multiplier(capacity).value();
    solution.feasible = true;
    solution.proven = solution.time == solution.lowerBound;
    return solution;
}

KnapsackSolution Knapsack::solve(std::int64_t capacity, const SearchLimits& limits, KnapsackCutoff cutoff) const {
    return KnapsackSearch(*this, capacity, limits, cutoff).run();
}

std::vector<SupportedPoint> Knapsack::breakpoints() const {
    std::vector<SupportedPoint> points{{m_prefixBytes.front(), m_prefixTime.front()}};
    for (std::size_t s = 0; s < m_segments.size(); ++s) {
        const bool straight = s > 0 && !steeper(m_segments[s - 1].slope(), m_segments[s].slope());
        if (straight)
            points.pop_back();
        points.push_back({m_prefixBytes[s + 1], m_prefixTime[s + 1]});
    }
    return points;
}

std::vector<SupportedPoint> Knapsack::supportedPoints() const {
    std::vector<SupportedPoint> points{{m_prefixBytes.front(), m_prefixTime.front()}};
    for (const Segment& segment : m_segments) {
        for (std::int32_t copy = 0; copy < segment.count; ++copy)
            points.push_back({points.back().bytes + segment.bytes, points.back().time - segment.time});
    }
    return points;
}

} // namespace shardscope::planner
