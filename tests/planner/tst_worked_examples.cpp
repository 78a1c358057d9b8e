// SPDX-License-Identifier: GPL-3.0-or-later
// The nine worked examples of the cost formulas, to the digit given.
#include "planner/cost/OperatorPricer.h"
#include "planner/support/PlannerFixtures.h"

#include <QtTest>

using namespace shardscope;
using namespace shardscope::testing;
using contract::Placement;
using contract::PlacementKind;

namespace {

constexpr std::int64_t kMiB = 1 << 20;

Placement shard(std::int32_t slices, std::int32_t sharded) {
    return {PlacementKind::Shard, slices, sharded, {}};
}

planner::PlanResultPointer solve(const planner::PlanRequest& request, double limitMiB) {
    return (*planner::Planner::create(request))->solve(static_cast<std::int64_t>(limitMiB * kMiB));
}

planner::PlanRequest fourMatrices(std::vector<std::int32_t> slices) {
    return paperRequest(matrixGraph({kP0, kP0, kP0, kP0}), exampleCluster(8, 1e-5, 1e-10), std::move(slices));
}

bool isClose(double value, double expected) {
    return std::abs(value - expected) <= 1e-9 * std::abs(expected);
}

} // namespace

#define COMPARE_SECONDS(value, expected)                                                                               \
    QVERIFY2(isClose(value, expected),                                                                                 \
             qPrintable(QString::number(value, 'g', 12) + " is not " + QString::number(expected, 'g', 12)))

class TestWorkedExamples : public QObject {
    Q_OBJECT

private slots:
    void example1_oneOperator_data() {
        QTest::addColumn<int>("slices");
        QTest::addColumn<int>("sharded");
        QTest::addColumn<bool>("recompute");
        QTest::addColumn<double>("stateMiB");
        QTest::addColumn<double>("slotMiB");
        QTest::addColumn<double>("seconds");
        QTest::newRow("replicate") << 0 << 0 << false << 16.0 << 0.0 << 8.740032e-4;
        QTest::newRow("(1,1)") << 1 << 1 << false << 2.0 << 4.0 << 1.3110048e-3;
        QTest::newRow("(2,2)") << 2 << 2 << false << 2.0 << 2.0 << 1.5210048e-3;
        QTest::newRow("(4,4)") << 4 << 4 << false << 2.0 << 1.0 << 1.9410048e-3;
        QTest::newRow("(8,8)") << 8 << 8 << false << 2.0 << 0.5 << 2.7810048e-3;
        QTest::newRow("(4,2)") << 4 << 2 << false << 9.0 << 1.0 << 1.4775040e-3;
        QTest::newRow("(2,1)") << 2 << 1 << false << 9.0 << 2.0 << 1.2675040e-3;
        QTest::newRow("(1,1) recomputed") << 1 << 1 << true << 2.0 << 4.0 << 1.7480064e-3;
    }
    void example1_oneOperator() {
        QFETCH(int, slices);
        QFETCH(int, sharded);
        QFETCH(bool, recompute);
        QFETCH(double, stateMiB);
        QFETCH(double, slotMiB);
        QFETCH(double, seconds);
        const auto request = fourMatrices({1});
        const planner::OperatorPricer pricer(request, *contract::findPreset("fp32-adam"));
        const Placement placement = slices == 0 ? Placement{} : shard(slices, sharded);
        const contract::Operator op = matrixOperator("m", kP0);
        const planner::PlacementBytes bytes = pricer.bytes(op, placement);
        QCOMPARE(bytes.state.total(), std::int64_t(stateMiB * kMiB));
        QCOMPARE(bytes.slot.total(), std::int64_t(slotMiB * kMiB));
        planner::OperatorPricer::Situation situation;
        situation.recompute = recompute;
        COMPARE_SECONDS(pricer.price(op, placement, situation).stepSeconds(), seconds);
    }

    void example2_fourOperators() {
        const auto tooSmall = solve(fourMatrices({1}), 9);
        QVERIFY(!tooSmall->feasible);
        QCOMPARE(tooSmall->smallestFeasibleBytes, 12 * kMiB);
        struct Row {
            double limit;
            int replicated, peak;
            double seconds;
        };
        for (const Row& row : {Row{48, 2, 40, 4.370016e-3}, Row{51, 2, 40, 4.370016e-3}, Row{54, 3, 54, 3.9330144e-3},
                               Row{64, 4, 64, 3.4960128e-3}}) {
            const auto plan = solve(fourMatrices({1}), row.limit);
            QVERIFY(plan->feasible && plan->certificate.provenOptimal);
            QCOMPARE(plan->counts.replicate, std::int64_t(row.replicated));
            QCOMPARE(plan->peakBytes, row.peak * kMiB);
            COMPARE_SECONDS(plan->stepSeconds, row.seconds);
        }
        COMPARE_SECONDS(solve(fourMatrices({1, 4}), 9)->stepSeconds, 7.7640192e-3);
        COMPARE_SECONDS(solve(fourMatrices({1, 4, 8}), 8.5)->stepSeconds, 1.11240192e-2);
    }

    void example3_splittingPaysWhenLatencyIsSmall() {
        const auto request = [](double latency, std::vector<std::int32_t> slices) {
            return paperRequest(matrixGraph({4 * kP0, kP0}), exampleCluster(8, latency, 1e-10), std::move(slices));
        };
        const auto slow = solve(request(1e-5, {1, 4}), 30);
        QCOMPARE(slow->operators[0].placement, shard(1, 1));
        QCOMPARE(slow->operators[1].placement, shard(1, 1));
        QCOMPARE(slow->peakBytes, 26 * kMiB);
        COMPARE_SECONDS(slow->stepSeconds, 5.925024e-3);
        const auto fast = solve(request(2e-6, {1, 4}), 30);
        QCOMPARE(fast->operators[0].placement, shard(4, 4));
        QCOMPARE(fast->operators[1].placement, Placement{});
        QCOMPARE(fast->peakBytes, 28 * kMiB);
        COMPARE_SECONDS(fast->stepSeconds, 5.3340224e-3);
        COMPARE_SECONDS(solve(request(2e-6, {1}), 30)->stepSeconds, 5.589024e-3);
    }

    void example4_greedyTrap() {
        const auto plan =
            solve(paperRequest(matrixGraph({kP0, kP0, 8 * kP0, 2 * kP0}), exampleCluster(8, 1e-5, 1e-10), {1}), 190);
        COMPARE_SECONDS(plan->stepSeconds, 9.80504e-3);
        QCOMPARE(plan->peakBytes, 182 * kMiB);
    }

    void example5_manyEqualOperators() {
        const std::vector<std::int64_t> layers(24, 12 * 1024 * 1024);
        const auto request = paperRequest(matrixGraph(layers), exampleCluster(8, 1e-5, 1e-10), {1});
        const auto plan = solve(request, 3000);
        QCOMPARE(plan->counts.replicate, std::int64_t(14));
        QCOMPARE(plan->peakBytes, 2976 * kMiB);
        COMPARE_SECONDS(plan->stepSeconds, 0.2594931136);
        auto sharded = request;
        sharded.pins = {{"*", shard(1, 1)}};
        COMPARE_SECONDS(solve(sharded, 3000)->stepSeconds, 0.3221293824);
        COMPARE_SECONDS(solve(request, 4608)->stepSeconds, 0.2147529216);
        QVERIFY(solve(request, 4607)->counts.replicate < 24);
    }

    void example6_batchLoop() {
        auto request = paperRequest(matrixGraph({kP0, kP0, kP0, kP0}, 2, 0.3e-3), exampleCluster(8, 1e-5, 1e-10), {1});
        const double expected[] = {1558.5384, 2363.3622, 3011.2863, 3330.8984, 3557.4468, 3857.2747};
        for (int batch = 1; batch <= 6; ++batch) {
            request.microBatch = batch;
            const double value = solve(request, 64)->samplesPerSecond;
            QVERIFY2(std::abs(value - expected[batch - 1]) < 5.1e-5, qPrintable(QString::number(value, 'f', 5)));
        }
        request.microBatch = 7;
        QVERIFY(!solve(request, 64)->feasible);
        request.microBatch = 0;
        QCOMPARE(solve(request, 64)->training.microBatch, std::int64_t(6));
    }

    void example7_largestBatchIsNotBest() {
        auto request = paperRequest(matrixGraph({kP0}, 9, 0.3e-3), exampleCluster(8, 1e-5, 1e-10), {1});
        const auto at = [&](std::int64_t batch) {
            request.microBatch = batch;
            return solve(request, 64)->samplesPerSecond;
        };
        QVERIFY(std::abs(at(5) - 16849.177) < 5.1e-4);
        QVERIFY(std::abs(at(6) - 15429.099) < 5.1e-4);
        request.microBatch = 0;
        QCOMPARE(solve(request, 64)->training.microBatch, std::int64_t(5));
    }

    // Example 8 (options without memory) needs made-up options and stands in tst_abstract_problem.

    void example9_oneDeviceAndNoParameters() {
        const auto alone = paperRequest(matrixGraph({kP0}), exampleCluster(1, 1e-5, 1e-10), {1, 2, 4});
        const planner::OperatorPricer pricer(alone, *contract::findPreset("fp32-adam"));
        for (const Placement& placement : {Placement{}, shard(1, 1), shard(4, 2)})
            QCOMPARE(pricer.price(matrixOperator("m", kP0), placement, {}).stepSeconds(), 0.0);
        const auto plan =
            solve(paperRequest(matrixGraph({kP0}, 0, 1e-3), exampleCluster(1, 1e-5, 1e-10), {1, 2, 4}), 64);
        QCOMPARE(plan->operators[0].placement, Placement{});
        const planner::OperatorPricer many(fourMatrices({1}), *contract::findPreset("fp32-adam"));
        const contract::Operator empty = matrixOperator("m", 0);
        for (const Placement& placement : {Placement{}, shard(1, 1)}) {
            QCOMPARE(many.price(empty, placement, {}).stepSeconds(), 0.0);
            QCOMPARE(many.bytes(empty, placement).state.total(), std::int64_t(0));
        }
    }
};

QTEST_APPLESS_MAIN(TestWorkedExamples)
#include "tst_worked_examples.moc"
