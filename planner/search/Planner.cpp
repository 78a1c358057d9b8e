// SPDX-License-Identifier: GPL-3.0-or-later
#include "planner/search/Planner.h"

#include "planner/search/PlanAssembly.h"
#include "planner/search/PlanSearch.h"
#include "planner/search/Reasons.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <mutex>

namespace shardscope::planner {

namespace {

class ExactPlanner final : public Planner {
public:
    explicit ExactPlanner(DecisionSpace space) : m_search(std::move(space)) {}

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
        for (std::int32_t i = 0; i < points && !budget.stop.stop_requested(); ++i) {
            const double share = points > 1 ? static_cast<double>(i) / (points - 1) : 0;
            const double low = static_cast<double>(frontier.smallestFeasibleBytes);
            const double high = static_cast<double>(frontier.largestUsefulBytes);
            const double at = high > kWideRange * low ? low * std::pow(high / low, share) : low + share * (high - low);
            const std::int64_t limit = i == 0            ? frontier.smallestFeasibleBytes
                                       : i + 1 == points ? frontier.largestUsefulBytes
                                                         : static_cast<std::int64_t>(at);
            const PlanResultPointer plan = solve(limit, budget);
            if (plan->cancelled)
                break;
            frontier.points.push_back({plan->limitBytes, plan->peakBytes, plan->samplesPerSecond, plan->stepSeconds,
                                       plan->training.microBatch, plan->certificate.gap, plan->counts});
            if (progress)
                progress(static_cast<double>(i + 1) / points);
        }
        return frontier;
    }

    std::vector<Reason> reasons(const PlanResult& plan, std::int32_t op, const SearchBudget& budget) const override {
        return explainOperator(*this, m_search, plan, op, largestBudget(), budget);
    }

private:
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

contract::Result<std::shared_ptr<const Planner>> Planner::create(const PlanRequest& request) {
    auto space = DecisionSpace::create(request);
    if (!space)
        return tl::unexpected(space.error());
    return std::make_shared<const ExactPlanner>(std::move(*space));
}

std::vector<Baseline> solveBaselines(const PlanRequest& request, std::int64_t limitBytes, const SearchBudget& budget) {
    using contract::Placement;
    using contract::PlacementKind;
    const std::pair<const char*, Placement> policies[] = {
        {"DDP", {}}, {"ZeRO-2", {PlacementKind::Keep, 1, 1, {}}}, {"FSDP", {PlacementKind::Shard, 1, 1, {}}}};
    std::vector<Baseline> baselines;
    for (const auto& [name, placement] : policies) {
        PlanRequest fixed = request;
        fixed.pins = {{"*", placement}};
        const auto planner = Planner::create(fixed);
        if (!planner)
            continue;
        const PlanResultPointer plan = (*planner)->solve(limitBytes, budget);
        if (plan->cancelled)
            break;
        baselines.push_back({name, plan->feasible, plan->peakBytes, plan->samplesPerSecond, plan->stepSeconds,
                             plan->training.microBatch, plan->smallestFeasibleBytes});
    }
    return baselines;
}

} // namespace shardscope::planner
