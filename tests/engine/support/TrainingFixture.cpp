// SPDX-License-Identifier: GPL-3.0-or-later
#include "engine/support/TrainingFixture.h"

#include "runtime/collective/KeyValueServer.h"
#include "runtime/data/Dataset.h"
#include "runtime/data/Safetensors.h"
#include "runtime/execute/Checkpoint.h"
#include "runtime/network/HuggingFace.h"

#include <QtCore/QTemporaryDir>
#include <QtTest/QtTest>

#include <memory>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>

namespace shardscope::testing {

contract::Result<void> runRanks(const contract::Plan& plan, std::uint64_t seed, const RankBody& body,
                                const engine::Dataset* given, const DeviceMaker& makeDevice) {
    engine::SetupRequest request;
    request.device = makeDevice ? engine::DeviceKind::Cuda : engine::DeviceKind::Cpu;
    const auto setup = engine::preparePlan(plan, request);
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
        std::unique_ptr<engine::Dataset> addition;
        if (given == nullptr) {
            auto data =
                engine::openDataset({"builtin:addition", seed, plan.training.sequence, setup->architecture.vocabulary});
            if (!data)
                return tl::unexpected(data.error());
            addition = std::move(*data);
        }
        auto executor = engine::Executor::create(*setup, **group, given != nullptr ? *given : *addition,
                                                 makeDevice ? makeDevice() : nullptr);
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

namespace {

/// `after`: called on every rank's thread after the last step.
std::vector<engine::StepOutcome> trainRanks(const contract::Plan& plan, std::int64_t steps, std::uint64_t seed,
                                            const DeviceMaker& makeDevice, const RankBody& after) {
    std::vector<engine::StepOutcome> outcomes;
    const auto done = runRanks(
        plan, seed,
        [&](engine::Executor& executor, const engine::PlanSetup& setup) -> contract::Result<void> {
            for (std::int64_t step = 1; step <= steps; ++step) {
                const auto outcome = executor.runStep(step, steps, false, false);
                if (!outcome)
                    return tl::unexpected(outcome.error());
                if (executor.rank() == 0)
                    outcomes.push_back(*outcome);
            }
            return after ? after(executor, setup) : contract::Result<void>();
        },
        nullptr, makeDevice);
    if (!done)
        qWarning("%s", done.error().message.c_str());
    return outcomes;
}

contract::Result<WeightMap> readWeights(const engine::PlanSetup& setup, const std::string& checkpoint) {
    std::vector<engine::TensorShape> shapes;
    for (const contract::Operator& op : setup.operators)
        if (!op.isTied())
            for (const contract::TensorSpec& tensor : op.tensors)
                shapes.push_back({engine::stateDictName(setup.architecture, op, tensor), tensor.shape});
    const auto file = engine::SafetensorsFile::open(checkpoint + "/model.safetensors", shapes);
    if (!file)
        return tl::unexpected(file.error());
    WeightMap weights;
    for (const engine::TensorShape& shape : shapes) {
        const float* const values = (*file)->tensor(shape.name);
        weights[shape.name].assign(values, values + shape.elements());
    }
    return weights;
}

} // namespace

std::vector<engine::StepOutcome> trainOutcomes(const contract::Plan& plan, std::int64_t steps, std::uint64_t seed,
                                               const DeviceMaker& makeDevice) {
    return trainRanks(plan, steps, seed, makeDevice, {});
}

std::vector<engine::StepOutcome> trainOutcomes(const contract::Plan& plan, std::int64_t steps, std::uint64_t seed,
                                               WeightMap& weights) {
    const QTemporaryDir folder; // a checkpoint gathers what the ranks have
    return trainRanks(
        plan, steps, seed, {},
        [&](engine::Executor& executor, const engine::PlanSetup& setup) -> contract::Result<void> {
            const auto saved = engine::saveCheckpoint(executor, setup, folder.path().toStdString(), {steps, seed});
            if (!saved || executor.rank() != 0)
                return saved ? contract::Result<void>() : tl::unexpected(saved.error());
            auto read = readWeights(setup, *saved);
            if (!read)
                return tl::unexpected(read.error());
            weights = std::move(*read);
            return {};
        });
}

std::vector<double> trainLosses(const contract::Plan& plan, std::int64_t steps, std::uint64_t seed) {
    std::vector<double> losses;
    for (const engine::StepOutcome& outcome : trainOutcomes(plan, steps, seed))
        losses.push_back(outcome.loss);
    return losses;
}

} // namespace shardscope::testing
