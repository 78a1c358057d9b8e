// SPDX-License-Identifier: GPL-3.0-or-later
#include "runtime/execute/PlanSetup.h"

#include "runtime/contract/NativeEngine.h"
#include "runtime/memory/BufferPool.h"
#include "runtime/ops/Rotary.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <utility>

namespace shardscope::engine {

namespace {

/// Whether the decoder is one of the two kinds whose kernels exist.
contract::Result<void> checkNetwork(const contract::Architecture& a) {
    const auto refuse = [](std::string_view field, std::string_view right) {
        return contract::badInput(fmt::format("plan: graph.architecture.{}: {}", field, right));
    };
    const bool fused = a.attention == contract::AttentionLayout::Fused;
    const std::string_view kind = fused ? "fused attention" : "separate projections";
    if (a.activation != (fused ? contract::Activation::GeluTanh : contract::Activation::SiluGated))
        return refuse("activation",
                      fmt::format("this runtime computes {} with {}", fused ? "gelu_tanh" : "silu_gated", kind));
    if (a.norm != (fused ? contract::NormKind::LayerNorm : contract::NormKind::RmsNorm))
        return refuse("norm.kind",
                      fmt::format("this runtime computes {} with {}", fused ? "layer_norm" : "rms_norm", kind));
    if (fused && (a.rope || a.qkNorm))
        return refuse(a.rope ? "rope" : "qk_norm",
                      "this runtime computes neither rope nor qk_norm with fused attention");
    if (fused && a.kvHeads != a.heads)
        return refuse("kv_heads", fmt::format("is {}; fused attention has as many as heads, {}", a.kvHeads, a.heads));
    if (!fused && !a.rope)
        return refuse("rope", fmt::format("is missing; this runtime computes rotary positions with {}", kind));
    if (fused)
        return {};
    if (const auto rotary = Rotary::create(*a.rope, a.headDim); !rotary)
        return contract::badInput("plan: graph.architecture." + rotary.error().message);
    return {};
}

/// Which precisions a device trains in. On a GPU those with weights, gradients and moments of 2 or 4 bytes.
contract::Result<void> checkPrecision(const std::string& precision, DeviceKind device) {
    const auto& known = contract::trainedPresets(device == DeviceKind::Cpu);
    if (std::find(known.begin(), known.end(), precision) != known.end())
        return {};
    return contract::badInput(fmt::format("plan: training.precision is \"{}\"; on a {} this runtime trains {}",
                                          precision, device == DeviceKind::Cpu ? "CPU" : "GPU",
                                          fmt::join(known, ", ")));
}

contract::Result<void> checkGraph(const contract::Plan& plan) {
    if (!plan.graph.architecture)
        return contract::badInput(fmt::format(
            "plan: graph.architecture is missing: this runtime trains decoders of the gpt2, llama, mistral, qwen2 and "
            "qwen3 families; a graph of the family \"{}\" is trained by PyTorch, with target \"pytorch\"",
            plan.graph.family));
    return checkNetwork(*plan.graph.architecture);
}

contract::Result<void> checkRunnable(const contract::Plan& plan, DeviceKind device) {
    if (auto graph = checkGraph(plan); !graph)
        return graph;
    if (auto precision = checkPrecision(plan.training.precision, device); !precision)
        return precision;
    constexpr std::int64_t kLargestHead = 256; // of the attention kernels
    if (device == DeviceKind::Cuda && plan.graph.architecture->headDim > kLargestHead)
        return contract::badInput(fmt::format("plan: graph.architecture.head_dim is {}; on a GPU up to {} is computed",
                                              plan.graph.architecture->headDim, kLargestHead));
    if (plan.training.attention != contract::AttentionKernel::Fused)
        return contract::badInput(fmt::format("plan: training.attention is \"{}\"; this runtime computes it fused",
                                              contract::attentionKernelName(plan.training.attention)));
    const auto& window = plan.graph.architecture->window;
    if (window && window->keys < plan.training.sequence)
        return contract::badInput(fmt::format(
            "plan: graph.architecture.sliding_window.keys is {} and training.sequence {}; this runtime attends to "
            "every key, so a sequence of at most {} is right",
            window->keys, plan.training.sequence, window->keys));
    if (const std::int64_t tokens = plan.training.microBatch * plan.training.sequence;
        plan.training.lossChunks > tokens)
        return contract::badInput(
            fmt::format("plan: training.loss_chunks is {}; a micro-batch of {} x {} tokens has at most {} chunks",
                        plan.training.lossChunks, plan.training.microBatch, plan.training.sequence, tokens));
    if (plan.parallel.pipeline != 1 || plan.parallel.tensor != 1)
        return contract::badInput(
            "plan: parallel.pipeline and parallel.tensor must be 1: this runtime runs data parallelism");
    if (const std::string& schedule = plan.training.optimizer.schedule; schedule != "constant" && schedule != "cosine")
        return contract::badInput(
            fmt::format("plan: training.optimizer.schedule is \"{}\"; known are constant, cosine", schedule));
    const contract::Preset preset = *contract::findPreset(plan.training.precision);
    if (plan.training.optimizer.name != preset.optimizer())
        return contract::badInput(fmt::format("plan: training.optimizer.name is \"{}\"; the precision {} is of {}",
                                              plan.training.optimizer.name, preset.name, preset.optimizer()));
    return {};
}

/// Cuts the samples of one rank into micro-batches no larger than the plan's, and their tokens into as many chunks as
/// the plan does where there are as many.
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
    training.lossChunks = std::min(training.lossChunks, microBatch * training.sequence);
    return {};
}

/// Nodes are made of consecutive ranks, all alike.
contract::Result<void> checkNodes(const contract::Plan& plan, const PlanSetup& setup) {
    const std::int64_t size = std::min(setup.ranks, setup.devicesPerNode);
    for (std::size_t i = 0; i < plan.operators.size() && setup.ranks % size != 0; ++i)
        if (plan.operators[i].placement.group == contract::ShardGroup::Node)
            return contract::badInput(fmt::format(
                "plan: operators[{}].group of \"{}\" is \"node\", and {} workers are no whole number of nodes of "
                "cluster.devices_per_node {}; a multiple of it is right",
                i, plan.operators[i].name, setup.ranks, setup.devicesPerNode));
    return {};
}

} // namespace

contract::Result<PlanSetup> preparePlan(const contract::Plan& plan, const SetupRequest& request) {
    if (auto runnable = checkRunnable(plan, request.device); !runnable)
        return tl::unexpected(runnable.error());
    PlanSetup setup;
    setup.architecture = *plan.graph.architecture;
    setup.graphSha256 = plan.graph.sha256;
    setup.training = plan.training;
    if (request.learningRate)
        setup.training.optimizer.learningRate = *request.learningRate;
    setup.preset = *contract::findPreset(plan.training.precision);
    setup.ranks = request.workers.value_or(plan.parallel.data);
    setup.devicesPerNode = plan.cluster.nodes > 1 ? plan.cluster.devicesPerNode : setup.ranks;
    if (auto nodes = checkNodes(plan, setup); !nodes)
        return tl::unexpected(nodes.error());
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
    const contract::SizingInput sizing{setup.operators, setup.decisions, setup.ranks,        setup.devicesPerNode,
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

contract::Result<PlanSetup> prepareSampling(const contract::Plan& plan) {
    if (auto runnable = checkRunnable(plan, DeviceKind::Cpu); !runnable)
        return tl::unexpected(runnable.error());
    PlanSetup setup;
    setup.architecture = *plan.graph.architecture;
    setup.graphSha256 = plan.graph.sha256;
    setup.training = plan.training;
    setup.training.microBatch = setup.training.accumulate = setup.training.globalBatch = 1;
    setup.training.lossChunks = setup.training.sequence; // the logits of one token are wanted
    setup.preset = *contract::findPreset(plan.training.precision);
    auto operators = contract::lowerArchitecture(setup.architecture, setup.training.sequence);
    if (!operators)
        return tl::unexpected(operators.error());
    setup.operators = std::move(*operators);
    setup.decisions.resize(setup.operators.size());
    setup.program = contract::buildStepProgram(setup.operators, setup.decisions, setup.prefetchDepth);
    setup.table = contract::buildBufferTable(
        {setup.operators, setup.decisions, 1, 1, setup.preset, setup.training, setup.prefetchDepth}, setup.program);
    setup.predicted = setup.table.ledger();
    return setup;
}

contract::Result<PlanSetup> prepareReading(const contract::Plan& plan) {
    if (auto graph = checkGraph(plan); !graph)
        return tl::unexpected(graph.error());
    const auto preset = contract::findPreset(plan.training.precision);
    if (!preset)
        return contract::badInput(fmt::format("plan: training.precision is \"{}\"; known are {}",
                                              plan.training.precision, contract::presetNames()));
    PlanSetup setup;
    setup.architecture = *plan.graph.architecture;
    setup.graphSha256 = plan.graph.sha256;
    setup.training = plan.training;
    setup.preset = *preset;
    auto operators = contract::lowerArchitecture(setup.architecture, setup.training.sequence);
    if (!operators)
        return tl::unexpected(operators.error());
    setup.operators = std::move(*operators);
    return setup;
}

} // namespace shardscope::engine
