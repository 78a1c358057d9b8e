// SPDX-License-Identifier: GPL-3.0-or-later
// Training on the GPU: the same step programs as on the CPU, one rank alone, ranks that share a GPU, and one GPU each.
// Skipped, with the reason, where there is no GPU.
#include "engine/support/TrainingFixture.h"
#include "runtime/device/cuda/OpenCuda.h"

#include <QtTest/QtTest>

#include <atomic>
#include <cmath>

using namespace shardscope;
using testing::PlanRecipe;

namespace {

std::unique_ptr<engine::Device> openOrWarn(int place) {
    auto device = engine::openCuda(place, 20);
    if (!device)
        qWarning("%s", device.error().message.c_str());
    return device ? std::move(*device) : nullptr;
}
/// All ranks on one GPU, as on a machine that has one.
std::unique_ptr<engine::Device> openFirst() {
    return openOrWarn(0);
}
/// Devices one after the other, so that ranks have one each where there are several.
std::atomic<int> g_next{0};
std::unique_ptr<engine::Device> openNext() {
    return openOrWarn(g_next++);
}

} // namespace

class CudaTrainingTest : public QObject {
    Q_OBJECT

private Q_SLOTS:
    void initTestCase();
    void lossesAreThoseOfTheCpu_data();
    void lossesAreThoseOfTheCpu();
    void stepsAllocateNothing();
    void ranksWithAGpuEachUseNccl();
};

void CudaTrainingTest::initTestCase() {
    if (const auto judged = engine::judgeCuda(engine::probeCuda(0, engine::ProbeDepth::Usable)); !judged)
        QSKIP(judged.error().message.c_str());
}

void CudaTrainingTest::lossesAreThoseOfTheCpu_data() {
    QTest::addColumn<QString>("precision");
    QTest::addColumn<QString>("family");
    QTest::addColumn<int>("ranks");
    QTest::addColumn<QString>("placement");
    for (const char* precision : {"fp32-adam", "bf16-adam", "bf16-adam-fp32grad", "bf16-pure-adam"})
        for (const char* family : {"gpt2", "llama", "qwen2", "qwen3"}) {
            QTest::addRow("%s, %s, one rank", precision, family) << precision << family << 1 << "replicate";
            QTest::addRow("%s, %s, two ranks, mixed", precision, family) << precision << family << 2 << "mixed";
        }
    QTest::newRow("fp32-adam, gpt2, two ranks, coalesced") << "fp32-adam"
                                                           << "gpt2" << 2 << "coalesced";
    QTest::newRow("fp32-sgd-momentum, gpt2, two ranks, mixed") << "fp32-sgd-momentum"
                                                               << "gpt2" << 2 << "mixed";
    QTest::newRow("bf16-adam, llama, two ranks, coalesced") << "bf16-adam"
                                                            << "llama" << 2 << "coalesced";
    for (const char* precision : {"fp32-adam", "bf16-adam"}) {
        QTest::addRow("%s, gpt2, one rank, loss in chunks", precision)
            << precision << "gpt2" << 1 << "replicate, chunked";
        QTest::addRow("%s, llama, two ranks, split, loss in chunks", precision)
            << precision << "llama" << 2 << "shard:3:2, chunked";
    }
}

void CudaTrainingTest::lossesAreThoseOfTheCpu() {
    QFETCH(const QString, precision);
    QFETCH(const QString, family);
    QFETCH(const int, ranks);
    QFETCH(const QString, placement);
    constexpr std::int64_t kSteps = 10;
    const bool exact = precision.startsWith("fp32");
    PlanRecipe alone = testing::recipeOf(family.toStdString(), 1, "replicate");
    if (exact)
        alone.precision = precision.toStdString();
    const auto expected = testing::trainOutcomes(testing::makePlan(alone), kSteps);
    PlanRecipe recipe = testing::recipeOf(family.toStdString(), ranks, placement.section(',', 0, 0).toStdString());
    recipe.lossChunks = placement.endsWith("chunked") ? 5 : 1;
    recipe.precision = precision.toStdString();
    recipe.recompute = ranks > 1;
    const auto got = testing::trainOutcomes(testing::makePlan(recipe), kSteps, 7, openFirst);
    QCOMPARE(got.size(), static_cast<std::size_t>(kSteps));
    for (std::size_t i = 0; i < got.size(); ++i)
        QVERIFY2(std::abs(got[i].loss - expected[i].loss) < (exact ? 1e-4 : 0.015) * expected[i].loss,
                 qPrintable(QString("step %1: %2, not %3").arg(i + 1).arg(got[i].loss).arg(expected[i].loss)));
    QVERIFY(got.back().loss < got.front().loss);
}

void CudaTrainingTest::stepsAllocateNothing() {
    PlanRecipe recipe = testing::recipeOf("llama", 1, "replicate");
    recipe.precision = "bf16-adam";
    const auto done = testing::runRanks(
        testing::makePlan(recipe), 7,
        [](engine::Executor& executor, const engine::PlanSetup& setup) -> contract::Result<void> {
            std::int64_t after = 0;
            for (std::int64_t step = 1; step <= 6; ++step) {
                if (const auto ran = executor.runStep(step, 6, false, false); !ran)
                    return tl::unexpected(ran.error());
                const std::int64_t bytes = executor.device().contextBytes();
                if (step > 2 && bytes > after)
                    return contract::runFailed("step " + std::to_string(step) + " took " +
                                               std::to_string(bytes - after) + " bytes more");
                after = bytes;
            }
            if (executor.pool().totalHighWater() != setup.table.totalBytes())
                return contract::runFailed("the high water is not the table's");
            return {};
        },
        nullptr, openFirst);
    QVERIFY2(done, done ? "" : done.error().message.c_str());
}

void CudaTrainingTest::ranksWithAGpuEachUseNccl() {
    if (engine::probeCuda(0, engine::ProbeDepth::Present).devices < 2)
        QSKIP("needs two GPUs; this machine has one");
    for (const char* precision : {"fp32-adam", "bf16-adam"}) {
        const bool exact = std::string(precision) == "fp32-adam";
        const auto expected = testing::trainOutcomes(testing::makePlan(testing::recipeOf("gpt2", 1, "replicate")), 5);
        PlanRecipe recipe = testing::recipeOf("gpt2", 2, "mixed");
        recipe.precision = precision;
        g_next = 0;
        std::vector<double> losses;
        std::string collectives;
        const auto done = testing::runRanks(
            testing::makePlan(recipe), 7,
            [&](engine::Executor& executor, const engine::PlanSetup&) -> contract::Result<void> {
                for (std::int64_t step = 1; step <= 5; ++step) {
                    const auto outcome = executor.runStep(step, 5, false, false);
                    if (!outcome)
                        return tl::unexpected(outcome.error());
                    if (executor.rank() == 0)
                        losses.push_back(outcome->loss);
                }
                if (executor.rank() == 0)
                    collectives = executor.communication().collectivesName();
                return {};
            },
            nullptr, openNext);
        QVERIFY2(done, done ? "" : done.error().message.c_str());
        QCOMPARE(collectives, std::string("nccl"));
        for (std::size_t i = 0; i < losses.size(); ++i)
            QVERIFY(std::abs(losses[i] - expected[i].loss) < (exact ? 1e-4 : 0.015) * expected[i].loss);
    }
}

QTEST_APPLESS_MAIN(CudaTrainingTest)
#include "tst_cuda_training.moc"
