// SPDX-License-Identifier: GPL-3.0-or-later
#include "engine/support/TrainingFixture.h"

#include <QtTest/QtTest>

#include <cmath>

using namespace shardscope;
using shardscope::testing::PlanRecipe;

/// Whatever the placements, the training is that of one rank with everything in place.
class PlacementTest : public QObject {
    Q_OBJECT

private slots:
    void initTestCase();
    void lossIsThatOfOneRank_data();
    void lossIsThatOfOneRank();

private:
    static constexpr std::int64_t kSteps = 50;
    static constexpr std::int64_t kGlobalBatch = 8;
    std::vector<double> m_reference;
};

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

QTEST_GUILESS_MAIN(PlacementTest)
#include "tst_placements.moc"
