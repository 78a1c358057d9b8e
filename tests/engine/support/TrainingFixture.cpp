// SPDX-License-Identifier: GPL-3.0-or-later
#include "engine/support/TrainingFixture.h"

#include "runtime/collective/KeyValueServer.h"
#include "runtime/data/Dataset.h"

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
                engine::openDataset("builtin:addition", seed, plan.training.sequence, setup->architecture.vocabulary);
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

std::vector<engine::StepOutcome> trainOutcomes(const contract::Plan& plan, std::int64_t steps, std::uint64_t seed,
                                               const DeviceMaker& makeDevice) {
    std::vector<engine::StepOutcome> outcomes;
    const auto done = runRanks(
        plan, seed,
        [&](engine::Executor& executor, const engine::PlanSetup&) -> contract::Result<void> {
            for (std::int64_t step = 1; step <= steps; ++step) {
                const auto outcome = executor.runStep(step, steps, false, false);
                if (!outcome)
                    return tl::unexpected(outcome.error());
                if (executor.rank() == 0)
                    outcomes.push_back(*outcome);
            }
            return {};
        },
        nullptr, makeDevice);
    if (!done)
        qWarning("%s", done.error().message.c_str());
    return outcomes;
}

std::vector<double> trainLosses(const contract::Plan& plan, std::int64_t steps, std::uint64_t seed) {
    std::vector<double> losses;
    for (const engine::StepOutcome& outcome : trainOutcomes(plan, steps, seed))
        losses.push_back(outcome.loss);
    return losses;
}

} // namespace shardscope::testing
