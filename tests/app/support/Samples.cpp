// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/support/Samples.h"

#include "runtime/contract/Bytes.h"

namespace shardscope::test {

using namespace contract;

planner::PlanResultPointer samplePlan(int blocks, int sharded) {
    auto graph = std::make_shared<planner::Graph>();
    graph->name = graph->title = "sample";
    graph->family = "gpt2";
    graph->sequence = 1024;
    auto plan = std::make_shared<planner::PlanResult>();
    const auto add = [&](const std::string& name, int block, Placement placement, std::int64_t mebibytes) {
        Operator op;
        op.name = name;
        op.block = block;
        if (block >= 0)
            op.blockName = "h." + std::to_string(block);
        planner::PlannedOperator planned;
        planned.op = static_cast<std::int32_t>(graph->operators.size());
        planned.placement = placement;
        const std::int64_t divide = placement.isSharded() ? 8 : 1;
        planned.cost.memory[Category::Parameters] = mebibytes * kMiB / divide;
        planned.cost.memory[Category::Gradients] = mebibytes * kMiB / 8;
        planned.cost.memory[Category::Optimizer] = 2 * mebibytes * kMiB / 8;
        planned.cost.memory[Category::Activations] = 30 * kMiB;
        planned.cost.memory[Category::Gathered] = placement.isSharded() ? mebibytes * kMiB / 4 : 0;
        planned.cost.computeSeconds = 0.004;
        planned.cost.gatherSeconds = placement.isSharded() ? 0.003 : 0.001;
        planned.cost.reduceSeconds = 0.001;
        planned.cost.exposedGatherSeconds = 0.0005;
        planned.cost.communicatedBytes = mebibytes * kMiB;
        for (int c = 0; c < kCategoryCount; ++c)
            plan->ledger.bytes[static_cast<std::size_t>(c)] += planned.cost.memory.bytes[static_cast<std::size_t>(c)];
        graph->operators.push_back(op);
        plan->operators.push_back(planned);
    };
    const Placement shard{PlacementKind::Shard, 4, 4, ShardGroup::World};
    const Placement keep{PlacementKind::Keep, 1, 1, ShardGroup::World};
    add("wte", -1, shard, 300);
    for (int b = 0; b < blocks; ++b) {
        add("h." + std::to_string(b) + ".attn.c_attn", b, b < sharded ? shard : keep, 40);
        add("h." + std::to_string(b) + ".mlp.c_fc", b, b < sharded ? shard : keep, 60);
    }
    add("lm_head", -1, shard, 0);
    plan->request.graph = graph;
    plan->feasible = true;
    plan->limitBytes = 16 * kGiB;
    plan->ledger[Category::Context] = kGiB;
    plan->peakBytes = plan->ledger.total();
    plan->peaks = {plan->peakBytes, plan->peakBytes, plan->peakBytes / 2};
    plan->stepSeconds = 0.25;
    plan->samplesPerSecond = 100;
    plan->tokensPerSecond = 102400;
    plan->peakOperator = static_cast<std::int32_t>(plan->operators.size()) - 1;
    return plan;
}

planner::Frontier sampleFrontier() {
    planner::Frontier frontier;
    for (int i = 0; i < 40; ++i) {
        planner::FrontierPoint point;
        point.memoryBytes = (6 + i / 2) * kGiB;
        point.peakBytes = point.memoryBytes - kGiB / 4;
        point.samplesPerSecond = 200 - 120.0 / (1 + i * 0.4);
        point.microBatch = 4;
        point.counts.keep = i / 2;
        point.counts.shard = 40 - i / 2;
        frontier.points.push_back(point);
    }
    frontier.smallestFeasibleBytes = frontier.points.front().peakBytes;
    return frontier;
}

} // namespace shardscope::test
