// SPDX-License-Identifier: GPL-3.0-or-later
// Good solutions without search: what the linear relaxation leaves of the capacity is filled by up to four changes of
// single items, chosen together. With many items of different sizes, sums of four come close to any gap.
#include "planner/search/Knapsack.h"

#include <algorithm>
#include <array>
#include <tuple>

namespace shardscope::planner {

namespace {

struct Move {
    std::int64_t bytes, time;
    Int128 loss; ///< against the multiplier of the relaxation
    std::int32_t from, to;
};

/// Up to two moves.
struct Pair {
    std::int64_t bytes = 0, time = 0;
    std::array<std::int32_t, 2> moves{-1, -1};
};

/// Half of them are those that lose least; the others are spread over all sizes, since what is left to fill may be
/// large.
std::vector<Move> select(std::vector<Move> moves, std::size_t width) {
    const auto byLoss = [](const Move& a, const Move& b) {
        return std::tie(a.loss, a.from, a.to) < std::tie(b.loss, b.from, b.to);
    };
    const auto half = moves.begin() + static_cast<std::ptrdiff_t>(width / 2);
    std::nth_element(moves.begin(), half, moves.end(), byLoss);
    std::vector<Move> selected(moves.begin(), half);
    moves.erase(moves.begin(), half);
    std::sort(moves.begin(), moves.end(), [](const Move& a, const Move& b) {
        return std::tie(a.bytes, a.loss, a.from, a.to) < std::tie(b.bytes, b.loss, b.from, b.to);
    });
    const std::size_t rest = std::min(width - width / 2, moves.size());
    for (std::size_t i = 0; i < rest; ++i)
        selected.push_back(moves[i * moves.size() / rest]);
    return selected;
}

/// Whether the items that the moves take away are there.
bool possible(const std::vector<Move>& moves, const std::vector<std::int32_t>& pointCounts,
              const std::array<const Pair*, 2>& pairs) {
    std::array<std::int32_t, 4> from{};
    std::size_t count = 0;
    for (const Pair* pair : pairs) {
        for (const std::int32_t move : pair->moves) {
            if (move >= 0)
                from[count++] = moves[static_cast<std::size_t>(move)].from;
        }
    }
    for (std::size_t i = 0; i < count; ++i) {
        const auto taken = std::count(from.begin(), from.begin() + static_cast<std::ptrdiff_t>(count), from[i]);
        if (taken > pointCounts[static_cast<std::size_t>(from[i])])
            return false;
    }
    return true;
}

/// By rising bytes, in parts of less than a millisecond; false when interrupted.
bool sortPairs(std::vector<Pair>& pairs, const Interrupt& interrupt) {
    constexpr std::ptrdiff_t kPart = 8192;
    const auto order = [](const Pair& a, const Pair& b) {
        return std::tie(a.bytes, a.time, a.moves) < std::tie(b.bytes, b.time, b.moves);
    };
    const auto count = static_cast<std::ptrdiff_t>(pairs.size());
    for (std::ptrdiff_t first = 0; first < count; first += kPart) {
        if (interrupt.due())
            return false;
        std::sort(pairs.begin() + first, pairs.begin() + std::min(first + kPart, count), order);
    }
    for (std::ptrdiff_t part = kPart; part < count; part *= 2) {
        for (std::ptrdiff_t first = 0; first + part < count; first += 2 * part) {
            if (interrupt.due())
                return false;
            std::inplace_merge(pairs.begin() + first, pairs.begin() + first + part,
                               pairs.begin() + std::min(first + 2 * part, count), order);
        }
    }
    return true;
}

} // namespace

std::vector<std::int32_t> Knapsack::filledCounts(std::int64_t capacity, std::size_t width, std::int64_t& bytes,
                                                 std::int64_t& time, const Interrupt& interrupt) const {
    std::vector<std::int32_t> greedy = greedyCounts(capacity, bytes, time);
    const Break at = findBreak(capacity);
    if (at.segment == m_segments.size() || linearBound(at, capacity) >= time || interrupt.due())
        return greedy;
    // The integer part of the relaxation, to be changed.
    std::vector<std::int32_t> counts(m_points.size(), 0);
    const std::vector<std::int32_t> base = pointsBefore(at.segment);
    for (std::size_t g = 0; g < groupCount(); ++g)
        counts[static_cast<std::size_t>(base[g])] = m_counts[g];
    const Segment& broken = m_segments[at.segment];
    counts[static_cast<std::size_t>(broken.from)] -= at.copies;
    counts[static_cast<std::size_t>(broken.to)] += at.copies;

    const Slope slope = broken.slope();
    // What loses more than the greedy solution can be part of no better one.
    const Int128 most =
        static_cast<Int128>(slope.bytes) * (time - at.time) + static_cast<Int128>(slope.time) * (capacity - at.bytes);
    std::vector<Move> moves;
    for (std::size_t g = 0; g < groupCount(); ++g) {
        const std::int32_t end = m_firstPoint[g + 1];
        for (std::int32_t from = m_firstPoint[g]; from < end; ++from) {
            for (std::int32_t to = m_firstPoint[g]; counts[static_cast<std::size_t>(from)] > 0 && to < end; ++to) {
                if (to == from)
                    continue;
                const Point& a = m_points[static_cast<std::size_t>(from)];
                const Point& b = m_points[static_cast<std::size_t>(to)];
                const Int128 loss = static_cast<Int128>(slope.bytes) * (b.time - a.time) +
                                    static_cast<Int128>(slope.time) * (b.bytes - a.bytes);
                if (loss <= most)
                    moves.push_back({b.bytes - a.bytes, b.time - a.time, loss, from, to});
            }
        }
    }
    if (moves.size() > width)
        moves = select(std::move(moves), width);

    std::vector<Pair> pairs{{}};
    for (std::size_t i = 0; i < moves.size(); ++i) {
        const auto first = static_cast<std::int32_t>(i);
        pairs.push_back({moves[i].bytes, moves[i].time, {first, -1}});
        for (std::size_t j = i; j < moves.size(); ++j)
            pairs.push_back({moves[i].bytes + moves[j].bytes,
                             moves[i].time + moves[j].time,
                             {first, static_cast<std::int32_t>(j)}});
    }
    if (!sortPairs(pairs, interrupt))
        return greedy;
    std::vector<std::uint32_t> fastest(pairs.size()); // the fastest of the pairs up to each
    for (std::size_t i = 1; i < pairs.size(); ++i)
        fastest[i] = pairs[i].time < pairs[fastest[i - 1]].time ? static_cast<std::uint32_t>(i) : fastest[i - 1];
    std::array<const Pair*, 2> best{nullptr, nullptr};
    std::size_t partner = pairs.size();
    for (const Pair& pair : pairs) {
        while (partner > 0 && at.bytes + pair.bytes + pairs[partner - 1].bytes > capacity)
            --partner;
        if (partner == 0)
            break;
        const Pair& other = pairs[fastest[partner - 1]];
        const std::int64_t both = at.time + pair.time + other.time;
        const std::int64_t bothBytes = at.bytes + pair.bytes + other.bytes;
        if (std::tie(both, bothBytes) >= std::tie(time, bytes) || !possible(moves, counts, {&pair, &other}))
            continue;
        best = {&pair, &other};
        time = both;
        bytes = bothBytes;
    }
    if (best[0] == nullptr)
        return greedy;
    for (const Pair* pair : best) {
        for (const std::int32_t move : pair->moves) {
            if (move < 0)
                continue;
            --counts[static_cast<std::size_t>(moves[static_cast<std::size_t>(move)].from)];
            ++counts[static_cast<std::size_t>(moves[static_cast<std::size_t>(move)].to)];
        }
    }
    return counts;
}

} // namespace shardscope::planner
