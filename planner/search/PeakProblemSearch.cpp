// SPDX-License-Identifier: GPL-3.0-or-later
#include "planner/search/PeakProblemSearch.h"

#include <algorithm>
#include <chrono>
#include <tuple>

namespace shardscope::planner {

namespace {

/// Multipliers tried on all thresholds at once; a sweep costs about as much as one knapsack's construction.
constexpr int kMaximumSweeps = 24;

} // namespace

PeakSearch::PeakSearch(const PeakProblem& problem, std::int64_t limitBytes) : m_problem(problem) {
    for (std::size_t i = 0; i < problem.m_thresholds.size(); ++i) {
        const std::int64_t capacity = limitBytes - problem.m_baseBytes - problem.m_thresholds[i];
        if (capacity >= problem.m_leastState[i])
            m_thresholds.push_back({i, capacity, problem.m_minimumTime});
    }
}

/// Any multiplier bounds every threshold: least weight - multiplier * capacity.
void PeakSearch::raiseBounds(const Slope& multiplier) {
    if (m_thresholds.size() < 3 || m_sweeps >= kMaximumSweeps)
        return;
    ++m_sweeps;
    const std::vector<Int128> weights = m_problem.leastWeights(multiplier);
    for (Threshold& threshold : m_thresholds) {
        if (threshold.stage != Stage::Guessed)
            continue;
        const Int128 scaled = weights[threshold.index] - static_cast<Int128>(multiplier.time) * threshold.capacity;
        if (scaled <= 0)
            continue;
        const Int128 bound = (scaled + multiplier.bytes - 1) / multiplier.bytes;
        threshold.bound = std::max(threshold.bound, static_cast<std::int64_t>(bound));
    }
}

const PeakProblem::Restricted& PeakSearch::restricted(std::size_t threshold) {
    if (!m_current || m_currentThreshold != threshold) {
        m_current = m_problem.restricted(threshold);
        m_currentThreshold = threshold;
    }
    return *m_current;
}

std::optional<std::size_t> PeakSearch::nextThreshold(const Interrupt& interrupt) {
    while (true) {
        std::optional<std::size_t> best;
        for (std::size_t i = 0; i < m_thresholds.size(); ++i) {
            const Threshold& threshold = m_thresholds[i];
            if (threshold.stage == Stage::Searched)
                continue;
            const auto key = [&](const Threshold& t) {
                return std::tuple(t.bound, m_problem.m_leastState[t.index] + m_problem.m_thresholds[t.index]);
            };
            if (!best || key(threshold) < key(m_thresholds[*best]))
                best = i;
        }
        if (!best || m_thresholds[*best].stage != Stage::Guessed)
            return best;
        Threshold& threshold = m_thresholds[*best];
        // With a solution in hand a guessed bound will do when time is up.
        if (threshold.bound > m_bestTime || (m_solution.feasible && interrupt.due()))
            return best;
        const Knapsack& knapsack = restricted(threshold.index).knapsack;
        threshold.bound = std::max(threshold.bound, knapsack.lowerBound(threshold.capacity));
        threshold.stage = Stage::Bounded;
        raiseBounds(knapsack.multiplier(threshold.capacity));
    }
}

std::int64_t PeakSearch::linearBound() {
    const auto first = nextThreshold();
    return first ? m_thresholds[*first].bound : kInfeasibleTime;
}

void PeakSearch::accept(const KnapsackSolution& found, const PeakProblem::Restricted& restricted) {
    std::int64_t transient = 0;
    std::vector<std::vector<std::int32_t>> counts(m_problem.m_groups.size());
    for (std::size_t g = 0; g < counts.size(); ++g) {
        const auto& options = m_problem.m_groups[g].options;
        counts[g].assign(options.size(), 0);
        for (std::size_t o = 0; o < restricted.options[g].size(); ++o) {
            const std::int32_t option = restricted.options[g][o];
            counts[g][option] = found.counts[g][o];
            if (found.counts[g][o] > 0)
                transient = std::max(transient, options[option].transientBytes);
        }
    }
    const std::int64_t peak = m_problem.m_baseBytes + found.bytes + transient;
    if (m_solution.feasible && std::tie(found.time, peak) >= std::tie(m_bestTime, m_bestPeak))
        return;
    m_bestTime = found.time;
    m_bestPeak = peak;
    m_solution.feasible = true;
    m_solution.time = found.time;
    m_solution.peakBytes = peak;
    m_solution.stateBytes = found.bytes;
    m_solution.transientBytes = transient;
    m_solution.counts = std::move(counts);
    m_solution.shadowPrice = found.shadowPrice;
}

/// Every threshold that matters is looked at before any is searched, so that the gap is small at once.
void PeakSearch::tryQuickly(Threshold& threshold, const Interrupt& interrupt) {
    const PeakProblem::Restricted& choices = restricted(threshold.index);
    threshold.stage = Stage::Tried;
    threshold.bound = std::max(threshold.bound, choices.knapsack.latticeBound(threshold.capacity));
    if (m_solution.feasible && threshold.bound >= m_bestTime)
        return;
    const KnapsackSolution found =
        choices.knapsack.incumbent(threshold.capacity, choices.knapsack.thoroughWidth(), interrupt);
    m_solution.work += static_cast<std::int64_t>(m_problem.m_groups.size());
    if (found.feasible && (found.time < m_bestTime || m_solution.feasible))
        accept(found, choices);
}

/// Leaves the threshold searched, with its certified bound.
void PeakSearch::search(Threshold& threshold, const SearchLimits& limits) {
    const PeakProblem::Restricted& choices = restricted(threshold.index);
    threshold.stage = Stage::Searched;
    KnapsackCutoff cutoff{m_bestTime, 0, threshold.bound};
    std::int64_t capacity = threshold.capacity;
    if (m_solution.feasible) {
        // At equal time only a smaller peak is of interest, and where less time is impossible that is all there is to
        // find.
        cutoff.bytes = m_bestPeak - m_problem.m_baseBytes - m_problem.m_thresholds[threshold.index];
        if (threshold.bound == m_bestTime)
            capacity = std::min(capacity, cutoff.bytes - 1);
        if (capacity < 0 || choices.knapsack.lowerBound(capacity) > m_bestTime)
            return;
    }
    ++m_solution.thresholds;
    const KnapsackSolution found = choices.knapsack.solve(capacity, limits, cutoff);
    m_solution.work += found.work;
    m_solution.cancelled = m_solution.cancelled || found.cancelled;
    threshold.bound = std::max(threshold.bound, found.lowerBound);
    m_unproven = m_unproven || !found.proven;
    if (found.feasible)
        accept(found, choices);
}

std::int64_t PeakSearch::leastBound() const {
    std::int64_t least = m_solution.feasible ? m_bestTime : kInfeasibleTime;
    for (const Threshold& threshold : m_thresholds)
        least = std::min(least, threshold.bound);
    return least;
}

PeakSolution PeakSearch::run(const SearchLimits& limits, std::int64_t cutoffTime) {
    const auto start = std::chrono::steady_clock::now();
    const Interrupt interrupt(limits, start);
    m_bestTime = cutoffTime;
    while (const auto next = nextThreshold(interrupt)) {
        Threshold& threshold = m_thresholds[*next];
        const bool tooLate = m_solution.feasible ? threshold.bound > m_bestTime : threshold.bound >= m_bestTime;
        if (tooLate)
            break;
        if (m_solution.feasible && limits.tolerance > 0 &&
            static_cast<double>(m_bestTime - leastBound()) <= limits.tolerance * static_cast<double>(m_bestTime)) {
            m_unproven = m_unproven || threshold.bound < m_bestTime;
            break;
        }
        SearchLimits rest = limits;
        if (m_solution.feasible || m_solution.thresholds > 0) {
            // What an earlier threshold has used up is gone, but the first one always gives an answer.
            const std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - start;
            rest.workLimit = limits.workLimit > 0 ? limits.workLimit - m_solution.work : 0;
            rest.timeLimitSeconds = limits.timeLimitSeconds > 0 ? limits.timeLimitSeconds - elapsed.count() : 0;
            if ((limits.workLimit > 0 && rest.workLimit <= 0) ||
                (limits.timeLimitSeconds > 0 && rest.timeLimitSeconds <= 0) || limits.stop.stop_requested()) {
                m_solution.cancelled = m_solution.cancelled || limits.stop.stop_requested();
                m_unproven = true;
                break;
            }
        }
        if (threshold.stage == Stage::Bounded)
            tryQuickly(threshold, interrupt);
        else
            search(threshold, rest);
    }
    m_solution.lowerBound = leastBound();
    m_solution.proven = !m_unproven || (m_solution.feasible && m_solution.lowerBound >= m_solution.time);
    if (m_solution.feasible && m_solution.proven)
        m_solution.lowerBound = m_solution.time;
    if (m_solution.feasible && m_solution.time > 0) {
        m_solution.gap =
            static_cast<double>(m_solution.time - m_solution.lowerBound) / static_cast<double>(m_solution.time);
    }
    return m_solution;
}

} // namespace shardscope::planner
