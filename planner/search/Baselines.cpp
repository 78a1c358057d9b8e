// SPDX-License-Identifier: GPL-3.0-or-later
#include "planner/search/Planner.h"

namespace shardscope::planner {

namespace {

PlanRequest restrictedTo(const PlanRequest& request, bool replicate, bool keep, bool shard) {
    PlanRequest fixed = request;
    fixed.mode = CostMode::Full;
    fixed.pins.clear();
    fixed.allowReplicate = replicate;
    fixed.allowKeep = keep;
    fixed.allowShard = shard;
    fixed.allowWorldGroup = true;
    fixed.allowNodeGroup = false;
    fixed.coalescing = Coalescing::Never;
    return fixed;
}

} // namespace

std::vector<BaselinePolicy> baselinePolicies(const PlanRequest& request) {
    const bool severalNodes = request.cluster.nodes > 1 && request.cluster.devicesPerNode > 1;
    std::vector<BaselinePolicy> policies;
    policies.push_back(
        {"DDP", "everything replicated, gradients in buckets", restrictedTo(request, true, false, false)});

    PlanRequest zero2 = restrictedTo(request, false, true, false);
    zero2.coalescing = Coalescing::Auto;
    policies.push_back({"ZeRO-2", "gradients and optimizer sharded, weights whole", zero2});

    PlanRequest fsdp = restrictedTo(request, false, false, true);
    fsdp.coalescing = Coalescing::Always;
    fsdp.slices = {1};
    fsdp.prefetchDepth = 1;
    policies.push_back({"FSDP", "everything sharded, one collective a block, prefetch 1", fsdp});
    if (severalNodes) {
        PlanRequest hsdp = fsdp;
        hsdp.allowWorldGroup = false;
        hsdp.allowNodeGroup = true;
        policies.push_back({"HSDP", "as FSDP inside each node, replicated across nodes", hsdp});
    }
    PlanRequest osdp = restrictedTo(request, true, false, true);
    osdp.slices = {1};
    policies.push_back({"OSDP", "replicate or shard whole operators, as in the paper", osdp});
    PlanRequest splitting = osdp;
    splitting.slices = request.slices;
    policies.push_back({"OSDP with splitting", "the paper's operator splitting as well", splitting});
    return policies;
}

std::vector<Baseline> solveBaselines(const PlanRequest& request, std::int64_t limitBytes, const SearchBudget& budget) {
    std::vector<Baseline> baselines;
    for (BaselinePolicy& policy : baselinePolicies(request)) {
        const auto planner = Planner::create(policy.request);
        if (!planner)
            continue; // the request contradicts the policy, for example by a slice count it does not have
        PlanResultPointer plan = (*planner)->solve(limitBytes, budget);
        if (plan->cancelled)
            break;
        Baseline baseline;
        baseline.name = std::move(policy.name);
        baseline.what = std::move(policy.what);
        baseline.feasible = plan->feasible;
        baseline.peakBytes = plan->peakBytes;
        baseline.samplesPerSecond = plan->samplesPerSecond;
        baseline.stepSeconds = plan->stepSeconds;
        baseline.microBatch = plan->training.microBatch;
        baseline.smallestFeasibleBytes = plan->smallestFeasibleBytes;
        baseline.plan = std::move(plan);
        baselines.push_back(std::move(baseline));
    }
    return baselines;
}

} // namespace shardscope::planner
