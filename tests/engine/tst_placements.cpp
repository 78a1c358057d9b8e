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

private:
    static constexpr std::int64_t kSteps = 50;
    static constexpr std::int64_t kGlobalBatch = 8;
    void compareWithReference(const PlanRecipe& recipe, std::int64_t steps) const;
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

void PlacementTest::compareWithReference(const PlanRecipe& recipe, std::int64_t steps) const {
    const std::vector<double> losses = testing::trainLosses(testing::makePlan(recipe), steps);
    QCOMPARE(losses.size(), static_cast<std::size_t>(steps));
    double worst = 0;
    for (std::size_t i = 0; i < losses.size(); ++i)
        worst = std::max(worst, std::abs(losses[i] - m_reference[i]) / m_reference[i]);
    QVERIFY2(worst < 1e-5, qPrintable(QString("largest relative difference %1").arg(worst)));
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
    compareWithReference(recipe, kSteps);
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
    constexpr std::int64_t kFewSteps = 10;
    static const std::vector<double> reference = testing::trainLosses(testing::makePlan(alone), kFewSteps);
    const std::vector<double> losses = testing::trainLosses(testing::makePlan(recipe), kFewSteps);
    QCOMPARE(losses.size(), reference.size());
    for (std::size_t i = 0; i < losses.size(); ++i)
        QVERIFY2(std::abs(losses[i] - reference[i]) < 1e-5 * reference[i],
                 qPrintable(QString("step %1: %2, not %3").arg(i + 1).arg(losses[i]).arg(reference[i])));
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

QTEST_GUILESS_MAIN(PlacementTest)
#include "tst_placements.moc"
