// SPDX-License-Identifier: GPL-3.0-or-later
#include "planner/search/Remedies.h"

#include <fmt/format.h>

#include <algorithm>

namespace shardscope::planner {

namespace {

struct Candidate {
    std::string change;
    PlanRequest request;
    bool changesNumerics = false;
};

std::vector<Candidate> candidates(const PlanRequest& request) {
    std::vector<Candidate> list;
    const auto add = [&](std::string change, bool numerics, auto edit) {
        PlanRequest changed = request;
        edit(changed);
        list.push_back({std::move(change), std::move(changed), numerics});
    };
    if (!request.pins.empty())
        add("drop the pins", false, [](PlanRequest& r) { r.pins.clear(); });
    if (!request.allowShard || !request.allowKeep)
        add("allow every placement", false,
            [](PlanRequest& r) { r.allowReplicate = r.allowKeep = r.allowShard = true; });
    if (request.recompute == contract::RecomputePolicy::Off || !request.recomputePins.empty())
        add("recompute auto", false, [](PlanRequest& r) {
            r.recompute = contract::RecomputePolicy::Auto;
            r.recomputePins.clear();
        });
    if (request.microBatch > 1 && request.globalBatch == 0)
        add("batch 1", false, [](PlanRequest& r) { r.microBatch = 1; });
    if (request.globalBatch > 0 && (request.microBatch > 0 || request.accumulate > 0))
        add("micro-batch and accumulation auto", false, [](PlanRequest& r) { r.microBatch = r.accumulate = 0; });
    if (request.slices != std::vector<std::int32_t>{1, 2, 4, 8, 16})
        add("slices 1,2,4,8,16", false, [](PlanRequest& r) { r.slices = {1, 2, 4, 8, 16}; });
    const contract::Cluster& cluster = request.cluster;
    if (request.globalBatch == 0)
        add(fmt::format("devices {}", 2 * cluster.devices()), false,
            [](PlanRequest& r) { r.cluster.nodes > 1 ? r.cluster.nodes *= 2 : r.cluster.devicesPerNode *= 2; });
    if (!cluster.isCpu) {
        for (const char* precision : {"bf16-adam8bit", "bf16-pure-adam"}) {
            if (request.precision != precision && cluster.device.flopsBf16 > 0)
                add(fmt::format("precision {}", precision), true, [&](PlanRequest& r) { r.precision = precision; });
        }
    }
    if (request.graph->sequence >= 256) {
        if (const auto shorter = withSequence(request.graph, request.graph->sequence / 2))
            add(fmt::format("sequence {}", request.graph->sequence / 2), true,
                [&](PlanRequest& r) { r.graph = *shorter; });
    }
    return list;
}

} // namespace

std::vector<Remedy> findRemedies(const PlanRequest& request, std::int64_t limitBytes, const SearchBudget& budget) {
    std::vector<Remedy> remedies;
    for (Candidate& candidate : candidates(request)) {
        const auto planner = Planner::create(candidate.request);
        if (!planner)
            continue;
        const PlanResultPointer plan = (*planner)->solve(limitBytes, budget);
        if (plan->feasible)
            remedies.push_back({std::move(candidate.change), std::move(candidate.request), plan->peakBytes,
                                plan->samplesPerSecond, candidate.changesNumerics});
    }
    std::stable_sort(remedies.begin(), remedies.end(), [](const Remedy& a, const Remedy& b) {
        if (a.changesNumerics != b.changesNumerics)
            return b.changesNumerics;
        return a.samplesPerSecond * static_cast<double>(a.request.graph->sequence) >
               b.samplesPerSecond * static_cast<double>(b.request.graph->sequence);
    });
    return remedies;
}

} // namespace shardscope::planner
