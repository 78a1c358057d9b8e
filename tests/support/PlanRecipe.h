// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "runtime/contract/Plan.h"
#include "runtime/contract/StepProgram.h"

#include <algorithm>
#include <functional>
#include <string>
#include <vector>

namespace shardscope::testing {

/// A GPT-2 whose dimensions divide by nothing.
inline contract::Architecture oddGpt2() {
    contract::Architecture a;
    a.family = "gpt2";
    a.layers = 2;
    a.hidden = 21;
    a.heads = 3;
    a.kvHeads = 3;
    a.headDim = 7;
    a.intermediate = 43;
    a.vocabulary = 259;
    a.positions = 37;
    a.attentionBias = true;
    a.attentionOutputBias = true;
    a.mlpBias = true;
    a.tied = true;
    return a;
}

/// Relatives of Llama whose dimensions divide by nothing, with more query than key heads: "llama" (Llama 3.1's scaled
/// rotary positions, own head), "qwen2" (biases of query, key and value), "qwen3" (norms over the heads).
inline contract::Architecture oddLlama(const std::string& family = "llama") {
    contract::Architecture a;
    a.family = family;
    a.layers = 2;
    a.hidden = 21;
    a.heads = 4;
    a.kvHeads = 2;
    a.headDim = 6;
    a.intermediate = 37;
    a.vocabulary = 259;
    a.positions = 64;
    a.norm = contract::NormKind::RmsNorm;
    a.normEpsilon = 1e-6;
    a.activation = contract::Activation::SiluGated;
    a.attention = contract::AttentionLayout::Separate;
    a.rope = contract::Rope{};
    if (family == "llama")
        a.rope = contract::Rope{500.0, "llama3",
                                "{\"rope_type\":\"llama3\",\"factor\":4.0,\"low_freq_factor\":1.0,"
                                "\"high_freq_factor\":3.0,\"original_max_position_embeddings\":32}"};
    a.attentionBias = family == "qwen2";
    a.qkNorm = family == "qwen3";
    a.tied = family != "llama";
    return a;
}

struct PlanRecipe {
    contract::Architecture architecture = oddGpt2();
    std::int64_t ranks = 1;
    std::int64_t devicesPerNode = 0; ///< 0: one node
    std::int64_t sequence = 22;
    std::int64_t microBatch = 1;
    std::int64_t accumulate = 1;
    std::int32_t prefetch = 1;
    std::int64_t lossChunks = 1;
    bool recompute = false;
    std::string precision = "fp32-adam";
    double learningRate = 1e-3;
    /// Placement of an operator by its index and name; replicate when empty.
    std::function<std::string(int, const std::string&)> placement;
    std::function<bool(std::int32_t)> recomputesBlock; ///< instead of `recompute`
    bool coalesce = false;                             ///< every block whose operators allow it
};

/// A recipe for a family of odd dimensions, four samples over all ranks. `placement`: of every operator, or "mixed"
/// (kinds and slices in turn), or "coalesced" (sharded, a block's operators in one collective).
inline PlanRecipe recipeOf(const std::string& family, int ranks, const std::string& placement) {
    PlanRecipe recipe;
    if (family != "gpt2")
        recipe.architecture = oddLlama(family);
    recipe.ranks = ranks;
    recipe.microBatch = 4 / ranks;
    recipe.coalesce = placement == "coalesced";
    recipe.placement = [placement](int index, const std::string&) {
        static const char* const kMixed[] = {"keep", "shard", "replicate", "shard:3:2", "shard:4"};
        return placement == "mixed"       ? std::string(kMixed[index % 5])
               : placement == "coalesced" ? std::string("shard")
                                          : placement;
    };
    return recipe;
}

/// Coalesces the operators that need a slot, in every block where all of them can be.
inline void coalesceBlocks(contract::Plan& plan, const std::vector<contract::Operator>& operators) {
    for (std::size_t i = 0; i < operators.size(); ++i) {
        const contract::Placement& placement = plan.operators[i].placement;
        plan.operators[i].coalesced =
            operators[i].block >= 0 && (placement.isSharded() || (placement.kind == contract::PlacementKind::Keep &&
                                                                  !contract::holdsGradient(operators[i], placement)));
    }
    while (const auto fault = contract::findCoalescingFault(operators, contract::planDecisions(plan)))
        for (std::size_t i = 0; i < operators.size(); ++i)
            if (operators[i].block == operators[static_cast<std::size_t>(fault->op)].block)
                plan.operators[i].coalesced = false;
}

/// A plan as the planner would write it, made with the contract's functions alone.
inline contract::Plan makePlan(const PlanRecipe& recipe) {
    contract::Plan plan;
    plan.createdBy = "tests";
    plan.graph.name = "odd";
    plan.graph.family = recipe.architecture.family;
    plan.graph.sha256 = contract::sha256("odd");
    plan.graph.architecture = recipe.architecture;
    plan.cluster.name = "here";
    const std::int64_t devicesPerNode = recipe.devicesPerNode > 0 ? recipe.devicesPerNode : recipe.ranks;
    plan.cluster.nodes = recipe.ranks / devicesPerNode;
    plan.cluster.devicesPerNode = devicesPerNode;
    plan.cluster.device.name = "core";
    plan.cluster.device.memoryBytes = std::int64_t{1} << 32;
    plan.cluster.device.flopsFp32 = 1e10;
    plan.cluster.device.peakFlopsFp32 = 1e10;
    plan.cluster.device.memoryBandwidth = 1e10;
    plan.cluster.inside = plan.cluster.between = {1e-5, 1e9};
    plan.cluster.isCpu = true;
    plan.cluster.source = "assumed";
    plan.training.precision = recipe.precision;
    plan.training.sequence = recipe.sequence;
    plan.training.microBatch = recipe.microBatch;
    plan.training.accumulate = recipe.accumulate;
    plan.training.lossChunks = recipe.lossChunks;
    plan.training.globalBatch = recipe.microBatch * recipe.accumulate * recipe.ranks;
    plan.training.optimizer.name = contract::findPreset(recipe.precision)->optimizer();
    plan.training.optimizer.learningRate = recipe.learningRate;
    plan.training.optimizer.warmupSteps = 5;
    plan.parallel.data = recipe.ranks;
    plan.prefetchDepth = recipe.prefetch;
    const auto operators = contract::lowerArchitecture(recipe.architecture, recipe.sequence);
    int index = 0;
    for (const contract::Operator& op : *operators) {
        contract::PlanOperator entry;
        entry.name = op.name;
        entry.tiedTo = op.tiedTo;
        entry.recompute =
            op.block >= 0 && (recipe.recomputesBlock ? recipe.recomputesBlock(op.block) : recipe.recompute);
        const std::string text = recipe.placement ? recipe.placement(index, op.name) : "replicate";
        entry.placement = *contract::parsePlacement(text);
        const auto rows = static_cast<std::int32_t>(std::min<std::int64_t>(op.maximumSlices(), 1 << 20));
        entry.placement.slices = std::min(entry.placement.slices, rows);
        entry.placement.shardedSlices = std::min(entry.placement.shardedSlices, entry.placement.slices);
        plan.operators.push_back(entry);
        ++index;
    }
    // The owner decides for those tied to it.
    const auto owners = contract::storageOwners(*operators);
    for (std::size_t i = 0; i < owners.size(); ++i)
        plan.operators[i].placement = plan.operators[static_cast<std::size_t>(owners[i])].placement;
    if (recipe.coalesce)
        coalesceBlocks(plan, *operators);
    const auto decisions = contract::planDecisions(plan);
    const auto preset = *contract::findPreset(recipe.precision);
    const auto program = contract::buildStepProgram(*operators, decisions, recipe.prefetch);
    plan.buffers = contract::buildBufferTable(
        {*operators, decisions, recipe.ranks, devicesPerNode, preset, plan.training, recipe.prefetch}, program);
    plan.predicted.ledger = plan.buffers.ledger();
    plan.predicted.peakBytes = plan.buffers.totalBytes();
    plan.limitBytes = plan.predicted.peakBytes;
    return plan;
}

} // namespace shardscope::testing
