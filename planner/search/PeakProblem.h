// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "planner/search/Knapsack.h"
#include "runtime/contract/Result.h"

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

namespace shardscope::planner {

struct PeakOption {
    std::int64_t stateBytes = 0;     ///< held all the time; items add up
    std::int64_t transientBytes = 0; ///< held while in use; only the largest counts
    std::int64_t time = 0;
};

/// `count` identical items, each of which picks one of the options.
struct PeakGroup {
    std::int32_t count = 1;
    std::vector<PeakOption> options;
};

struct PeakSolution {
    bool feasible = false;
    bool proven = false;    ///< least time, and fewest peak bytes at that time; or certain that nothing fits
    bool cancelled = false; ///< the stop token ended the search
    std::int64_t time = 0;
    std::int64_t peakBytes = 0;      ///< base + sum of state + largest transient
    std::int64_t stateBytes = 0;     ///< the sum
    std::int64_t transientBytes = 0; ///< the largest
    /// [group][option]: how many of the group's items choose it. The first items of a group take its first options.
    std::vector<std::vector<std::int32_t>> counts;

    // Certificate.
    std::int64_t lowerBound = 0;
    double gap = 0;         ///< (time - lowerBound) / time; 0 when proven
    int thresholds = 0;     ///< how many values of the largest transient were searched
    double shadowPrice = 0; ///< time per byte of memory at the optimum of the linear relaxation
    std::int64_t work = 0;
};

/// Minimise the sum of time subject to base + sum of state + largest transient <= limit.
///
/// For each value r of the largest transient, dropping the options above r leaves a knapsack with capacity limit - base
/// - r. Values are visited by rising bound until the bound passes the best solution. Thread-safe once built.
class PeakProblem {
public:
    /// Errors: BadInput when a group has no option or a count below one, a number is negative, or a sum reaches 2^62.
    static contract::Result<PeakProblem> create(std::int64_t baseBytes, std::vector<PeakGroup> groups);

    /// The smallest limit under which anything fits, exactly.
    std::int64_t smallestFeasibleBytes() const { return m_smallestFeasibleBytes; }
    /// No limit allows less time.
    std::int64_t minimumTime() const { return m_minimumTime; }
    /// The linear bound under this limit; kInfeasibleTime when nothing fits.
    std::int64_t lowerBound(std::int64_t limitBytes) const;
    /// The least time, then the smallest peak. Only solutions with less time than `cutoffTime` are of interest.
    PeakSolution solve(std::int64_t limitBytes, const SearchLimits& limits = {},
                       std::int64_t cutoffTime = kInfeasibleTime) const;

    const std::vector<PeakGroup>& groups() const { return m_groups; }
    std::int64_t baseBytes() const { return m_baseBytes; }

private:
    friend class PeakSearch;

    /// The knapsack left by dropping options above a threshold. `options[g]` are its options' indices in the group.
    struct Restricted {
        Knapsack knapsack;
        std::vector<std::vector<std::int32_t>> options;
    };
    struct Entry {
        std::int64_t transientBytes;
        std::int32_t group;
        std::int32_t option;
    };
    struct Cache {
        std::mutex mutex;
        std::map<std::size_t, std::shared_ptr<const Restricted>> byThreshold;
    };

    PeakProblem() = default;
    std::shared_ptr<const Restricted> restricted(std::size_t threshold) const;
    /// For every threshold: sum over groups of count * min over its options of (q * time + p * state), for p/q =
    /// multiplier.
    std::vector<Int128> leastWeights(const Slope& multiplier) const;

    std::int64_t m_baseBytes = 0;
    std::vector<PeakGroup> m_groups;
    std::vector<Entry> m_entries;           ///< all options by rising transient
    std::vector<std::int64_t> m_thresholds; ///< distinct transients that leave every group an option, rising
    std::vector<std::int64_t> m_leastState; ///< [threshold]: least sum of state
    std::int64_t m_smallestFeasibleBytes = 0;
    std::int64_t m_minimumTime = 0;
    std::unique_ptr<Cache> m_cache = std::make_unique<Cache>();
};

} // namespace shardscope::planner
