// SPDX-License-Identifier: GPL-3.0-or-later
#include "planner/timeline/Finalists.h"

#include "planner/timeline/Timeline.h"

#include <algorithm>

namespace shardscope::planner {

namespace {

/// Neighbouring micro-batches looked at on each side.
constexpr std::int64_t kNeighbours = 2;

} // namespace

std::vector<Finalist> scoreFinalists(const PlanResult& best, const SearchBudget& budget) {
    std::vector<Finalist> finalists;
    const auto add = [&](std::string what, const PlanResultPointer& plan) {
        if (!plan->feasible || budget.stop.stop_requested())
            return;
        SimulationOptions options;
        options.record = false;
        if (const auto timeline = simulate(*plan, options))
            finalists.push_back({std::move(what), plan, timeline->stepSeconds(), timeline->samplesPerSecond()});
    };
    add("best", std::make_shared<const PlanResult>(best));
    const auto solve = [&](std::string what, const PlanRequest& request) {
        if (const auto planner = Planner::create(request))
            add(std::move(what), (*planner)->solve(best.limitBytes, budget));
    };
    const bool batchIsOpen = best.request.microBatch == 0;
    for (std::int64_t step = -kNeighbours; step <= kNeighbours && batchIsOpen; ++step) {
        PlanRequest request = best.request;
        request.microBatch = best.training.microBatch + step;
        if (step != 0 && request.microBatch > 0)
            solve("batch " + std::to_string(request.microBatch), request);
    }
    if (best.counts.coalesced > 0) {
        PlanRequest request = best.request;
        request.coalescing = Coalescing::Never;
        solve("without coalescing", request);
    }
    std::stable_sort(finalists.begin(), finalists.end(), [](const Finalist& a, const Finalist& b) {
        return a.simulatedSamplesPerSecond > b.simulatedSamplesPerSecond;
    });
    return finalists;
}

} // namespace shardscope::planner
