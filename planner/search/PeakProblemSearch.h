// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "planner/search/PeakProblem.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

namespace shardscope::planner {

/// One search over the thresholds of a PeakProblem under one limit.
class PeakSearch {
public:
    PeakSearch(const PeakProblem& problem, std::int64_t limitBytes);

    /// The least bound of any threshold; kInfeasibleTime when nothing fits.
    std::int64_t linearBound();
    PeakSolution run(const SearchLimits& limits, std::int64_t cutoffTime);

private:
    enum class Stage {
        Guessed,  ///< the bound comes from another threshold's multiplier
        Bounded,  ///< the bound is that of its own linear relaxation
        Tried,    ///< a good solution and the lattice bound are known
        Searched, ///< the bound is final
    };
    struct Threshold {
        std::size_t index; ///< in PeakProblem
        std::int64_t capacity;
        std::int64_t bound;
        Stage stage = Stage::Guessed;
    };

    /// The unsearched threshold with the least bound, its own bound known; nothing when all are searched.
    std::optional<std::size_t> nextThreshold(const Interrupt& interrupt = {});
    void raiseBounds(const Slope& multiplier);
    const PeakProblem::Restricted& restricted(std::size_t threshold);
    void tryQuickly(Threshold& threshold, const Interrupt& interrupt);
    void search(Threshold& threshold, const SearchLimits& limits);
    void accept(const KnapsackSolution& found, const PeakProblem::Restricted& restricted);
    std::int64_t leastBound() const;

    const PeakProblem& m_problem;
    std::vector<Threshold> m_thresholds; ///< those under which anything fits
    std::size_t m_currentThreshold = 0;
    std::shared_ptr<const PeakProblem::Restricted>
        m_current; ///< the last one used, whether or not the problem caches it
    int m_sweeps = 0;
    std::int64_t m_bestTime = kInfeasibleTime;
    std::int64_t m_bestPeak = 0;
    bool m_unproven = false;
    PeakSolution m_solution;
};

} // namespace shardscope::planner
