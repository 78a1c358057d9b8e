// SPDX-License-Identifier: GPL-3.0-or-later
#include "planner/cost/OperatorPricer.h"
#include "planner/support/PlannerFixtures.h"
#include "runtime/contract/StepProgram.h"

#include <QtTest>

#include <random>

using namespace shardscope;
using namespace shardscope::testing;
using contract::Placement;
using contract::PlacementKind;

namespace {} // namespace

class TestPlanner : public QObject {
    Q_OBJECT

private slots:
    void automaticBatchIsTheBestFixedBatch() {
        std::mt19937_64 random(7);
        for (int n = 0; n < 20; ++n) {
            planner::PlanRequest request = smallRequest(random, 2);
            const auto planner = *planner::Planner::create(request);
            const std::int64_t smallest = planner->solve(0)->smallestFeasibleBytes;
            const std::int64_t limit = smallest * 2;
            const auto best = planner->solve(limit);
            QVERIFY(best->feasible && best->certificate.provenOptimal);
            for (std::int64_t batch = 1; batch < 40; ++batch) {
                request.microBatch = batch;
                const auto plan = (*planner::Planner::create(request))->solve(limit);
                if (!plan->feasible)
                    break;
                QVERIFY(plan->samplesPerSecond <= best->samplesPerSecond * (1 + 1e-12));
            }
        }
    }

    void thePlanFileReservesExactlyThePredictedPeak() {
        std::mt19937_64 random(11);
        for (int n = 0; n < 20; ++n) {
            planner::PlanRequest request = smallRequest(random, 3);
            request.lossChunks = 1 + n % 5;
            request.cluster.reserve = {{"context", 12345, "assumed"}, {"collective buffers", 999, "assumed"}};
            const auto planner = *planner::Planner::create(request);
            const std::int64_t smallest = planner->solve(0)->smallestFeasibleBytes;
            for (const std::int64_t limit : {smallest, smallest * 3 / 2, smallest * 4}) {
                const auto result = planner->solve(limit);
                QVERIFY(result->feasible);
                const contract::Plan plan = planner::emitPlan(*result, "test");
                QCOMPARE(plan.buffers.totalBytes() + request.cluster.reserveBytes(), result->peakBytes);
                QCOMPARE(result->ledger.total(), result->peakBytes);
                contract::Ledger table = plan.buffers.ledger();
                table[contract::Category::Context] += 12345;
                table[contract::Category::Collective] += 999;
                QCOMPARE(table, result->ledger);
                const std::string text = contract::formatPlan(plan);
                const auto read = contract::parsePlan(text, "plan.json");
                QVERIFY2(read.has_value(), read ? "" : read.error().message.c_str());
                QCOMPARE(contract::formatPlan(*read), text);
            }
        }
    }

    /// Logits of one part of the head at a time do not make a softmax, so they are made again in backward.
    void aHeadInPartsIsComputedAgainForALossInChunks() {
        std::mt19937_64 random(13);
        planner::PlanRequest request = smallRequest(random, 2);
        const contract::Preset preset = *contract::findPreset("fp32-adam");
        const contract::Operator& head = request.graph->operators.back();
        QCOMPARE(head.role, contract::OperatorRole::Head);
        const auto price = [&](std::int64_t chunks, const char* placement, const contract::Operator& op) {
            request.lossChunks = chunks;
            planner::OperatorPricer::Situation situation;
            situation.samples = 2;
            situation.accumulate = 3;
            return planner::OperatorPricer(request, preset).price(op, *contract::parsePlacement(placement), situation);
        };
        const double forward = planner::OperatorPricer(request, preset).forwardSeconds(head, 2);
        for (const char* placement : {"replicate", "shard", "shard:3:2"}) {
            QCOMPARE(price(1, placement, head).recomputeSeconds, 0.0);
            QCOMPARE(price(4, placement, head).recomputeSeconds,
                     std::string_view(placement) == "shard:3:2" ? 3 * forward : 0.0);
            QCOMPARE(price(4, placement, head).computeSeconds, price(1, placement, head).computeSeconds);
        }
        QCOMPARE(price(4, "shard:3:2", request.graph->operators[3]).recomputeSeconds, 0.0); // not a head
    }

    void thereAreNoMoreLossChunksThanTokens() {
        std::mt19937_64 random(17);
        planner::PlanRequest request = smallRequest(random, 2);
        request.microBatch = 3;
        request.lossChunks = std::int64_t{1} << 40;
        const auto planner = *planner::Planner::create(request);
        const auto result = planner->solve(planner->solve(0)->smallestFeasibleBytes * 2);
        QVERIFY(result->feasible);
        QCOMPARE(result->training.lossChunks, 3 * request.graph->sequence);
        QCOMPARE(planner::emitPlan(*result, "test").buffers.totalBytes() + request.cluster.reserveBytes(),
                 result->peakBytes);
    }

    /// A gradient can only be held over several micro-steps: where there is one, no bound may count on it.
    void theSmallestPeakIsReachedWithOneMicroStepOfAGlobalBatch() {
        std::mt19937_64 random(19);
        for (int n = 0; n < 20; ++n) {
            planner::PlanRequest request = smallRequest(random, 1);
            request.globalBatch = 2 * request.cluster.devices();
            request.microBatch = 2;
            request.accumulate = 0;
            request.allowShard = false;
            const auto planner = *planner::Planner::create(request);
            const auto nothing = planner->solve(0);
            QVERIFY(!nothing->feasible);
            const auto smallest = planner->solve(nothing->smallestFeasibleBytes);
            QVERIFY(smallest->feasible);
            QCOMPARE(smallest->peakBytes, nothing->smallestFeasibleBytes);
        }
    }

    void equalRequestsGiveEqualFiles() {
        std::mt19937_64 random(3);
        const planner::PlanRequest request = smallRequest(random, 2);
        const auto once = [&](std::int64_t warm) {
            const auto planner = *planner::Planner::create(request);
            const std::int64_t smallest = planner->solve(0)->smallestFeasibleBytes;
            if (warm > 0)
                planner->solve(smallest * warm); // what was asked before must not matter
            return contract::formatPlan(planner::emitPlan(*planner->solve(smallest * 2), "test"));
        };
        QCOMPARE(once(0), once(0));
        QCOMPARE(once(3), once(0));
    }

    void moreMemoryIsNeverSlower() {
        std::mt19937_64 random(5);
        for (int n = 0; n < 5; ++n) {
            const auto planner = *planner::Planner::create(smallRequest(random, 2));
            const planner::Frontier frontier = planner->frontier(12);
            QCOMPARE(int(frontier.points.size()), 12);
            for (std::size_t i = 1; i < frontier.points.size(); ++i)
                QVERIFY(frontier.points[i].samplesPerSecond >= frontier.points[i - 1].samplesPerSecond);
            for (const planner::FrontierPoint& point : frontier.points)
                QVERIFY(point.peakBytes <= point.memoryBytes);
        }
    }

    void limitsAndCancelGiveAnHonestAnswer() {
        std::mt19937_64 random(9);
        const auto planner = *planner::Planner::create(smallRequest(random, 3));
        const std::int64_t smallest = planner->solve(0)->smallestFeasibleBytes;
        const auto full = planner->solve(smallest * 3 / 2);
        planner::SearchBudget budget;
        budget.workLimit = 1;
        const auto limited = planner->solve(smallest * 3 / 2, budget);
        QVERIFY(limited->feasible);
        QVERIFY(limited->samplesPerSecond <= full->samplesPerSecond);
        QVERIFY(limited->certificate.upperBound >= full->samplesPerSecond * (1 - 1e-12));
        std::stop_source stop;
        stop.request_stop();
        planner::SearchBudget cancelled;
        cancelled.stop = stop.get_token();
        QVERIFY(planner->solve(smallest * 2, cancelled)->cancelled);
    }

    void contradictionsAreUsageErrors() {
        std::mt19937_64 random(13);
        planner::PlanRequest request = smallRequest(random, 1);
        const auto kind = [](const planner::PlanRequest& r) {
            const auto planner = planner::Planner::create(r);
            return planner ? -1 : contract::exitCode(planner.error().kind);
        };
        QCOMPARE(kind(request), -1);
        auto pin = request;
        pin.pins = {{"no.such", Placement{}}};
        QCOMPARE(kind(pin), 2);
        auto precision = request;
        precision.precision = "fp12";
        QCOMPARE(kind(precision), 2);
        auto global = request;
        global.globalBatch = request.cluster.devices() * 4 + 1;
        QCOMPARE(kind(global), 2);
        auto none = request;
        none.allowKeep = none.allowReplicate = none.allowShard = false;
        QCOMPARE(kind(none), 2);
        auto slices = request;
        slices.slices = {0};
        QCOMPARE(kind(slices), 2);
    }

    void pinsAreObeyedAndShrunkWithANote() {
        std::mt19937_64 random(17);
        planner::PlanRequest request = smallRequest(random, 1);
        request.pins = {{"*", Placement{}},
                        {"h.0.ln_1", {PlacementKind::Shard, 4, 4, {}}},
                        {"h.0.mlp.*", {PlacementKind::Keep, 1, 1, {}}}};
        const auto plan = (*planner::Planner::create(request))->solve(std::int64_t{1} << 40);
        QVERIFY(plan->feasible);
        for (const planner::PlannedOperator& planned : plan->operators) {
            const std::string& name = request.graph->operators[static_cast<std::size_t>(planned.op)].name;
            const PlacementKind expected = name == "h.0.ln_1"            ? PlacementKind::Shard
                                           : name.starts_with("h.0.mlp") ? PlacementKind::Keep
                                                                         : PlacementKind::Replicate;
            QCOMPARE(planned.placement.kind, expected);
            QVERIFY(planned.pinned);
        }
        QCOMPARE(int(plan->notes.size()), 1);
    }
};

QTEST_APPLESS_MAIN(TestPlanner)
#include "tst_planner.moc"
