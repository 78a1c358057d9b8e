// SPDX-License-Identifier: GPL-3.0-or-later
// The additive step time by cause, and two plans side by side.
#include "planner/support/TimelineFixtures.h"
#include "planner/timeline/PlanDiff.h"

#include <QtTest>

#include <cmath>

using namespace shardscope;
using namespace shardscope::testing;
using planner::Cause;

namespace {

planner::PlanRequest smallRequest() {
    planner::PlanRequest request;
    request.graph = smallGraph(smallArchitecture(4, 24, 3, 101, true), 16);
    request.cluster = exampleCluster(4, 1e-6, 1e-9);
    request.cluster.hostSecondsPerCollective = 3e-6;
    request.cluster.overlapEfficiency = 0.7;
    request.precision = "fp32-adam";
    return request;
}

planner::PlanResultPointer solve(const planner::PlanRequest& request, std::int64_t limit = 1 << 30) {
    return (*planner::Planner::create(request))->solve(limit);
}

} // namespace

class TestPlanDiff : public QObject {
    Q_OBJECT

private slots:
    void additiveTimeIsWhatTheSearchCounts() {
        for (const std::int64_t spare : {0, 50'000, 100'000, 1 << 30}) {
            for (const std::int64_t accumulate : {1, 3}) {
                planner::PlanRequest request = smallRequest();
                request.accumulate = accumulate;
                const auto result = solve(request, solve(request, 1)->smallestFeasibleBytes + spare);
                QVERIFY(result->feasible);
                const auto step = planner::planStep(*result);
                const auto time = planner::additiveTime(*step);
                QVERIFY(time);
                QCOMPARE(time->total.total(), std::llround(result->stepSeconds * 1e12));
                for (std::size_t i = 0; i < result->operators.size(); ++i)
                    QCOMPARE(time->operators[i].total(), std::llround(result->operators[i].cost.stepSeconds() * 1e12));
                for (const std::int64_t part : time->total.picoseconds)
                    QVERIFY(part >= 0);
            }
        }
    }

    void fixedCostIsTheLatencyOfExposedCollectives() {
        // Nothing hides: one sharded matrix costs two gathers and a reduction of 7 a + 7/8 x 4 MiB b each.
        StepRecipe recipe{timedGraph(1), exampleCluster(8, 1e-5, 1e-10), {"shard"}};
        recipe.prefetch = 0;
        const auto time = planner::additiveTime(makeStep(recipe));
        QCOMPARE(time->total[Cause::Fixed], 3 * 70'000'000);
        QCOMPARE(time->total[Cause::ExposedGather], 2 * 367'001'600);
        QCOMPARE(time->total[Cause::ExposedReduce], 367'001'600);
        QCOMPARE(time->total[Cause::Compute], 3'000'000'000);
        QCOMPARE(time->collectives, 3);
    }

    void equalPlansDoNotDiffer() {
        const auto step = planner::planStep(*solve(smallRequest()));
        const auto diff = planner::comparePlans(*step, *step);
        QVERIFY(diff);
        QCOMPARE(diff->differingOperators(), 0);
        QVERIFY(diff->difference() == planner::Waterfall{});
        QVERIFY(diff->sameBatch());
    }

    void partsSumToTheDifference() {
        planner::PlanRequest request = smallRequest();
        request.microBatch = 2;
        const auto a = solve(request);
        request.pins = {{"*.mlp.*", *contract::parsePlacement("shard:2")}};
        request.recompute = contract::RecomputePolicy::On;
        request.accumulate = 2;
        const auto b = solve(request);
        QVERIFY(a->feasible && b->feasible);
        const auto stepA = planner::planStep(*a);
        const auto stepB = planner::planStep(*b);
        const auto diff = planner::comparePlans(*stepA, *stepB);
        QVERIFY(diff);
        const planner::Waterfall difference = diff->difference();
        QCOMPARE(difference.total(), std::llround(b->stepSeconds * 1e12) - std::llround(a->stepSeconds * 1e12));
        planner::Waterfall sum;
        for (const planner::OperatorDifference& entry : diff->operators)
            sum += entry.b->time - entry.a->time;
        QVERIFY(sum == difference);
        QVERIFY(difference[Cause::Recomputation] > 0);
        QVERIFY(!diff->sameBatch());
        double perSample = 0;
        for (const double seconds : diff->b.secondsPerSample())
            perSample += seconds;
        QVERIFY(std::abs(perSample * b->samplesPerSecond - 1) < 1e-9);
        for (const planner::OperatorDifference& entry : diff->operators) {
            const bool inBlock = !entry.blockName.empty();
            if (inBlock)
                QVERIFY(entry.differs()); // recomputed
            if (entry.name.find(".mlp.") != std::string::npos)
                QCOMPARE(contract::formatPlacement(entry.b->placement), std::string("shard:2"));
        }
    }

    void operatorsOfOneGraphAloneAreListed() {
        planner::PlanRequest request = smallRequest();
        const auto a = planner::planStep(*solve(request));
        request.graph = smallGraph(smallArchitecture(2, 24, 3, 101, true), 16);
        const auto b = planner::planStep(*solve(request));
        const auto shrunk = planner::comparePlans(*a, *b);
        const auto grown = planner::comparePlans(*b, *a);
        QCOMPARE(shrunk->operators.size(), a->operators().size());
        QCOMPARE(grown->operators.size(), a->operators().size());
        const auto alone = [](const planner::OperatorDifference& entry) { return !entry.a || !entry.b; };
        QCOMPARE(std::count_if(shrunk->operators.begin(), shrunk->operators.end(), alone), 12);
        QVERIFY(!grown->operators.back().a);
        QVERIFY(grown->operators.back().differs());
    }
};

QTEST_APPLESS_MAIN(TestPlanDiff)
#include "tst_plan_diff.moc"
