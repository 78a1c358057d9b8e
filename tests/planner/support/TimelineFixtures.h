// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "planner/support/PlannerFixtures.h"
#include "planner/timeline/PlannedStep.h"

#include <cstdint>
#include <random>
#include <string>
#include <vector>

namespace shardscope::testing {

/// One forward of a matrix operator of timedGraph().
inline constexpr double kForwardSeconds = 1e-3;

/// Matrices of P0 parameters, a millisecond of forward each; `blocks`: all in one block.
inline planner::GraphPointer timedGraph(std::size_t count, bool oneBlock = false,
                                        double forwardSeconds = kForwardSeconds) {
    auto graph =
        std::make_shared<planner::Graph>(*matrixGraph(std::vector<std::int64_t>(count, kP0), 0, 3 * forwardSeconds));
    for (contract::Operator& op : graph->operators) {
        if (!oneBlock)
            continue;
        op.block = 0;
        op.blockName = "h.0";
        op.name = "h.0." + op.name;
    }
    return graph;
}

struct StepRecipe {
    planner::GraphPointer graph;
    contract::Cluster cluster;
    std::vector<std::string> placements; ///< per operator; the last repeats
    bool recompute = false;
    std::int32_t prefetch = 1;
    std::int64_t microBatch = 1;
    std::int64_t accumulate = 1;
};

inline void lowerStep(planner::PlannedStep& step) {
    step.program = contract::buildStepProgram(step.operators(), step.decisions, step.request.prefetchDepth);
    step.buffers = contract::buildBufferTable({step.operators(), step.decisions, step.request.cluster.devices(),
                                               step.request.cluster.devicesPerNode, step.preset, step.training,
                                               step.request.prefetchDepth},
                                              step.program);
}

/// The step of decisions made by hand, in full mode with fp32-adam.
inline planner::PlannedStep makeStep(const StepRecipe& recipe) {
    planner::PlannedStep step;
    step.request.graph = recipe.graph;
    step.request.cluster = recipe.cluster;
    step.request.precision = "fp32-adam";
    step.request.prefetchDepth = recipe.prefetch;
    step.preset = *contract::findPreset("fp32-adam");
    step.training.sequence = recipe.graph->sequence;
    step.training.microBatch = recipe.microBatch;
    step.training.accumulate = recipe.accumulate;
    step.training.globalBatch = recipe.microBatch * recipe.accumulate * recipe.cluster.devices();
    for (std::size_t i = 0; i < recipe.graph->operators.size(); ++i) {
        const std::string& text = recipe.placements[std::min(i, recipe.placements.size() - 1)];
        step.decisions.push_back(
            {*contract::parsePlacement(text), recipe.recompute && recipe.graph->operators[i].block >= 0});
    }
    lowerStep(step);
    return step;
}

/// Any decisions at all for a small decoder on one or two nodes.
inline planner::PlannedStep randomStep(std::mt19937& random) {
    const auto pick = [&](std::int64_t low, std::int64_t high) {
        return std::uniform_int_distribution<std::int64_t>(low, high)(random);
    };
    const std::int64_t heads = pick(1, 3);
    StepRecipe recipe;
    recipe.graph =
        smallGraph(smallArchitecture(pick(1, 4), 8 * heads, heads, pick(17, 259), pick(0, 1) == 1), pick(1, 33));
    recipe.cluster = exampleCluster(pick(1, 8), 1e-7 * static_cast<double>(pick(0, 100)), 1e-9);
    recipe.cluster.nodes = pick(1, 2);
    recipe.cluster.between.bytesPerSecond = 1e8;
    recipe.cluster.device.flopsFp32 = 1e9 * static_cast<double>(pick(1, 100));
    recipe.cluster.hostSecondsPerCollective = 1e-6 * static_cast<double>(pick(0, 3));
    recipe.cluster.overlapEfficiency = static_cast<double>(pick(0, 10)) / 10;
    recipe.cluster.reserve = {{"context", pick(0, 4096), "assumed"}, {"collective buffers", 512, "assumed"}};
    recipe.prefetch = static_cast<std::int32_t>(pick(0, 3));
    recipe.microBatch = pick(1, 3);
    recipe.accumulate = pick(1, 3);
    recipe.placements = {"replicate"};
    planner::PlannedStep step = makeStep(recipe);
    const char* const placements[] = {"replicate",      "keep",           "shard",     "shard:2",
                                      "shard:4:3",      "shard:2:1",      "keep@node", "shard@node",
                                      "shard:3:2@node", "shard:4:1@node", "shard",     "keep"};
    std::int32_t block = -1;
    bool recompute = false;
    for (std::size_t i = 0; i < step.decisions.size(); ++i) {
        const contract::Operator& op = step.operators()[i];
        if (op.block != block)
            recompute = op.block >= 0 && pick(0, 1) == 1;
        block = op.block;
        contract::Placement placement = *contract::parsePlacement(placements[pick(0, 11)]);
        placement.slices = static_cast<std::int32_t>(std::min<std::int64_t>(placement.slices, op.maximumSlices()));
        placement.shardedSlices = std::min(placement.shardedSlices, placement.slices);
        step.decisions[i] = {placement, recompute};
    }
    const std::vector<std::int32_t> owners = contract::storageOwners(step.operators());
    for (std::size_t i = 0; i < owners.size(); ++i)
        step.decisions[i].placement = step.decisions[static_cast<std::size_t>(owners[i])].placement;
    lowerStep(step);
    return step;
}

} // namespace shardscope::testing
