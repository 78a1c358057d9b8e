// SPDX-License-Identifier: GPL-3.0-or-later
// The search against an exhaustive enumerator that shares no search code and adds memory up from buffer tables.
#include "planner/cost/OperatorPricer.h"
#include "planner/support/PlannerFixtures.h"
#include "runtime/contract/StepProgram.h"

#include <QtTest>

#include <random>

using namespace shardscope;
using namespace shardscope::testing;
using contract::Placement;
using contract::PlacementKind;

namespace {

struct Best {
    bool found = false;
    std::int64_t product = 0;
    std::int64_t picoseconds = 0;
    std::int64_t peak = 0;
    std::int64_t smallestPeak = std::numeric_limits<std::int64_t>::max();
};

/// Tries every placement of the operators named, every recomputation of every block and every batch up to `batches`.
class Enumerator {
public:
    Enumerator(const planner::PlanRequest& request, std::vector<std::size_t> open, std::vector<Placement> choices,
               std::int64_t limit)
        : m_request(request), m_open(std::move(open)), m_choices(std::move(choices)), m_limit(limit),
          m_preset(*contract::findPreset(request.precision)), m_pricer(request, m_preset) {}

    Best run(std::int64_t batches) {
        const auto& operators = m_request.graph->operators;
        const std::int32_t blocks = m_request.graph->blockCount();
        for (m_batch = 1; m_batch <= batches; ++m_batch) {
            for (int mask = 0; mask < (1 << blocks); ++mask) {
                m_decisions.assign(operators.size(), {});
                for (std::size_t i = 0; i < operators.size(); ++i)
                    m_decisions[i].recompute = operators[i].block >= 0 && ((mask >> operators[i].block) & 1) != 0;
                place(0);
            }
        }
        return m_best;
    }

private:
    void place(std::size_t next) {
        if (next == m_open.size()) {
            evaluate();
            return;
        }
        for (const Placement& placement : m_choices) {
            const auto& operators = m_request.graph->operators;
            m_decisions[m_open[next]].placement = placement;
            for (std::size_t i = 0; i < operators.size(); ++i) {
                if (operators[i].tiedTo == operators[m_open[next]].name)
                    m_decisions[i].placement = placement;
            }
            place(next + 1);
        }
    }

    void evaluate() {
        const auto& operators = m_request.graph->operators;
        contract::Training training;
        training.sequence = m_request.graph->sequence;
        training.microBatch = m_batch;
        const contract::StepProgram program =
            contract::buildStepProgram(operators, m_decisions, m_request.prefetchDepth);
        const std::int64_t peak =
            contract::buildBufferTable({operators, m_decisions, m_request.cluster.devices(),
                                        m_request.cluster.devicesPerNode, m_preset, training, m_request.prefetchDepth},
                                       program)
                .totalBytes();
        m_best.smallestPeak = std::min(m_best.smallestPeak, peak);
        if (peak > m_limit)
            return;
        std::int64_t time = 0;
        for (std::size_t i = 0; i < operators.size(); ++i) {
            planner::OperatorPricer::Situation situation;
            situation.samples = m_batch;
            situation.recompute = m_decisions[i].recompute;
            situation.endsBlock = operators[i].block >= 0 && operators[i + 1].block != operators[i].block;
            if (i > 0)
                situation.neighbours.forwardSeconds = m_pricer.forwardSeconds(operators[i - 1], m_batch);
            if (i + 1 < operators.size())
                situation.neighbours.backwardSeconds = 2 * m_pricer.forwardSeconds(operators[i + 1], m_batch);
            time +=
                std::llround(m_pricer.price(operators[i], m_decisions[i].placement, situation).stepSeconds() * 1e12);
        }
        const bool faster = !m_best.found || static_cast<long double>(m_batch) * m_best.picoseconds >
                                                 static_cast<long double>(m_best.product) * time;
        const bool equal = m_best.found && static_cast<long double>(m_batch) * m_best.picoseconds ==
                                               static_cast<long double>(m_best.product) * time;
        if (faster || (equal && peak < m_best.peak))
            m_best = {true, m_batch, time, peak, m_best.smallestPeak};
    }

    const planner::PlanRequest& m_request;
    std::vector<std::size_t> m_open;
    std::vector<Placement> m_choices;
    std::int64_t m_limit;
    contract::Preset m_preset;
    planner::OperatorPricer m_pricer;
    std::int64_t m_batch = 1;
    std::vector<contract::OperatorDecision> m_decisions;
    Best m_best;
};

planner::PlanRequest smallRequest(std::mt19937_64& random, std::int64_t layers) {
    const auto pick = [&](std::int64_t low, std::int64_t high) {
        return std::uniform_int_distribution<std::int64_t>(low, high)(random);
    };
    planner::PlanRequest request;
    const std::int64_t heads = pick(1, 3);
    request.graph =
        smallGraph(smallArchitecture(layers, heads * pick(3, 17), heads, pick(20, 300), pick(0, 1) == 1), pick(5, 40));
    request.cluster =
        exampleCluster(pick(2, 5), 1e-6 * static_cast<double>(pick(0, 20)), 1e-9 * static_cast<double>(pick(1, 30)));
    request.cluster.device.flopsFp32 = request.cluster.device.peakFlopsFp32 = 1e9 * static_cast<double>(pick(1, 60));
    request.cluster.device.memoryBandwidth = 1e9 * static_cast<double>(pick(1, 50));
    request.cluster.device.flopsBf16 = request.cluster.device.peakFlopsBf16 = 2 * request.cluster.device.flopsFp32;
    request.cluster.hostSecondsPerCollective = 1e-6 * static_cast<double>(pick(0, 5));
    request.cluster.isCpu = pick(0, 1) == 1;
    request.precision = pick(0, 1) == 1 ? "fp32-adam" : "bf16-adam";
    request.slices = {1, 2};
    request.prefetchDepth = static_cast<std::int32_t>(pick(0, 2));
    return request;
}

} // namespace

class TestPlanner : public QObject {
    Q_OBJECT

private slots:
    void everySmallGraphEqualsExhaustiveEnumeration() {
        std::mt19937_64 random(20240607);
        int feasible = 0;
        constexpr int kCases = 60;
        for (int n = 0; n < kCases; ++n) {
            const std::int64_t layers = n % 3 == 0 ? 2 : 1;
            planner::PlanRequest request = smallRequest(random, layers);
            const auto& operators = request.graph->operators;
            // Leave a few operators open; the others are pinned to replicate so that enumeration ends.
            std::vector<std::size_t> candidates;
            for (std::size_t i = 0; i < operators.size(); ++i) {
                if (!operators[i].isTied() && operators[i].kind != contract::OperatorKind::Norm &&
                    operators[i].name != "wpe")
                    candidates.push_back(i);
            }
            std::shuffle(candidates.begin(), candidates.end(), random);
            candidates.resize(layers == 2 ? 3 : 4);
            request.pins.clear();
            for (std::size_t i = 0; i < operators.size(); ++i) {
                const std::size_t owner = operators[i].isTied() ? 0 : i;
                if (std::find(candidates.begin(), candidates.end(), owner) == candidates.end())
                    request.pins.push_back({operators[i].name, Placement{}});
            }
            const std::vector<Placement> choices{Placement{},
                                                 {PlacementKind::Keep, 1, 1, {}},
                                                 {PlacementKind::Shard, 1, 1, {}},
                                                 {PlacementKind::Shard, 2, 2, {}}};
            const auto planner = planner::Planner::create(request);
            QVERIFY(planner.has_value());
            const std::int64_t smallest = (*planner)->solve(0)->smallestFeasibleBytes;
            const std::int64_t limit =
                smallest + std::uniform_int_distribution<std::int64_t>(-smallest / 20, smallest)(random);
            const Best best = Enumerator(request, candidates, choices, limit).run(4);
            QCOMPARE(smallest, best.smallestPeak);
            // Compare within the batches enumerated.
            std::optional<planner::PlanResultPointer> found;
            for (std::int64_t batch = 1; batch <= 4; ++batch) {
                planner::PlanRequest fixed = request;
                fixed.microBatch = batch;
                const auto plan = (*planner::Planner::create(fixed))->solve(limit);
                if (!plan->feasible)
                    continue;
                QVERIFY(plan->certificate.provenOptimal);
                QVERIFY(plan->peakBytes <= limit);
                if (!found || plan->samplesPerSecond > (*found)->samplesPerSecond ||
                    (plan->samplesPerSecond == (*found)->samplesPerSecond && plan->peakBytes < (*found)->peakBytes))
                    found = plan;
            }
            QCOMPARE(found.has_value(), best.found);
            if (!best.found)
                continue;
            ++feasible;
            QCOMPARE(std::llround((*found)->stepSeconds * 1e12), best.picoseconds);
            QCOMPARE((*found)->training.microBatch, best.product);
            QCOMPARE((*found)->peakBytes, best.peak);
        }
        QVERIFY(feasible > kCases / 2);
    }

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
