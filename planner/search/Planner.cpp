// SPDX-License-Identifier: GPL-3.0-or-later
#include "planner/search/Planner.h"

#include "planner/search/PlanAssembly.h"
#include "planner/search/PlanSearch.h"
#include "planner/search/Reasons.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <mutex>

namespace shardscope::planner {

namespace {

/// Below so many samples a device, steps are nowhere near the limit of exact numbers.
constexpr std::int64_t kManySamples = 4096;

class ExactPlanner final : public Planner {
public:
    explicit ExactPlanner(DecisionSpace space) : m_search(std::move(space)) {}

    bool countsExactly() const { return m_search.countsExactly(); }
    const PlanRequest& request() const override { return m_search.space().request(); }

    PlanResultPointer solve(std::int64_t limitBytes, const SearchBudget& budget) const override {
        const auto begin = std::chrono::steady_clock::now();
        const SearchOutcome outcome = m_search.search(limitBytes, budget);
        const std::chrono::duration<double, std::milli> spent = std::chrono::steady_clock::now() - begin;
        return assemblePlan(m_search, limitBytes, outcome, spent.count());
    }

    Frontier frontier(std::int32_t points, const SearchBudget& budget, const Progress& progress) const override {
        Frontier frontier;
        frontier.smallestFeasibleBytes = m_search.smallestFeasibleBytes();
        frontier.largestUsefulBytes = std::max(largestBudget(), frontier.smallestFeasibleBytes);
        frontier.points = solvePoints(wantedBudgets(frontier, points), budget, progress);
        return frontier;
    }

    std::vector<FrontierPoint> breakpoints(const SearchBudget& budget, const Progress& progress) const override {
        std::vector<std::int64_t> budgets;
        for (const PlanSearch::Supported& supported : m_search.supportedBudgets(largestBudget(), budget.stop)) {
            if (supported.peak >= m_search.smallestFeasibleBytes())
                budgets.push_back(supported.peak);
        }
        return solvePoints(budgets, budget, progress);
    }

    std::vector<Reason> reasons(const PlanResult& plan, std::int32_t op, const SearchBudget& budget) const override {
        return explainOperator(*this, m_search, plan, op, largestBudget(), budget);
    }

private:
    /// From the smallest feasible to the largest useful budget, in equal steps or by equal factors.
    static std::vector<std::int64_t> wantedBudgets(const Frontier& range, std::int32_t points) {
        const auto low = static_cast<double>(range.smallestFeasibleBytes);
        const auto high = static_cast<double>(range.largestUsefulBytes);
        std::vector<std::int64_t> budgets;
        for (std::int32_t i = 0; i < points; ++i) {
            const double share = points > 1 ? static_cast<double>(i) / (points - 1) : 0;
            const double at = high > kWideRange * low ? low * std::pow(high / low, share) : low + share * (high - low);
            budgets.push_back(i == 0            ? range.smallestFeasibleBytes
                              : i + 1 == points ? range.largestUsefulBytes
                                                : static_cast<std::int64_t>(at));
        }
        return budgets;
    }
    /// What fits a budget fits every larger one, so each search starts from the plan before. `budgets` ascend.
    std::vector<FrontierPoint> solvePoints(const std::vector<std::int64_t>& budgets, const SearchBudget& budget,
                                           const Progress& progress) const {
        std::vector<FrontierPoint> points;
        Incumbent known;
        for (std::size_t i = 0; i < budgets.size(); ++i) {
            const SearchOutcome outcome = m_search.search(budgets[i], budget, known);
            if (outcome.cancelled)
                break;
            if (!outcome.best.table)
                continue;
            known = outcome.best;
            FrontierPoint& point = points.emplace_back();
            point.memoryBytes = budgets[i];
            fill(point, outcome);
            if (progress)
                progress(static_cast<double>(i + 1) / static_cast<double>(budgets.size()));
        }
        return points;
    }
    void fill(FrontierPoint& point, const SearchOutcome& outcome) const {
        const Incumbent& best = outcome.best;
        point.peakBytes = best.peak;
        point.stepSeconds = static_cast<double>(best.time) * 1e-12;
        point.samplesPerSecond = static_cast<double>(best.product() * m_search.space().ranks()) / point.stepSeconds;
        point.microBatch = best.table->batch().samples;
        const double value = static_cast<double>(best.product()) / static_cast<double>(best.time);
        point.gap = outcome.proven ? 0 : std::max(0.0, 1 - value / outcome.upperBound);
        point.counts = countPlacements(m_search.space(), best.runs);
    }
    /// max(device memory, what plain data parallelism needs at its smallest batch and some more), so that the whole way
    /// from everything sharded to everything replicated can be walked; at most four devices' memory.
    std::int64_t largestBudget() const {
        std::call_once(m_largestOnce, [this] { m_largestBudget = findLargestBudget(); });
        return m_largestBudget;
    }
    std::int64_t findLargestBudget() const {
        const std::int64_t device = request().cluster.device.memoryBytes;
        PlanRequest replicated = request();
        replicated.pins = {{"*", contract::Placement{}}};
        const auto space = DecisionSpace::create(replicated);
        if (!space)
            return device;
        const std::int64_t needed = PlanSearch(*space).smallestFeasibleBytes();
        return std::max(device, std::min(needed + needed / 5, 4 * device));
    }

    PlanSearch m_search;
    mutable std::once_flag m_largestOnce;
    mutable std::int64_t m_largestBudget = 0;
};

} // namespace

SearchBudget interactiveBudget() {
    constexpr std::int64_t kWork = 250'000; // about 10 ms
    SearchBudget budget;
    budget.workLimit = kWork;
    return budget;
}

contract::Result<std::shared_ptr<const Planner>> Planner::create(const PlanRequest& request) {
    auto space = DecisionSpace::create(request);
    if (!space)
        return tl::unexpected(space.error());
    const DecisionSpace::Batch smallest = space->batches().front();
    auto planner = std::make_shared<const ExactPlanner>(std::move(*space));
    if (smallest.product() >= kManySamples && !planner->countsExactly())
        return contract::usageError(fmt::format("micro-batch {} x accumulate {}: a step would take more than 2^62 "
                                                "picoseconds (53 days), beyond what is counted exactly",
                                                smallest.samples, smallest.accumulate));
    return planner;
}

} // namespace shardscope::planner
