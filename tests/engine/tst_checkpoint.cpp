// SPDX-License-Identifier: GPL-3.0-or-later
#include "engine/support/TrainingFixture.h"
#include "runtime/execute/Checkpoint.h"

#include <QtCore/QDir>
#include <QtCore/QFile>
#include <QtCore/QTemporaryDir>
#include <QtTest/QtTest>

#include <mutex>

using namespace shardscope;
using shardscope::testing::PlanRecipe;

namespace {

PlanRecipe recipeOf(const std::string& placement, std::int64_t ranks) {
    PlanRecipe recipe;
    recipe.ranks = ranks;
    recipe.microBatch = 4 / ranks;
    recipe.placement = [placement](int index, const std::string&) {
        static const char* const kMixed[] = {"keep", "shard:3:2", "replicate", "shard", "shard:4"};
        static const char* const kNodes[] = {"keep@node", "shard:3:2@node", "shard@node"};
        if (placement == "nodes")
            return std::string(kNodes[index % 3]);
        return placement.starts_with("mixed") || placement == "llama" ? std::string(kMixed[index % 5]) : placement;
    };
    if (placement == "mixed, sgd")
        recipe.precision = "fp32-sgd-momentum";
    if (placement == "llama")
        recipe.architecture = testing::oddLlama();
    if (placement == "nodes")
        recipe.devicesPerNode = 2;
    return recipe;
}

/// Trains steps first..last, from a checkpoint in `folder` when first > 1, saving at `saveAt`; losses of rank 0.
std::vector<double> trainPiece(const contract::Plan& plan, const QString& folder, std::int64_t first, std::int64_t last,
                               std::int64_t saveAt) {
    std::vector<double> losses;
    const auto done = testing::runRanks(
        plan, 3, [&](engine::Executor& executor, const engine::PlanSetup& setup) -> contract::Result<void> {
            if (first > 1) {
                std::vector<std::string> skipped;
                const auto found = engine::findCheckpoint(setup, folder.toStdString(), skipped);
                if (!found || found->state.step != first - 1)
                    return contract::badInput("no checkpoint of the step before");
                if (auto loaded = engine::loadCheckpoint(executor, setup, *found); !loaded)
                    return loaded;
            }
            for (std::int64_t step = first; step <= last; ++step) {
                const auto outcome = executor.runStep(step, 20, false, false);
                if (!outcome)
                    return tl::unexpected(outcome.error());
                if (executor.rank() == 0)
                    losses.push_back(outcome->loss);
                if (step == saveAt)
                    if (auto saved = engine::saveCheckpoint(executor, setup, folder.toStdString(), {step, 3}); !saved)
                        return tl::unexpected(saved.error());
            }
            return {};
        });
    if (!done)
        qWarning("%s", done.error().message.c_str());
    return losses;
}

} // namespace

/// A checkpoint does not know who wrote it.
class CheckpointTest : public QObject {
    Q_OBJECT

private Q_SLOTS:
    void resumingIsBitExact_data();
    void resumingIsBitExact();
    void otherPlacementsAndRanksGoOn();
    void brokenCheckpointsArePassedOver();
    void damagedCheckpointsArePassedOver_data();
    void damagedCheckpointsArePassedOver();
    void theNewestAreKept();
};

void CheckpointTest::resumingIsBitExact_data() {
    QTest::addColumn<QString>("placement");
    QTest::addColumn<int>("ranks");
    QTest::newRow("replicated, one rank") << "replicate" << 1;
    QTest::newRow("sharded, two ranks") << "shard" << 2;
    QTest::newRow("mixed, two ranks") << "mixed" << 2;
    QTest::newRow("in nodes, four ranks") << "nodes" << 4;
    QTest::newRow("llama, two ranks") << "llama" << 2;
    QTest::newRow("mixed with SGD, two ranks") << "mixed, sgd" << 2;
}

void CheckpointTest::resumingIsBitExact() {
    QFETCH(const QString, placement);
    QFETCH(const int, ranks);
    const QTemporaryDir folder;
    const contract::Plan plan = testing::makePlan(recipeOf(placement.toStdString(), ranks));
    const std::vector<double> whole = trainPiece(plan, folder.path(), 1, 12, 6);
    const std::vector<double> rest = trainPiece(plan, folder.path(), 7, 12, 0);
    QCOMPARE(whole.size(), std::size_t{12});
    QCOMPARE(rest, std::vector<double>(whole.begin() + 6, whole.end()));
}

void CheckpointTest::otherPlacementsAndRanksGoOn() {
    const QTemporaryDir folder;
    const std::vector<double> whole = trainPiece(testing::makePlan(recipeOf("mixed", 2)), folder.path(), 1, 12, 6);
    for (const auto& [placement, ranks] : {std::pair("replicate", 1), {"nodes", 4}, {"shard", 2}}) {
        const std::vector<double> rest =
            trainPiece(testing::makePlan(recipeOf(placement, ranks)), folder.path(), 7, 12, 0);
        QCOMPARE(rest.size(), std::size_t{6});
        for (std::size_t i = 0; i < rest.size(); ++i)
            QVERIFY(std::abs(rest[i] - whole[i + 6]) < 1e-5 * whole[i + 6]);
    }
}

void CheckpointTest::brokenCheckpointsArePassedOver() {
    const QTemporaryDir folder;
    const contract::Plan plan = testing::makePlan(recipeOf("shard", 2));
    trainPiece(plan, folder.path(), 1, 3, 3);
    trainPiece(plan, folder.path(), 4, 5, 5);
    const auto setup = engine::preparePlan(plan, {});
    std::vector<std::string> skipped;
    QCOMPARE(engine::findCheckpoint(*setup, folder.path().toStdString(), skipped)->state.step, std::int64_t{5});
    QFile weights(folder.filePath("checkpoints/step-00000005/model.safetensors"));
    QVERIFY(weights.open(QIODevice::ReadWrite));
    QVERIFY(weights.resize(weights.size() / 2));
    QCOMPARE(engine::findCheckpoint(*setup, folder.path().toStdString(), skipped)->state.step, std::int64_t{3});
    QCOMPARE(skipped.size(), std::size_t{1});
    QVERIFY(skipped.front().find("model.safetensors") != std::string::npos);
}

void CheckpointTest::damagedCheckpointsArePassedOver_data() {
    QTest::addColumn<QString>("file");
    for (const char* file : {"model.safetensors", "optimizer.safetensors"})
        QTest::newRow(file) << file;
}

/// One bit of one value, which no length and no header shows. A damaged checkpoint is also no reason to remove good
/// ones.
void CheckpointTest::damagedCheckpointsArePassedOver() {
    QFETCH(const QString, file);
    const QTemporaryDir folder;
    const contract::Plan plan = testing::makePlan(recipeOf("shard", 2));
    trainPiece(plan, folder.path(), 1, 2, 2);
    trainPiece(plan, folder.path(), 3, 5, 5);
    QFile content(folder.filePath("checkpoints/step-00000005/" + file));
    QVERIFY(content.open(QIODevice::ReadWrite));
    QVERIFY(content.seek(content.size() - 100));
    char byte = 0;
    QVERIFY(content.peek(&byte, 1) == 1);
    byte = static_cast<char>(byte ^ 1);
    QVERIFY(content.write(&byte, 1) == 1);
    content.close();
    const auto setup = engine::preparePlan(plan, {});
    std::vector<std::string> skipped;
    QCOMPARE(engine::findCheckpoint(*setup, folder.path().toStdString(), skipped)->state.step, std::int64_t{2});
    QCOMPARE(skipped.size(), std::size_t{1});
    QVERIFY(skipped.front().find(file.toStdString() + ": its checksum") != std::string::npos);
    trainPiece(plan, folder.path(), 3, 3, 3);
    const QStringList left = QDir(folder.filePath("checkpoints")).entryList(QDir::Dirs | QDir::NoDotAndDotDot);
    QCOMPARE(left, QStringList({"step-00000002", "step-00000003", "step-00000005"}));
}

void CheckpointTest::theNewestAreKept() {
    const QTemporaryDir folder;
    const contract::Plan plan = testing::makePlan(recipeOf("replicate", 1));
    trainPiece(plan, folder.path(), 1, 1, 1);
    trainPiece(plan, folder.path(), 2, 2, 2);
    trainPiece(plan, folder.path(), 3, 3, 3);
    const QStringList left =
        QDir(folder.filePath("checkpoints")).entryList(QDir::Dirs | QDir::NoDotAndDotDot | QDir::Hidden);
    QCOMPARE(left, QStringList({"step-00000002", "step-00000003"}));
}

QTEST_GUILESS_MAIN(CheckpointTest)
#include "tst_checkpoint.moc"
