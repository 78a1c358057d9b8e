// SPDX-License-Identifier: GPL-3.0-or-later
#include "engine/support/TrainingFixture.h"

#include <mutex>
#include <optional>
#include <thread>

#include <QtTest/QtTest>

#include "runtime/collective/KeyValueServer.h"
#include "runtime/data/Dataset.h"

namespace shardscope::testing {

contract::Architecture oddGpt2() {
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

contract::Plan makePlan(const PlanRecipe& recipe) {
    contract::Plan plan;
    plan.createdBy = "tests";
    plan.graph.name = "odd";
    plan.graph.family = recipe.architecture.family;
    plan.graph.sha256 = contract::sha256("odd");
    plan.graph.architecture = recipe.architecture;
    plan.cluster.name = "here";
    plan.cluster.devicesPerNode = recipe.ranks;
    plan.cluster.device.name = "core";
    plan.cluster.device.memoryBytes = std::int64_t{1} << 32;
    plan.cluster.device.flopsFp32 = 1e10;
    plan.cluster.device.memoryBandwidth = 1e10;
    plan.cluster.inside = {1e-5, 1e9};
    plan.cluster.isCpu = true;
    plan.cluster.source = "assumed";
    plan.training.sequence = recipe.sequence;
    plan.training.microBatch = recipe.microBatch;
    plan.training.accumulate = recipe.accumulate;
    plan.training.globalBatch = recipe.microBatch * recipe.accumulate * recipe.ranks;
    plan.training.optimizer.learningRate = 1e-3;
    plan.training.optimizer.warmupSteps = 5;
    plan.parallel.data = recipe.ranks;
    plan.prefetchDepth = recipe.prefetch;
    const auto operators = contract::lowerArchitecture(recipe.architecture, recipe.sequence);
    if (!operators)
        qFatal("%s", operators.error().message.c_str());
    int index = 0;
    for (const contract::Operator& op : *operators) {
        contract::PlanOperator entry;
        entry.name = op.name;
        entry.tiedTo = op.tiedTo;
        entry.recompute = recipe.recompute && op.block >= 0;
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
    const auto decisions = contract::planDecisions(plan);
    const auto preset = *contract::findPreset("fp32-adam");
    const auto program = contract::buildStepProgram(*operators, decisions, recipe.prefetch);
    plan.buffers = contract::buildBufferTable(
        {*operators, decisions, recipe.ranks, recipe.ranks, preset, plan.training, recipe.prefetch}, program);
    plan.predicted.ledger = plan.buffers.ledger();
    plan.predicted.peakBytes = plan.buffers.totalBytes();
    plan.limitBytes = plan.predicted.peakBytes;
    return plan;
}

contract::Result<void> runRanks(const contract::Plan& plan, std::uint64_t seed, const RankBody& body) {
    const auto setup = engine::preparePlan(plan, {});
    if (!setup)
        return tl::unexpected(setup.error());
    auto server = engine::KeyValueServer::listen("127.0.0.1", 0);
    if (!server)
        return tl::unexpected(server.error());
    std::mutex mutex;
    std::optional<contract::Error> failure;
    const auto runRank = [&](int rank) -> contract::Result<void> {
        engine::GroupAddress address;
        address.rank = rank;
        address.size = static_cast<int>(setup->ranks);
        address.port = (*server)->port();
        address.timeout = std::chrono::milliseconds(20000);
        auto group = engine::Group::connect(address);
        if (!group)
            return tl::unexpected(group.error());
        auto data = engine::openDataset("builtin:addition", seed, plan.training.sequence, setup->architecture.vocabulary);
        if (!data)
            return tl::unexpected(data.error());
        auto executor = engine::Executor::create(*setup, **group, **data);
        if (!executor)
            return tl::unexpected(executor.error());
        (*executor)->initialize(seed);
        return body(**executor, *setup);
    };
    std::vector<std::thread> threads;
    for (int rank = 0; rank < setup->ranks; ++rank)
        threads.emplace_back([&, rank] {
            if (auto done = runRank(rank); !done) {
                const std::lock_guard lock(mutex);
                if (!failure)
                    failure = done.error();
            }
        });
    for (std::thread& thread : threads)
        thread.join();
    if (failure)
        return tl::unexpected(*failure);
    return {};
}

std::vector<double> trainLosses(const contract::Plan& plan, std::int64_t steps, std::uint64_t seed) {
    std::vector<double> losses;
    const auto done = runRanks(plan, seed, [&](engine::Executor& executor, const engine::PlanSetup&) -> contract::Result<void> {
        for (std::int64_t step = 1; step <= steps; ++step) {
            const auto outcome = executor.runStep(step, steps, false, false);
            if (!outcome)
                return tl::unexpected(outcome.error());
            if (executor.rank() == 0)
                losses.push_back(outcome->loss);
        }
        return {};
    });
    if (!done)
        qWarning("%s", done.error().message.c_str());
    return losses;
}

} // namespace shardscope::testing
