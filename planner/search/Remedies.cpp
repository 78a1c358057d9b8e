// SPDX-License-Identifier: GPL-3.0-or-later
#include "planner/search/Remedies.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>

namespace shardscope::planner {

namespace {

constexpr std::int64_t kMostDevices = 2048; ///< beyond them no remedy is looked for

struct Change {
    std::string text;
    bool changesNumerics = false;
    std::string what; ///< two changes of the same thing make no pair
    std::function<void(PlanRequest&)> apply;
};

void addPlacementChanges(const PlanRequest& request, std::vector<Change>& changes) {
    if (!request.pins.empty())
        changes.push_back({"drop the pins", false, "pins", [](PlanRequest& r) { r.pins.clear(); }});
    if (!request.allowShard || !request.allowKeep || !request.allowWorldGroup)
        changes.push_back({"allow every placement", false, "placements", [](PlanRequest& r) {
                               r.allowReplicate = r.allowKeep = r.allowShard = true;
                               r.allowWorldGroup = r.allowNodeGroup = true;
                           }});
    if (request.coalescing == Coalescing::Always)
        changes.push_back(
            {"coalescing auto", false, "coalescing", [](PlanRequest& r) { r.coalescing = Coalescing::Auto; }});
    if (request.slices != std::vector<std::int32_t>{1, 2, 4, 8, 16})
        changes.push_back({"slices 1,2,4,8,16", false, "slices", [](PlanRequest& r) { r.slices = {1, 2, 4, 8, 16}; }});
    else
        changes.push_back(
            {"slices 1,2,4,8,16,32,64", false, "slices", [](PlanRequest& r) { r.slices = {1, 2, 4, 8, 16, 32, 64}; }});
    if (request.prefetchDepth > 0)
        changes.push_back({"prefetch 0", false, "prefetch", [](PlanRequest& r) { r.prefetchDepth = 0; }});
}

void addActivationChanges(const PlanRequest& request, std::vector<Change>& changes) {
    if (request.recompute == contract::RecomputePolicy::Off || !request.recomputePins.empty())
        changes.push_back({"recompute auto", false, "recompute", [](PlanRequest& r) {
                               r.recompute = contract::RecomputePolicy::Auto;
                               r.recomputePins.clear();
                           }});
    if (request.microBatch > 1 && request.globalBatch == 0)
        changes.push_back({"batch 1", false, "batch", [](PlanRequest& r) { r.microBatch = 1; }});
    if (request.globalBatch > 0 && (request.microBatch > 0 || request.accumulate > 0))
        changes.push_back({"micro-batch and accumulation auto", false, "batch",
                           [](PlanRequest& r) { r.microBatch = r.accumulate = 0; }});
    if (request.mode == CostMode::Full) {
        for (const std::int64_t chunks : {4, 16}) {
            if (chunks > request.lossChunks)
                changes.push_back({fmt::format("loss-chunks {}", chunks), false, "loss",
                                   [chunks](PlanRequest& r) { r.lossChunks = chunks; }});
        }
    }
}

/// Whether more devices may help. Processes on the cores of one machine share its memory, and a fixed global batch may
/// not divide by their number; without a link between nodes nothing is known of several.
bool mayGrow(const PlanRequest& request) {
    return request.globalBatch == 0 && !request.cluster.isCpu && request.cluster.between.bytesPerSecond > 0;
}

/// More machines like those there are, over the link between nodes.
Change moreNodes(std::int64_t nodes, std::int64_t devicesPerNode) {
    return {fmt::format("devices {}x{}", nodes, devicesPerNode), false, "devices",
            [nodes](PlanRequest& r) { r.cluster.nodes = nodes; }};
}

void addOtherChanges(const PlanRequest& request, std::vector<Change>& changes) {
    if (mayGrow(request))
        changes.push_back(moreNodes(2 * request.cluster.nodes, request.cluster.devicesPerNode));
    if (!request.cluster.isCpu && request.cluster.device.flopsBf16 > 0) {
        for (const char* precision : {"bf16-adam8bit", "bf16-pure-adam"}) {
            if (request.precision != precision)
                changes.push_back({fmt::format("precision {}", precision), true, "precision",
                                   [precision](PlanRequest& r) { r.precision = precision; }});
        }
    }
    for (const std::int64_t divisor : {2, 4}) {
        const std::int64_t sequence = request.graph->sequence / divisor;
        if (sequence < 128)
            continue;
        if (const auto shorter = withSequence(request.graph, sequence))
            changes.push_back({fmt::format("sequence {}", sequence), true, "sequence",
                               [graph = *shorter](PlanRequest& r) { r.graph = graph; }});
    }
}

} // namespace

std::vector<Remedy> findRemedies(const PlanRequest& request, std::int64_t limitBytes, const SearchBudget& budget) {
    std::vector<Change> changes;
    addPlacementChanges(request, changes);
    addActivationChanges(request, changes);
    addOtherChanges(request, changes);

    std::vector<Remedy> remedies;
    const auto verify = [&](std::string text, PlanRequest changed, bool numerics, bool isPair) {
        const auto planner = Planner::create(changed);
        if (!planner)
            return false;
        const PlanResultPointer plan = (*planner)->solve(limitBytes, budget);
        if (plan->feasible)
            remedies.push_back(
                {std::move(text), std::move(changed), plan->peakBytes, plan->samplesPerSecond, numerics, isPair});
        return plan->feasible;
    };
    std::vector<const Change*> insufficient;
    // The fewest machines that suffice, where more than twice as many are needed.
    const auto findNodes = [&] {
        const auto fits = [&](std::int64_t nodes) {
            PlanRequest changed = request;
            changed.cluster.nodes = nodes;
            const auto planner = Planner::create(changed);
            return planner && (*planner)->solve(limitBytes, budget)->feasible;
        };
        std::int64_t enough = 4 * request.cluster.nodes;
        while (enough * request.cluster.devicesPerNode <= kMostDevices && !budget.stop.stop_requested() &&
               !fits(enough))
            enough *= 2;
        if (enough * request.cluster.devicesPerNode > kMostDevices || budget.stop.stop_requested())
            return;
        std::int64_t tooFew = enough / 2;
        while (enough - tooFew > 1 && !budget.stop.stop_requested()) {
            const std::int64_t middle = tooFew + (enough - tooFew) / 2;
            (fits(middle) ? enough : tooFew) = middle;
        }
        const Change change = moreNodes(enough, request.cluster.devicesPerNode);
        PlanRequest changed = request;
        change.apply(changed);
        verify(change.text, std::move(changed), false, false);
    };
    for (const Change& change : changes) {
        if (budget.stop.stop_requested())
            return remedies;
        PlanRequest changed = request;
        change.apply(changed);
        if (!verify(change.text, std::move(changed), change.changesNumerics, false))
            insufficient.push_back(&change);
    }
    if (mayGrow(request) && std::any_of(insufficient.begin(), insufficient.end(),
                                        [](const Change* change) { return change->what == "devices"; }))
        findNodes();
    for (std::size_t i = 0; i < insufficient.size(); ++i) {
        for (std::size_t j = i + 1; j < insufficient.size() && !budget.stop.stop_requested(); ++j) {
            const Change& a = *insufficient[i];
            const Change& b = *insufficient[j];
            if (a.what == b.what)
                continue;
            PlanRequest changed = request;
            b.apply(changed); // a shorter sequence replaces the graph, the rest does not depend on order
            a.apply(changed);
            verify(a.text + ", " + b.text, std::move(changed), a.changesNumerics || b.changesNumerics, true);
        }
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
