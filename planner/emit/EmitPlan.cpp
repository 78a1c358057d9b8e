// SPDX-License-Identifier: GPL-3.0-or-later
#include "planner/search/Planner.h"
#include "runtime/contract/Preset.h"
#include "runtime/contract/StepProgram.h"

namespace shardscope::planner {

contract::Plan emitPlan(const PlanResult& result, const std::string& createdBy) {
    using contract::Category;
    const PlanRequest& request = result.request;
    const Graph& graph = *request.graph;
    contract::Plan plan;
    plan.createdBy = createdBy;
    plan.graph = {graph.name, graph.family, graph.sha256(), graph.architecture};
    plan.cluster = request.cluster;
    plan.training = result.training;
    plan.parallel = {1, 1, request.cluster.devices()};
    plan.target = request.cluster.isCpu ? "cpu" : "cuda";
    plan.mode = request.mode == CostMode::Paper ? "paper" : "full";
    plan.limitBytes = result.limitBytes;
    plan.prefetchDepth = request.mode == CostMode::Paper ? 0 : request.prefetchDepth;
    std::vector<contract::OperatorDecision> decisions;
    for (const PlannedOperator& planned : result.operators) {
        const contract::Operator& op = graph.operators[static_cast<std::size_t>(planned.op)];
        plan.operators.push_back({op.name, planned.placement, planned.recompute, op.tiedTo, planned.coalesced});
        decisions.push_back({planned.placement, planned.recompute, planned.coalesced});
        const OperatorCost& cost = planned.cost;
        plan.predicted.perOperator.push_back(
            {op.name,
             cost.memory[Category::Parameters] + cost.memory[Category::Gradients] + cost.memory[Category::Optimizer],
             cost.memory[Category::Activations], cost.memory[Category::Gathered] + cost.memory[Category::Unreduced],
             cost.computeSeconds + cost.recomputeSeconds + cost.optimizerSeconds,
             cost.gatherSeconds + cost.reduceSeconds, cost.exposedSeconds()});
    }
    const auto preset = contract::findPreset(result.training.precision);
    const contract::StepProgram program = contract::buildStepProgram(graph.operators, decisions, plan.prefetchDepth);
    if (preset) {
        plan.buffers =
            contract::buildBufferTable({graph.operators, decisions, plan.parallel.data, request.cluster.devicesPerNode,
                                        *preset, plan.training, plan.prefetchDepth},
                                       program);
    }
    plan.predicted.peakBytes = result.peakBytes;
    plan.predicted.peaks = result.peaks;
    plan.predicted.ledger = result.ledger;
    plan.predicted.stepSeconds = result.stepSeconds;
    plan.predicted.samplesPerSecond = result.samplesPerSecond;
    plan.certificate = result.certificate;
    return plan;
}

} // namespace shardscope::planner
