// SPDX-License-Identifier: GPL-3.0-or-later
#include "engine/support/TrainingFixture.h"
#include "runtime/collective/KeyValueServer.h"
#include "runtime/data/AdditionData.h"
#include "runtime/execute/Watchdog.h"

#include <QtTest/QtTest>

#include <atomic>
#include <chrono>
#include <limits>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

using namespace shardscope;
using shardscope::testing::PlanRecipe;

namespace {

/// Training data that stops coming at one step.
class HangingData final : public engine::Dataset {
public:
    HangingData(std::unique_ptr<engine::Dataset> data, std::int64_t step, const std::atomic<bool>& released)
        : m_data(std::move(data)), m_step(step), m_released(released) {}
    void trainingSample(std::int64_t step, std::int64_t index, std::int32_t* tokens,
                        std::int32_t* targets) const override {
        while (step == m_step && !m_released)
            std::this_thread::sleep_for(std::chrono::milliseconds(1));
        m_data->trainingSample(step, index, tokens, targets);
    }
    void heldOutSample(std::int64_t index, std::int32_t* tokens, std::int32_t* targets) const override {
        m_data->heldOutSample(index, tokens, targets);
    }

private:
    std::unique_ptr<engine::Dataset> m_data;
    std::int64_t m_step;
    const std::atomic<bool>& m_released;
};

} // namespace

class WatchdogTest : public QObject {
    Q_OBJECT

private Q_SLOTS:
    void theHangingRankIsNamed();
    void aBrokenLossIsNamed();
};

/// Rank 1 hangs at its data while rank 0 waits for it: only rank 1's watchdog speaks, soon, and the run goes on when
/// the hang ends.
void WatchdogTest::theHangingRankIsNamed() {
    PlanRecipe recipe;
    recipe.ranks = 2;
    recipe.placement = [](int, const std::string&) { return std::string("shard"); };
    const contract::Plan plan = testing::makePlan(recipe);
    const auto setup = engine::preparePlan(plan, {});
    QVERIFY(setup);
    auto server = engine::KeyValueServer::listen("127.0.0.1", 0);
    QVERIFY(server);
    std::atomic<bool> released{false};
    std::mutex mutex;
    std::vector<std::string> alarms;
    std::vector<std::string> errors;
    const auto runRank = [&](int rank) -> contract::Result<void> {
        engine::GroupAddress address;
        address.rank = rank;
        address.size = 2;
        address.port = (*server)->port();
        address.timeout = std::chrono::seconds(60);
        auto group = engine::Group::connect(address);
        if (!group)
            return tl::unexpected(group.error());
        auto inner =
            engine::openDataset({"builtin:addition", 1, plan.training.sequence, setup->architecture.vocabulary});
        if (!inner)
            return tl::unexpected(inner.error());
        const HangingData data(std::move(*inner), rank == 1 ? 3 : 0, released);
        auto executor = engine::Executor::create(*setup, **group, data);
        if (!executor)
            return tl::unexpected(executor.error());
        (*executor)->initialize(1);
        const engine::Watchdog watchdog(**executor, 0.5, [&, rank](const std::string& phase, double) {
            const std::lock_guard lock(mutex);
            alarms.push_back(std::to_string(rank) + " " + phase);
            released = true;
        });
        for (std::int64_t step = 1; step <= 4; ++step)
            if (auto ran = (*executor)->runStep(step, 4, false, false); !ran)
                return tl::unexpected(ran.error());
        return {};
    };
    std::thread other([&] {
        if (auto done = runRank(1); !done)
            errors.push_back(done.error().message);
    });
    const auto done = runRank(0);
    other.join();
    QVERIFY2(done && errors.empty(), done ? "" : done.error().message.c_str());
    QCOMPARE(alarms, std::vector<std::string>{"1 load"});
}

/// A weight that is no number on one rank only: that rank says so of itself, the other of it, and no weight changes.
void WatchdogTest::aBrokenLossIsNamed() {
    PlanRecipe recipe;
    recipe.ranks = 3;
    std::mutex mutex;
    std::vector<std::string> said(3);
    const auto done = testing::runRanks(
        testing::makePlan(recipe), 1,
        [&](engine::Executor& executor, const engine::PlanSetup&) -> contract::Result<void> {
            if (auto ran = executor.runStep(1, 3, false, false); !ran)
                return tl::unexpected(ran.error());
            const engine::TensorState& gain = executor.layout().tensor(executor.layout().count() - 2, 0, 0);
            const float before = gain.weight.floats()[0];
            const float bad = std::numeric_limits<float>::quiet_NaN();
            if (executor.rank() == 2)
                gain.weight.floats()[1] = bad;
            const auto ran = executor.runStep(2, 3, false, false);
            if (ran)
                return contract::runFailed("the step went through");
            const std::lock_guard lock(mutex);
            said[static_cast<std::size_t>(executor.rank())] = executor.phase() + ": " + ran.error().message;
            return gain.weight.floats()[0] == before ? contract::Result<void>()
                                                     : contract::runFailed("a weight has changed");
        });
    QVERIFY2(done, done ? "" : done.error().message.c_str());
    QCOMPARE(said[0], std::string("loss: the loss of step 2: rank 2 has one that is not finite"));
    QCOMPARE(said[1], said[0]);
    QVERIFY2(said[2].find("on this rank") != std::string::npos, said[2].c_str());
}

QTEST_GUILESS_MAIN(WatchdogTest)
#include "tst_watchdog.moc"
