// SPDX-License-Identifier: GPL-3.0-or-later
// The engine over a device whose memory is not the host's: the stand-in of support/PortableDevice.h, which runs the
// kernels that a GPU runs. In float32 it must agree with the CPU's own kernels, in bf16 it must learn as well.
#include "engine/support/PortableDevice.h"
#include "engine/support/TrainingFixture.h"
#include "runtime/execute/Checkpoint.h"
#include "runtime/launch/MeasureDevice.h"

#include <QTemporaryDir>
#include <QtTest/QtTest>

#include <cmath>
#include <mutex>

using namespace shardscope;
using testing::PlanRecipe;

namespace {

std::vector<std::string> g_violations;

std::unique_ptr<engine::Device> makeDevice() {
    return std::make_unique<testing::PortableDevice>(g_violations);
}

/// One layer: the stand-in runs kernels as loops.
PlanRecipe recipeOf(const QString& family, int ranks, QString placement) {
    const bool isChunked = placement.endsWith(", chunked");
    placement = placement.section(',', 0, 0);
    PlanRecipe recipe = testing::recipeOf(family.toStdString(), ranks, placement.toStdString());
    recipe.architecture.layers = 1;
    recipe.lossChunks = isChunked ? 5 : 1;
    return recipe;
}

} // namespace

class DeviceTest : public QObject {
    Q_OBJECT

private Q_SLOTS:
    void cleanup();
    void float32AgreesWithTheCpu_data();
    void float32AgreesWithTheCpu();
    void bf16LearnsAsFloat32Does_data();
    void bf16LearnsAsFloat32Does();
    void masterWeightsSurviveACheckpoint();
    void highWaterIsTheTable();
    void ratesAreMeasured();
};

void DeviceTest::cleanup() {
    QVERIFY2(g_violations.empty(), g_violations.empty() ? "" : g_violations.front().c_str());
}

void DeviceTest::float32AgreesWithTheCpu_data() {
    QTest::addColumn<QString>("family");
    QTest::addColumn<int>("ranks");
    QTest::addColumn<QString>("placement");
    QTest::newRow("gpt2, one rank") << "gpt2" << 1 << "replicate";
    QTest::newRow("gpt2, two ranks, mixed") << "gpt2" << 2 << "mixed";
    QTest::newRow("gpt2, two ranks, coalesced") << "gpt2" << 2 << "coalesced";
    QTest::newRow("llama, two ranks, sharded") << "llama" << 2 << "shard";
    QTest::newRow("qwen2, two ranks, kept") << "qwen2" << 2 << "keep";
    QTest::newRow("qwen3, two ranks, mixed") << "qwen3" << 2 << "mixed";
    QTest::newRow("gpt2, one rank, loss in chunks") << "gpt2" << 1 << "replicate, chunked";
    QTest::newRow("gpt2, two ranks, loss in chunks, tied and split") << "gpt2" << 2 << "shard:3:2, chunked";
    QTest::newRow("llama, two ranks, loss in chunks") << "llama" << 2 << "shard, chunked";
}

void DeviceTest::float32AgreesWithTheCpu() {
    QFETCH(const QString, family);
    QFETCH(const int, ranks);
    QFETCH(const QString, placement);
    constexpr std::int64_t kSteps = 3;
    PlanRecipe alone = recipeOf(family, 1, "replicate");
    PlanRecipe recipe = recipeOf(family, ranks, placement);
    recipe.recompute = ranks > 1;
    const auto expected = testing::trainOutcomes(testing::makePlan(alone), kSteps);
    const auto got = testing::trainOutcomes(testing::makePlan(recipe), kSteps, 7, makeDevice);
    QCOMPARE(got.size(), static_cast<std::size_t>(kSteps));
    for (std::size_t i = 0; i < got.size(); ++i) {
        QVERIFY2(std::abs(got[i].loss - expected[i].loss) < 2e-5 * expected[i].loss, qPrintable(QString::number(i)));
        QVERIFY(std::abs(got[i].gradientNorm - expected[i].gradientNorm) < 5e-5 * expected[i].gradientNorm);
    }
}

void DeviceTest::bf16LearnsAsFloat32Does_data() {
    QTest::addColumn<QString>("precision");
    QTest::addColumn<QString>("family");
    QTest::addColumn<int>("ranks");
    QTest::addColumn<QString>("placement");
    QTest::newRow("bf16-adam, gpt2, one rank") << "bf16-adam"
                                               << "gpt2" << 1 << "replicate";
    QTest::newRow("bf16-adam, gpt2, mixed") << "bf16-adam"
                                            << "gpt2" << 2 << "mixed";
    QTest::newRow("bf16-adam-fp32grad, gpt2, coalesced") << "bf16-adam-fp32grad"
                                                         << "gpt2" << 2 << "coalesced";
    QTest::newRow("bf16-adam, llama, sharded") << "bf16-adam"
                                               << "llama" << 2 << "shard";
    QTest::newRow("bf16-adam, gpt2, loss in chunks") << "bf16-adam"
                                                     << "gpt2" << 1 << "replicate, chunked";
    QTest::newRow("bf16-adam, llama, loss in chunks, split") << "bf16-adam"
                                                             << "llama" << 2 << "shard:3:2, chunked";
    QTest::newRow("bf16-pure-adam, qwen3, kept") << "bf16-pure-adam"
                                                 << "qwen3" << 2 << "keep";
}

void DeviceTest::bf16LearnsAsFloat32Does() {
    QFETCH(const QString, precision);
    QFETCH(const QString, family);
    QFETCH(const int, ranks);
    QFETCH(const QString, placement);
    constexpr std::int64_t kSteps = 8;
    const auto expected = testing::trainOutcomes(testing::makePlan(recipeOf(family, 1, "replicate")), kSteps);
    PlanRecipe recipe = recipeOf(family, ranks, placement);
    recipe.precision = precision.toStdString();
    const auto got = testing::trainOutcomes(testing::makePlan(recipe), kSteps, 7, makeDevice);
    QCOMPARE(got.size(), static_cast<std::size_t>(kSteps));
    for (std::size_t i = 0; i < got.size(); ++i)
        QVERIFY2(std::abs(got[i].loss - expected[i].loss) < 0.01 * expected[i].loss,
                 qPrintable(QString("step %1: %2, not %3").arg(i + 1).arg(got[i].loss).arg(expected[i].loss)));
    QVERIFY(got.back().loss < got.front().loss);
    // The first gradient is that of the same weights but for their rounding.
    QVERIFY(std::abs(got[0].gradientNorm - expected[0].gradientNorm) < 0.03 * expected[0].gradientNorm);
}

/// A checkpoint holds the float32 masters: going on from it is going on without it, to the last bit.
void DeviceTest::masterWeightsSurviveACheckpoint() {
    QTemporaryDir folder;
    PlanRecipe recipe = recipeOf("gpt2", 2, "mixed");
    recipe.precision = "bf16-adam";
    const contract::Plan plan = testing::makePlan(recipe);
    std::vector<double> through, resumed;
    const auto steps = [](engine::Executor& executor, std::int64_t first, std::int64_t last,
                          std::vector<double>& losses) -> contract::Result<void> {
        for (std::int64_t step = first; step <= last; ++step) {
            const auto outcome = executor.runStep(step, 6, false, false);
            if (!outcome)
                return tl::unexpected(outcome.error());
            if (executor.rank() == 0)
                losses.push_back(outcome->loss);
        }
        return {};
    };
    auto done = testing::runRanks(
        plan, 7,
        [&](engine::Executor& executor, const engine::PlanSetup& setup) -> contract::Result<void> {
            if (auto ran = steps(executor, 1, 3, through); !ran)
                return ran;
            if (auto saved = engine::saveCheckpoint(executor, setup, folder.path().toStdString(), {3, 7}, 2); !saved)
                return tl::unexpected(saved.error());
            return steps(executor, 4, 6, through);
        },
        nullptr, makeDevice);
    QVERIFY2(done, done ? "" : done.error().message.c_str());
    done = testing::runRanks(
        plan, 7,
        [&](engine::Executor& executor, const engine::PlanSetup& setup) -> contract::Result<void> {
            std::vector<double> ignored;
            if (auto ran = steps(executor, 1, 1, ignored); !ran) // the weights have moved before they are replaced
                return ran;
            std::vector<std::string> skipped;
            const auto found = engine::findCheckpoint(setup, folder.path().toStdString(), skipped);
            if (auto loaded = engine::loadCheckpoint(executor, setup, *found); !loaded)
                return loaded;
            return steps(executor, 4, 6, resumed);
        },
        nullptr, makeDevice);
    QVERIFY2(done, done ? "" : done.error().message.c_str());
    for (std::size_t i = 0; i < resumed.size(); ++i)
        QCOMPARE(resumed[i], through[3 + i]);
}

void DeviceTest::highWaterIsTheTable() {
    PlanRecipe recipe = recipeOf("llama", 2, "mixed");
    recipe.precision = "bf16-adam";
    const contract::Plan plan = testing::makePlan(recipe);
    const auto done = testing::runRanks(
        plan, 1,
        [&](engine::Executor& executor, const engine::PlanSetup&) -> contract::Result<void> {
            if (auto ran = executor.runStep(1, 1, false, false); !ran)
                return tl::unexpected(ran.error());
            if (executor.pool().totalHighWater() != plan.buffers.totalBytes())
                return contract::runFailed(std::to_string(executor.pool().totalHighWater()) + " handed out of " +
                                           std::to_string(plan.buffers.totalBytes()));
            return {};
        },
        nullptr, makeDevice);
    QVERIFY2(done, done ? "" : done.error().message.c_str());
}

/// What `measure` does on a GPU, where a product of loops is fast enough; the figures mean nothing here.
void DeviceTest::ratesAreMeasured() {
    const auto device = makeDevice();
    const auto rates = engine::measureDevice(*device, {{8, 4, 8}, {4, 8, 4}}, 4096, 0.01);
    QVERIFY2(rates, rates ? "" : rates.error().message.c_str());
    QCOMPARE(rates->flopsFp32.size(), std::size_t{2});
    QCOMPARE(rates->flopsBf16.size(), std::size_t{2});
    QVERIFY(rates->flopsFp32[0] > 0 && rates->flopsBf16[1] > 0 && rates->memoryBandwidth > 0);
    std::string how;
    const auto samples = engine::measureDeviceLinks(
        2, 16384, [](int) -> contract::Result<std::unique_ptr<engine::Device>> { return makeDevice(); }, how);
    QVERIFY2(samples, samples ? "" : samples.error().message.c_str());
    QCOMPARE(samples->size(), std::size_t{2});
    QCOMPARE(how, std::string("gloo through the host"));
}

QTEST_APPLESS_MAIN(DeviceTest)
#include "tst_device.moc"
