// SPDX-License-Identifier: GPL-3.0-or-later
#include "runtime/execute/PlanSetup.h"

#include "runtime/memory/BufferPool.h"

#include <fmt/format.h>

#include <algorithm>

namespace shardscope::engine {

namespace {

contract::Result<void> checkRunnable(const contract::Plan& plan) {
    if (!plan.graph.architecture)
        return contract::badInput(fmt::format(
            "plan: graph.architecture is missing: this runtime trains decoders of the gpt2 family, not \"{}\"",
            plan.graph.family));
    if (!plan.graph.architecture->isGpt2())
        return contract::badInput(
            fmt::format("plan: graph.architecture.family is \"{}\"; this runtime trains the gpt2 family",
                        plan.graph.architecture->family));
    if (plan.graph.architecture->activation != contract::Activation::GeluTanh)
        return contract::badInput("plan: graph.architecture.activation: this runtime computes gelu_tanh");
    constexpr std::string_view kPreset = "fp32-adam";
    if (plan.training.precision != kPreset)
        return contract::badInput(fmt::format("plan: training.precision is \"{}\"; on a CPU this runtime trains {}",
                                              plan.training.precision, kPreset));
    if (plan.training.lossChunks != 1)
        return contract::badInput(fmt::format(
            "plan: training.loss_chunks is {}; this runtime computes the loss in 1 piece", plan.training.lossChunks));
    if (plan.parallel.pipeline != 1 || plan.parallel.tensor != 1)
        return contract::badInput(
            "plan: parallel.pipeline and parallel.tensor must be 1: this runtime runs data parallelism");
    if (const std::string& schedule = plan.training.optimizer.schedule; schedule != "constant" && schedule != "cosine")
        return contract::badInput(
            fmt::format("plan: training.optimizer.schedule is \"{}\"; known are constant, cosine", schedule));
    if (plan.training.optimizer.name != "adamw")
        return contract::badInput(
            fmt::format("plan: training.optimizer.name is \"{}\"; known is adamw", plan.training.optimizer.name));
    for (std::size_t i = 0; i < plan.operators.size(); ++i)
        if (plan.operators[i].placement.group == contract::ShardGroup::Node && plan.cluster.nodes > 1)
            return contract::badInput(fmt::format(
                "plan: operators[{}].group of \"{}\" is \"node\" on {} nodes; this runtime shards over all ranks", i,
                plan.operators[i].name, plan.cluster.nodes));
    return {};
}

/// Cuts the samples of one rank into micro-batches no larger than the plan's.
contract::Result<void> resize(contract::Training& training, std::int64_t ranks) {
    if (training.globalBatch % ranks != 0)
        return contract::badInput(
            fmt::format("plan: training.global_batch {} is not divisible by {} workers", training.globalBatch, ranks));
    const std::int64_t samples = training.globalBatch / ranks;
    std::int64_t microBatch = std::min(training.microBatch, samples);
    while (samples % microBatch != 0)
        --microBatch;
    training.microBatch = microBatch;
    training.accumulate = samples / microBatch;
    return {};
}

} // namespace

contract::Result<PlanSetup> preparePlan(const contract::Plan& plan, const SetupRequest& request) {
    if (auto runnable = checkRunnable(plan); !runnable)
        return tl::unexpected(runnable.error());
    PlanSetup setup;
    setup.architecture = *plan.graph.architecture;
    setup.graphSha256 = plan.graph.sha256;
    setup.training = plan.training;
    if (request.learningRate)
        setup.training.optimizer.learningRate = *request.learningRate;
    setup.preset = *contract::findPreset(plan.training.precision);
    setup.ranks = request.workers.value_or(plan.parallel.data);
    setup.resized = setup.ranks != plan.parallel.data;
    setup.prefetchDepth = plan.prefetchDepth;
    if (auto resized = resize(setup.training, setup.ranks); !resized)
        return tl::unexpected(resized.error());
    if (!setup.resized && (setup.training.microBatch != plan.training.microBatch ||
                           setup.training.accumulate != plan.training.accumulate))
        return contract::badInput(fmt::format(
            "plan: training.global_batch {} is not micro_batch {} x accumulate {} x parallel.data {}",
            plan.training.globalBatch, plan.training.microBatch, plan.training.accumulate, plan.parallel.data));
    auto operators = contract::lowerArchitecture(setup.architecture, setup.training.sequence);
    if (!operators)
        return tl::unexpected(operators.error());
    setup.operators = std::move(*operators);
    setup.decisions = contract::planDecisions(plan);
    setup.program = contract::buildStepProgram(setup.operators, setup.decisions, setup.prefetchDepth);
    const contract::SizingInput sizing{setup.operators, setup.decisions, setup.ranks,        setup.ranks,
                                       setup.preset,    setup.training,  setup.prefetchDepth};
    const contract::BufferTable expected = contract::buildBufferTable(sizing, setup.program);
    if (setup.resized) {
        setup.table = expected;
        setup.predicted = expected.ledger();
        return setup;
    }
    if (auto fits = checkBufferTable(plan.buffers, expected); !fits)
        return tl::unexpected(fits.error());
    setup.table = plan.buffers;
    // What the arenas are predicted to take; the reserve for others is no part of what is measured.
    setup.predicted = plan.buffers.ledger();
    return setup;
}

} // namespace shardscope::engine
