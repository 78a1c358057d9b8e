// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "planner/search/KnapsackMath.h"
#include "runtime/contract/Result.h"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <optional>
#include <stop_token>
#include <vector>

namespace shardscope::planner {

struct KnapsackOption {
    std::int64_t bytes = 0;
    std::int64_t time = 0;
};

/// `count` identical items, each of which picks one of the options.
struct KnapsackGroup {
    std::int32_t count = 1;
    std::vector<KnapsackOption> options;
};

/// When to stop before the proof. The work limit is deterministic (equal inputs stop at the same answer), time is not.
struct SearchLimits {
    std::int64_t workLimit = 0;  ///< elementary steps (states looked at); 0: none
    double timeLimitSeconds = 0; ///< 0: none
    double tolerance = 0;        ///< relative gap at which the search is content
    std::stop_token stop;
};

/// When steps that cannot be cut short by counting work must return: on request, or at a moment.
struct Interrupt {
    std::stop_token stop;
    std::chrono::steady_clock::time_point latest = std::chrono::steady_clock::time_point::max();

    Interrupt() = default;
    Interrupt(const SearchLimits& limits, std::chrono::steady_clock::time_point start) : stop(limits.stop) {
        if (limits.timeLimitSeconds > 0)
            latest = start + std::chrono::duration_cast<std::chrono::steady_clock::duration>(
                                 std::chrono::duration<double>(std::min(limits.timeLimitSeconds, 1e9)));
    }
    bool due() const { return stop.stop_requested() || std::chrono::steady_clock::now() >= latest; }
};

/// Only solutions better than this are of interest: less time, or equal time with fewer bytes.
struct KnapsackCutoff {
    std::int64_t time = kInfeasibleTime;
    std::int64_t bytes = 0;
    std::int64_t lowerBound = 0; ///< known already
};

struct KnapsackSolution {
    bool feasible = false;  ///< a solution (better than the cutoff) is in hand
    bool proven = false;    ///< it is optimal, or it is certain that nothing beats the cutoff
    bool cancelled = false; ///< the stop token ended the search
    std::int64_t time = 0;
    std::int64_t bytes = 0;
    std::int64_t lowerBound = 0; ///< no solution takes less time than this (or none below the cutoff exists)
    std::vector<std::vector<std::int32_t>> counts; ///< [group][option]: how many of the group's items choose it
    std::int64_t work = 0;
    double shadowPrice = 0; ///< time per byte at the optimum of the linear relaxation
};

/// A point of the convex envelope of the frontier: the least time that fits in exactly these bytes.
struct SupportedPoint {
    std::int64_t bytes = 0;
    std::int64_t time = 0;
};

/// The multiple-choice knapsack with groups of identical items: every item picks one option, minimise the sum of time
/// subject to the sum of bytes.
///
/// Built once (dominance, convex hulls, slopes sorted over all groups); bounds, greedy solutions and exact solutions
/// for any capacity are then cheap, and safe to ask for from several threads.
class Knapsack {
public:
    /// Errors: BadInput when a group has no option or a count below one, a number is negative, or a sum reaches 2^62.
    static contract::Result<Knapsack> create(const std::vector<KnapsackGroup>& groups);
    /// When `groups` hold only some of the options there are: sums of bytes and of time may then take any value, and no
    /// bound is rounded to what those given can reach.
    static contract::Result<Knapsack> createRelaxation(const std::vector<KnapsackGroup>& groups);

    std::int64_t minimumBytes() const { return m_prefixBytes.front(); }
    std::int64_t minimumTime() const { return m_prefixTime.back(); }
    /// Bytes of the fastest solution: a larger capacity changes nothing.
    std::int64_t fastestBytes() const { return m_prefixBytes.back(); }

    /// The linear bound, rounded up to what integers can reach; kInfeasibleTime when nothing fits. O(log n).
    std::int64_t lowerBound(std::int64_t capacity) const;
    /// The linear bound with other numbers of items: `counts` [group]. O(n). `multiplier` as below.
    std::int64_t lowerBound(std::int64_t capacity, const std::vector<std::int32_t>& counts, Slope& multiplier) const;
    /// A bound for times that are affine in bytes but for whole numbers of messages; may be weaker than lowerBound().
    /// O(n log n).
    std::int64_t latticeBound(std::int64_t capacity) const;
    /// How many changes are worth combining: with many different items a wide look is worth its 3 ms.
    std::size_t thoroughWidth() const { return m_counts.size() < 200 ? 48 : 256; }
    /// Time per byte at the optimum of the linear relaxation; zero when the capacity does not bind.
    Slope multiplier(std::int64_t capacity) const;
    /// A good solution without search, with its bound: of the `width` changes that lose least the best four together.
    /// When `interrupt` is due it returns early, with a solution that is not as good.
    KnapsackSolution incumbent(std::int64_t capacity, std::size_t width = 32, const Interrupt& interrupt = {}) const;
    /// The least time, then the fewest bytes; ties are broken the same way every time.
    KnapsackSolution solve(std::int64_t capacity, const SearchLimits& limits = {}, KnapsackCutoff cutoff = {}) const;

    /// The vertices of the convex envelope, by rising bytes: whole groups change their option between them.
    std::vector<SupportedPoint> breakpoints() const;
    /// Every supported point, one item changing at a time.
    std::vector<SupportedPoint> supportedPoints() const;

private:
    friend class KnapsackSearch;

    /// An option that no other option of its group dominates. Points of a group have rising bytes and falling time.
    struct Point {
        std::int64_t bytes;
        std::int64_t time;
        std::int32_t option;
    };
    /// An edge of a group's convex hull: all `count` items of the group may move from point `from` to point `to`.
    struct Segment {
        std::int64_t bytes; ///< spent per item
        std::int64_t time;  ///< saved per item
        std::int32_t count;
        std::int32_t group;
        std::int32_t from;
        std::int32_t to;

        Slope slope() const { return {time, bytes}; }
    };
    /// Where the linear relaxation stops: segments before it are taken whole, `copies` items of it fit as well.
    struct Break {
        std::size_t segment;
        std::int32_t copies;
        std::int64_t bytes; ///< of the integer part
        std::int64_t time;
    };

    Knapsack() = default;
    void addGroup(const KnapsackGroup& group);
    void sortSegments();
    Break findBreak(std::int64_t capacity) const;
    /// The capacity that sums of the given bytes can really use. For capacity >= minimumBytes().
    std::int64_t usableCapacity(std::int64_t capacity) const;
    std::int64_t linearBound(const Break& at, std::int64_t capacity) const;
    std::size_t groupCount() const { return m_counts.size(); }
    /// The hull point of every group when the segments before `segment` are taken.
    std::vector<std::int32_t> pointsBefore(std::size_t segment) const;
    /// How many items choose each point in the greedy solution at `capacity`; adds up its bytes and time.
    std::vector<std::int32_t> greedyCounts(std::int64_t capacity, std::int64_t& bytes, std::int64_t& time) const;
    /// The same, improved by the best four changes among the `width` that lose least.
    std::vector<std::int32_t> filledCounts(std::int64_t capacity, std::size_t width, std::int64_t& bytes,
                                           std::int64_t& time, const Interrupt& interrupt) const;
    void setCounts(KnapsackSolution& solution, const std::vector<std::int32_t>& pointCounts) const;

    std::vector<std::int32_t> m_counts;
    std::vector<std::int32_t> m_optionCounts;
    std::vector<Point> m_points;               ///< all groups' points, concatenated
    std::vector<std::int32_t> m_firstPoint;    ///< [group], and one past the end
    std::vector<Segment> m_segments;           ///< steepest first
    std::vector<std::int32_t> m_groupSegments; ///< indices into m_segments, by group and rising
    std::vector<std::int32_t> m_firstSegment;  ///< [group] into m_groupSegments, and one past the end
    std::vector<std::int64_t> m_prefixBytes;   ///< [n]: bytes when the first n segments are taken
    std::vector<std::int64_t> m_prefixTime;
    std::int64_t m_byteStep = 0; ///< all sums of bytes differ by multiples of it; 0: there is one sum only
    std::int64_t m_timeStep = 0;
};

} // namespace shardscope::planner
