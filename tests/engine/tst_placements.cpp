// SPDX-License-Identifier: GPL-3.0-or-later
#include "engine/support/TrainingFixture.h"

#include <QtTest/QtTest>

#include <cmath>
#include <functional>
#include <optional>

using namespace shardscope;
using shardscope::testing::PlanRecipe;

/// Whatever the placements, the training is that of one rank with everything in place.
class PlacementTest : public QObject {
    Q_OBJECT

private slots:
    void initTestCase();
    void lossIsThatOfOneRank_data();
    void lossIsThatOfOneRank();
    void coalescedBlocksTrainTheSame_data();
    void coalescedBlocksTrainTheSame();
    void coalescingChangesNoBit();
    void evaluationIsThatOfOneRank();
    void nodeGroupsTrainTheSame_data();
    void nodeGroupsTrainTheSame();
    void aBrokenNodeIsRefused();

private:
    static constexpr std::int64_t kSteps = 50;
    static constexpr std::int64_t kGlobalBatch = 8;
    static void compareSteps(const PlanRecipe& recipe, const PlanRecipe& alone, std::int64_t steps);
    std::vector<double> m_reference;
};

namespace {

/// Placements of the test rows by name; those with '+' take turns.
std::function<std::string(int, const std::string&)> placementsOf(const QString& row) {
    return [row](int index, const std::string&) {
        const QStringList turns = row.split('+');
        return turns[index % turns.size()].toStdString();
    };
}

/// The evaluation of rank 0 after a few steps.
std::optional<engine::Evaluation> evaluated(const PlanRecipe& recipe) {
    std::optional<engine::Evaluation> result;
    const auto done =
        testing::runRanks(testing::makePlan(recipe), 7,
                          [&](engine::Executor& executor, const engine::PlanSetup&) -> contract::Result<void> {
                              for (std::int64_t step = 1; step <= 3; ++step)
                                  if (auto ran = executor.runStep(step, 3, false, false); !ran)
                                      return tl::unexpected(ran.error());
                              const auto evaluation = executor.evaluate(11);
                              if (!evaluation)
                                  return tl::unexpected(evaluation.error());
                              if (executor.rank() == 0)
                                  result = *evaluation;
                              return {};
                          });
    if (!done)
        qWarning("%s", done.error().message.c_str());
    return result;
}

} // namespace

/// Loss and gradient norm of every step are those of one rank with everything in place.
void PlacementTest::compareSteps(const PlanRecipe& recipe, const PlanRecipe& alone, std::int64_t steps) {
    const auto reference = testing::trainOutcomes(testing::makePlan(alone), steps);
    const auto outcomes = testing::trainOutcomes(testing::makePlan(recipe), steps);
    QCOMPARE(reference.size(), static_cast<std::size_t>(steps));
    QCOMPARE(outcomes.size(), reference.size());
    for (std::size_t i = 0; i < outcomes.size(); ++i) {
        const auto compare = [&](const char* what, double got, double expected) {
            QVERIFY2(std::abs(got - expected) < 1e-5 * expected,
                     qPrintable(QString("%1 of step %2: %3, not %4").arg(what).arg(i + 1).arg(got).arg(expected)));
        };
        compare("loss", outcomes[i].loss, reference[i].loss);
        compare("gradient norm", outcomes[i].gradientNorm, reference[i].gradientNorm);
    }
}

void PlacementTest::initTestCase() {
    PlanRecipe recipe;
    recipe.microBatch = kGlobalBatch;
    m_reference = testing::trainLosses(testing::makePlan(recipe), kSteps);
    QCOMPARE(m_reference.size(), static_cast<std::size_t>(kSteps));
    QVERIFY(std::abs(m_reference.front() - std::log(259.0)) < 0.2); // nothing is known at the start
    QVERIFY(m_reference.back() < 0.9 * m_reference.front());
}

void PlacementTest::lossIsThatOfOneRank_data() {
    QTest::addColumn<QString>("placement");
    QTest::addColumn<int>("ranks");
    QTest::addColumn<int>("accumulate");
    QTest::addColumn<int>("prefetch");
    QTest::addColumn<bool>("recompute");
    QTest::newRow("one rank, sharded") << "shard" << 1 << 1 << 1 << false;
    QTest::newRow("one rank, kept, accumulated") << "keep" << 1 << 4 << 1 << false;
    QTest::newRow("replicated") << "replicate" << 2 << 1 << 1 << false;
    QTest::newRow("kept") << "keep" << 2 << 1 << 1 << false;
    QTest::newRow("kept, no prefetch, accumulated") << "keep" << 2 << 2 << 0 << false;
    QTest::newRow("sharded") << "shard" << 2 << 1 << 1 << false;
    QTest::newRow("sharded, no prefetch") << "shard" << 2 << 1 << 0 << false;
    QTest::newRow("sharded, recomputed") << "shard" << 2 << 1 << 1 << true;
    QTest::newRow("sharded, accumulated") << "shard" << 2 << 2 << 1 << false;
    QTest::newRow("split, all slices sharded") << "shard:4" << 2 << 1 << 1 << false;
    QTest::newRow("split, some slices sharded") << "shard:5:2" << 2 << 1 << 1 << false;
    QTest::newRow("split, recomputed, accumulated, no prefetch") << "shard:3:1" << 2 << 2 << 0 << true;
    QTest::newRow("mixed") << "mixed" << 2 << 1 << 1 << true;
    QTest::newRow("mixed, prefetch 2") << "mixed" << 2 << 1 << 2 << false;
    QTest::newRow("four ranks, replicated") << "replicate" << 4 << 1 << 1 << false;
    QTest::newRow("four ranks, sharded") << "shard" << 4 << 2 << 1 << false;
    QTest::newRow("four ranks, mixed") << "mixed" << 4 << 1 << 1 << true;
}

void PlacementTest::lossIsThatOfOneRank() {
    QFETCH(const QString, placement);
    QFETCH(const int, ranks);
    QFETCH(const int, accumulate);
    QFETCH(const int, prefetch);
    QFETCH(const bool, recompute);
    PlanRecipe recipe;
    recipe.ranks = ranks;
    recipe.accumulate = accumulate;
    recipe.microBatch = kGlobalBatch / ranks / accumulate;
    recipe.prefetch = prefetch;
    recipe.recompute = recompute;
    recipe.placement = [&](int index, const std::string&) {
        static const char* const kMixed[] = {"keep", "shard", "replicate", "shard:3:2", "shard:4"};
        return placement == "mixed" ? std::string(kMixed[index % 5]) : placement.toStdString();
    };
    const std::vector<double> losses = testing::trainLosses(testing::makePlan(recipe), kSteps);
    QCOMPARE(losses.size(), m_reference.size());
    double worst = 0;
    for (std::size_t i = 0; i < losses.size(); ++i)
        worst = std::max(worst, std::abs(losses[i] - m_reference[i]) / m_reference[i]);
    QVERIFY2(worst < 1e-5, qPrintable(QString("largest relative difference %1").arg(worst)));
}

void PlacementTest::coalescedBlocksTrainTheSame_data() {
    QTest::addColumn<QString>("placements");
    QTest::addColumn<int>("ranks");
    QTest::addColumn<int>("accumulate");
    QTest::addColumn<int>("prefetch");
    QTest::addColumn<bool>("recompute");
    for (const char* placements :
         {"shard", "keep", "shard+keep", "keep+replicate+shard", "keep-held", "keep-held+shard"})
        for (const int prefetch : {0, 1, 2})
            QTest::addRow("%s, prefetch %d", placements, prefetch)
                << placements << 2 << 1 + prefetch % 2 << prefetch << (prefetch > 0);
    QTest::newRow("shard+keep, not recomputed, prefetch 2") << "shard+keep" << 2 << 2 << 2 << false;
    // Three and four ranks divide hardly any of the dimensions.
    QTest::newRow("three ranks, accumulated") << "shard+keep" << 3 << 2 << 1 << true;
    QTest::newRow("three ranks, kept and held") << "keep-held+keep+shard" << 3 << 2 << 1 << true;
    QTest::newRow("four ranks") << "shard+shard+keep+replicate+keep-held" << 4 << 3 << 1 << false;
    QTest::newRow("four ranks, recomputed") << "keep+shard" << 4 << 1 << 2 << true;
}

void PlacementTest::coalescedBlocksTrainTheSame() {
    QFETCH(const QString, placements);
    QFETCH(const int, ranks);
    QFETCH(const int, accumulate);
    QFETCH(const int, prefetch);
    QFETCH(const bool, recompute);
    PlanRecipe recipe;
    recipe.ranks = ranks;
    recipe.accumulate = accumulate;
    recipe.microBatch = 12 / ranks / accumulate;
    recipe.prefetch = prefetch;
    recipe.recompute = recompute;
    recipe.placement = placementsOf(placements);
    recipe.coalesce = true;
    PlanRecipe alone;
    alone.microBatch = 12;
    compareSteps(recipe, alone, 10);
}

/// The sums of a coalesced collective are those of one collective per tensor.
void PlacementTest::coalescingChangesNoBit() {
    for (const int ranks : {2, 3}) {
        PlanRecipe recipe;
        recipe.ranks = ranks;
        recipe.placement = placementsOf("shard+keep");
        const std::vector<double> apart = testing::trainLosses(testing::makePlan(recipe), 10);
        recipe.coalesce = true;
        QCOMPARE(testing::trainLosses(testing::makePlan(recipe), 10), apart);
        QCOMPARE(apart.size(), std::size_t{10});
    }
}

void PlacementTest::evaluationIsThatOfOneRank() {
    PlanRecipe recipe;
    recipe.microBatch = 6;
    const auto alone = evaluated(recipe);
    QVERIFY(alone);
    recipe.ranks = 3;
    recipe.microBatch = 2;
    for (const char* placements : {"shard", "keep+shard", "shard:3:2+keep-held"})
        for (const bool coalesce : {false, true}) {
            recipe.placement = placementsOf(placements);
            recipe.coalesce = coalesce;
            const auto together = evaluated(recipe);
            QVERIFY(together);
            QVERIFY(std::abs(together->loss - alone->loss) < 1e-5 * alone->loss);
            QCOMPARE(together->answers.asked, alone->answers.asked);
            QCOMPARE(together->answers.right, alone->answers.right);
        }
}

void PlacementTest::nodeGroupsTrainTheSame_data() {
    QTest::addColumn<QString>("placements");
    QTest::addColumn<int>("ranks");
    QTest::addColumn<int>("devicesPerNode");
    QTest::addColumn<int>("accumulate");
    QTest::addColumn<bool>("coalesce");
    QTest::newRow("sharded in nodes") << "shard@node" << 4 << 2 << 1 << false;
    QTest::newRow("sharded in nodes, accumulated") << "shard@node" << 4 << 2 << 3 << false;
    QTest::newRow("kept in nodes, accumulated") << "keep@node" << 4 << 2 << 3 << false;
    QTest::newRow("kept and held in nodes, accumulated") << "keep-held@node" << 4 << 2 << 3 << false;
    QTest::newRow("split in nodes") << "shard:3:2@node" << 4 << 2 << 1 << false;
    QTest::newRow("coalesced in nodes") << "shard@node+keep@node" << 4 << 2 << 3 << true;
    QTest::newRow("with others") << "shard@node+keep+shard+keep-held@node+replicate" << 4 << 2 << 3 << false;
    QTest::newRow("three nodes of one") << "shard@node+keep@node" << 3 << 1 << 1 << false;
    QTest::newRow("three nodes of two") << "shard@node+keep@node" << 6 << 2 << 1 << true;
}

void PlacementTest::nodeGroupsTrainTheSame() {
    QFETCH(const QString, placements);
    QFETCH(const int, ranks);
    QFETCH(const int, devicesPerNode);
    QFETCH(const int, accumulate);
    QFETCH(const bool, coalesce);
    PlanRecipe recipe;
    recipe.ranks = ranks;
    recipe.devicesPerNode = devicesPerNode;
    recipe.accumulate = accumulate;
    recipe.microBatch = 12 / ranks / accumulate;
    recipe.recompute = true;
    recipe.placement = placementsOf(placements);
    recipe.coalesce = coalesce;
    PlanRecipe alone;
    alone.microBatch = 12;
    compareSteps(recipe, alone, 10);
}

void PlacementTest::aBrokenNodeIsRefused() {
    PlanRecipe recipe;
    recipe.ranks = 4;
    recipe.devicesPerNode = 2;
    recipe.microBatch = 3;
    recipe.placement = placementsOf("shard@node");
    const auto setup = engine::preparePlan(testing::makePlan(recipe), {3, {}});
    QVERIFY(!setup);
    QVERIFY2(setup.error().message.find("cluster.devices_per_node") != std::string::npos,
             setup.error().message.c_str());
    QVERIFY(engine::preparePlan(testing::makePlan(recipe), {6, {}}));
}

QTEST_GUILESS_MAIN(PlacementTest)
#include "tst_placements.moc"
