// SPDX-License-Identifier: GPL-3.0-or-later
// The simulated step: small cases worked out by hand to the picosecond, and what holds of any plan.
#include "planner/support/TimelineFixtures.h"
#include "planner/timeline/InstructionPricer.h"
#include "planner/timeline/StreamPair.h"
#include "planner/timeline/Timeline.h"

#include <QtTest>

#include <array>

using namespace shardscope;
using namespace shardscope::testing;
using contract::StepCode;
using planner::Cause;
using planner::Stream;

namespace {

// N = 8, a = 1e-5, b = 1e-10: one ring phase over 4 MiB takes 7 a + 7/8 x 4194304 b.
constexpr std::int64_t kForward = 1'000'000'000;
constexpr std::int64_t kBackward = 2 * kForward;
constexpr std::int64_t kPhase = 437'001'600;
constexpr std::int64_t kPhaseFixed = 70'000'000;
// The scalars before the update: 32 bytes through a tree of depth 3, 6 a + 64 b.
constexpr std::int64_t kScalars = 60'006'400;
constexpr std::int64_t kScalarsFixed = 60'000'000;
// AdamW moves 28 bytes a parameter at 1e12 bytes a second.
constexpr std::int64_t kUpdateWhole = 29'360'128;
constexpr std::int64_t kUpdateShard = kUpdateWhole / 8;

contract::Cluster eight() {
    return exampleCluster(8, 1e-5, 1e-10);
}

planner::Timeline play(const StepRecipe& recipe, const planner::SimulationOptions& options = {}) {
    return *planner::simulate(makeStep(recipe), options);
}

class Silent : public planner::StreamPair::Observer {
public:
    void jobBegan(const planner::StreamPair::Job&, std::int64_t at) override { began.push_back(at); }
    void jobEnded(const planner::StreamPair::Job&, std::int64_t, std::int64_t at) override { ended.push_back(at); }
    void jobExposed(const planner::StreamPair::Job&, std::int64_t picoseconds) override { exposed += picoseconds; }
    std::vector<std::int64_t> began, ended;
    std::int64_t exposed = 0;
};

planner::StreamPair::Job job(std::int64_t work) {
    planner::StreamPair::Job job;
    job.work = work;
    return job;
}

} // namespace

class TestTimeline : public QObject {
    Q_OBJECT

private slots:
    void communicationBesideComputeAdvancesAtTheOverlapEfficiency() {
        Silent silent;
        planner::StreamPair streams(500'000, silent);
        streams.post(job(300));
        const auto second = streams.post(job(400));
        streams.compute(1000); // does 300 by 600, then 200 of the 400
        QCOMPARE(silent.ended, (std::vector<std::int64_t>{600}));
        streams.wait(second);
        QCOMPARE(streams.now(), 1200);
        QCOMPARE(silent.exposed, 200);
        QCOMPARE(silent.began, (std::vector<std::int64_t>{0, 600}));
        streams.wait(second); // done already
        QCOMPARE(streams.now(), 1200);
    }

    void nothingOverlapsAtEfficiencyZero() {
        Silent silent;
        planner::StreamPair streams(0, silent);
        streams.post(job(300));
        streams.compute(1000);
        QVERIFY(silent.began.empty());
        streams.drain();
        QCOMPARE(streams.now(), 1300);
        QCOMPARE(silent.exposed, 300);
    }

    void manyJobsKeepTheirOrder() {
        Silent silent;
        planner::StreamPair streams(1'000'000, silent);
        for (int i = 0; i < 5000; ++i) {
            streams.post(job(2));
            streams.compute(1);
        }
        streams.drain();
        QCOMPARE(streams.now(), 10000);
        QCOMPARE(silent.exposed, 5000);
        QCOMPARE(silent.ended.size(), std::size_t{5000});
        for (std::size_t i = 0; i < silent.ended.size(); ++i)
            QCOMPARE(silent.ended[i], static_cast<std::int64_t>(2 * i + 2));
    }

    void oneDeviceComputesAndUpdates() {
        const planner::Timeline timeline = play({timedGraph(2), exampleCluster(1, 1e-5, 1e-10), {"replicate"}});
        QCOMPARE(timeline.stepPicoseconds, 2 * (kForward + kBackward) + 2 * kUpdateWhole);
        QCOMPARE(timeline.collectives, 0);
        QCOMPARE(timeline.exposedPicoseconds, 0);
    }

    void shardedOperatorsOverlapWithPrefetch() {
        // Only the first gather, the last reduction and the scalars have nothing beside them.
        const planner::Timeline timeline = play({timedGraph(2), eight(), {"shard"}});
        QCOMPARE(timeline.stepPicoseconds, kPhase + 2 * (kForward + kBackward) + kPhase + kScalars + 2 * kUpdateShard);
        QCOMPARE(timeline.waterfall[Cause::Compute], 2 * (kForward + kBackward));
        QCOMPARE(timeline.waterfall[Cause::ExposedGather], kPhase - kPhaseFixed);
        QCOMPARE(timeline.waterfall[Cause::ExposedReduce], kPhase - kPhaseFixed + kScalars - kScalarsFixed);
        QCOMPARE(timeline.waterfall[Cause::Fixed], 2 * kPhaseFixed + kScalarsFixed);
        QCOMPARE(timeline.waterfall[Cause::Optimizer], 2 * kUpdateShard);
        QCOMPARE(timeline.collectives, 4 + 2 + 1);
        QCOMPARE(timeline.communicationPicoseconds, 6 * kPhase + kScalars);
        QCOMPARE(timeline.fixedPicoseconds, 6 * kPhaseFixed + kScalarsFixed);
        // The gather of the second backward waits for the slot of the second forward.
        const auto gather = std::find_if(timeline.intervals.rbegin(), timeline.intervals.rend(),
                                         [](const planner::Interval& i) { return i.phase == StepCode::Gather; });
        QCOMPARE(gather->begin, kPhase + 2 * kForward);
        QCOMPARE(gather->end, 2 * kPhase + 2 * kForward);
        QCOMPARE(gather->bytes, 4 * kP0);
    }

    void withoutPrefetchTheStepIsTheSum() {
        StepRecipe recipe{timedGraph(2), eight(), {"shard"}};
        recipe.prefetch = 0;
        const planner::Timeline timeline = play(recipe);
        QCOMPARE(timeline.stepPicoseconds, 2 * (kForward + kBackward) + 6 * kPhase + kScalars + 2 * kUpdateShard);
    }

    void accumulationRepeatsTheMicroStep() {
        // Between micro-steps a reduction and the first gather stand in line.
        StepRecipe recipe{timedGraph(2), eight(), {"shard"}};
        recipe.accumulate = 2;
        const planner::Timeline timeline = play(recipe);
        const std::int64_t microStep = 2 * (kForward + kBackward);
        QCOMPARE(timeline.stepPicoseconds,
                 kPhase + microStep + 2 * kPhase + microStep + kPhase + kScalars + 2 * kUpdateShard);
    }

    void recomputationAddsForwardsButOfTheBlocksLastOperator() {
        StepRecipe recipe{timedGraph(3, true), exampleCluster(1, 1e-5, 1e-10), {"replicate"}};
        recipe.recompute = true;
        const planner::Timeline timeline = play(recipe);
        QCOMPARE(timeline.waterfall[Cause::Recomputation], 2 * kForward);
        QCOMPARE(timeline.stepPicoseconds, 3 * (kForward + kBackward) + 2 * kForward + 3 * kUpdateWhole);
    }

    void keptOperatorsGatherWhatTheyUpdated() {
        const StepRecipe recipe{timedGraph(2), eight(), {"keep"}};
        const std::int64_t micro = 2 * (kForward + kBackward);
        // As the runtime does: the gather of the first runs beside the update of the second, the rest is awaited.
        const planner::Timeline asRun = play(recipe);
        QCOMPARE(asRun.stepPicoseconds, micro + kPhase + kScalars + kUpdateShard + 2 * kPhase);
        QCOMPARE(asRun.waterfall[Cause::ExposedGather] + asRun.waterfall[Cause::Fixed] - kPhaseFixed - kScalarsFixed,
                 2 * kPhase - kUpdateShard);
        // Before its first use: the second gather hides beside the first forward.
        const planner::Timeline early = play(recipe, {planner::UpdatedGather::BeforeFirstUse, true});
        QCOMPARE(early.stepPicoseconds, kPhase + micro + kPhase + kScalars + 2 * kUpdateShard);
        QCOMPARE(early.communicationPicoseconds, asRun.communicationPicoseconds);
    }

    void longComputeHidesAllButTheEnds() {
        const planner::Timeline timeline = play({timedGraph(5, false, 1.0), eight(), {"shard"}});
        QCOMPARE(timeline.exposedPicoseconds, 2 * kPhase + kScalars);
    }

    void aBlockGatheredAsOneIsOneCollective() {
        // A hand-written program: part -1 moves all sharded operators of the block.
        planner::PlannedStep step = makeStep({timedGraph(2, true), eight(), {"shard"}});
        for (contract::OperatorDecision& decision : step.decisions)
            decision.coalesced = true;
        step.program.slotCount = 1;
        step.program.microStepEnd = 8;
        step.program.instructions = {{StepCode::Gather, 0, -1, 0},  {StepCode::Load, -1, -1, -1},
                                     {StepCode::Forward, 0, 0, 0},  {StepCode::Forward, 1, 0, 0},
                                     {StepCode::Loss, -1, -1, -1},  {StepCode::Backward, 1, 0, 0},
                                     {StepCode::Backward, 0, 0, 0}, {StepCode::ReduceScatter, 0, -1, 0},
                                     {StepCode::Clip, -1, -1, -1},  {StepCode::Finish, -1, -1, -1}};
        step.buffers.buffers.clear();
        const auto timeline = planner::simulate(step);
        QVERIFY(timeline);
        const std::int64_t both = 2 * kPhase - kPhaseFixed; // latency once
        QCOMPARE(timeline->stepPicoseconds, both + 2 * (kForward + kBackward) + both + kScalars);
        QCOMPARE(timeline->collectives, 3);
        QCOMPARE(timeline->memory.peakBytes, 4 * 4 * kP0); // both weights and both gradients
    }

    void shardsOfANodeAreSummedAcrossNodesOnce() {
        contract::Cluster cluster = eight();
        cluster.nodes = 2;
        StepRecipe recipe{timedGraph(1), cluster, {"shard:2@node"}};
        recipe.prefetch = 0;
        recipe.accumulate = 3;
        const planner::Timeline timeline = play(recipe);
        // Each half: gathered twice and reduced once per micro-step inside the node.
        const std::int64_t half = kPhaseFixed + (kPhase - kPhaseFixed) / 2;
        // Once a step the shard's 4 MiB / 8 in two phases over two nodes: 2 a + 524288 b; the scalars' tree has
        // depth 4.
        const std::int64_t across = 20'000'000 + 52'428'800;
        const std::int64_t scalars = 80'000'000 + 6'400;
        QCOMPARE(timeline.communicationPicoseconds, 3 * 2 * 3 * half + across + scalars);
    }

    void anyPlanKeepsTheBounds() {
        std::mt19937 random(20240607);
        for (int round = 0; round < 400; ++round) {
            const planner::PlannedStep step = randomStep(random);
            for (const auto gather : {planner::UpdatedGather::EndOfStep, planner::UpdatedGather::BeforeFirstUse}) {
                const auto timeline = planner::simulate(step, {gather, true});
                QVERIFY(timeline);
                QCOMPARE(timeline->waterfall.total(), timeline->stepPicoseconds);
                const std::int64_t compute = timeline->computePicoseconds;
                const std::int64_t communication = timeline->communicationPicoseconds;
                QVERIFY(timeline->stepPicoseconds >= std::max(compute, communication));
                QVERIFY(timeline->stepPicoseconds <= compute + communication);
                QCOMPARE(timeline->stepPicoseconds, compute + timeline->exposedPicoseconds);
                if (step.request.prefetchDepth == 0)
                    QCOMPARE(timeline->stepPicoseconds, compute + communication);
                const auto totals = planner::simulate(step, {gather, false});
                QCOMPARE(totals->stepPicoseconds, timeline->stepPicoseconds);
                QVERIFY(totals->waterfall == timeline->waterfall);
                QVERIFY(totals->intervals.empty());
                QCOMPARE(totals->memory.peakBytes, timeline->memory.peakBytes);
            }
        }
    }

    void intervalsOfAStreamNeverOverlap() {
        std::mt19937 random(7);
        for (int round = 0; round < 200; ++round) {
            const auto timeline = planner::simulate(randomStep(random));
            std::array<std::int64_t, 2> end{};
            std::int64_t computed = 0;
            for (const planner::Interval& interval : timeline->intervals) {
                std::int64_t& last = end[interval.stream == Stream::Compute ? 0 : 1];
                QVERIFY(interval.begin >= last);
                QVERIFY(interval.end > interval.begin);
                QVERIFY(interval.end <= timeline->stepPicoseconds);
                last = interval.end;
                computed += interval.stream == Stream::Compute ? interval.end - interval.begin : 0;
            }
            QCOMPARE(computed, timeline->computePicoseconds);
        }
    }

    void aFileGivesTheTimelineOfItsResult() {
        planner::PlanRequest request;
        request.graph = smallGraph(smallArchitecture(3, 24, 3, 101, true), 16);
        request.cluster = exampleCluster(4, 1e-6, 1e-9);
        request.precision = "fp32-adam";
        request.accumulate = 2;
        const auto planner = planner::Planner::create(request);
        const auto result = (*planner)->solve((*planner)->solve(1)->smallestFeasibleBytes + 100'000);
        QVERIFY(result->feasible);
        const auto direct = planner::simulate(*result);
        QVERIFY(direct);
        const auto plan = contract::parsePlan(contract::formatPlan(planner::emitPlan(*result, "test")), "p.json");
        QVERIFY(plan);
        const auto step = planner::planStep(*plan, "p.json");
        QVERIFY2(step, step ? "" : step.error().message.c_str());
        const auto timeline = planner::simulate(*step);
        QCOMPARE(timeline->stepPicoseconds, direct->stepPicoseconds);
        QCOMPARE(timeline->memory.peakBytes, direct->memory.peakBytes);
        QCOMPARE(timeline->intervals.size(), direct->intervals.size());
        QCOMPARE(direct->memory.reservedBytes, result->peakBytes);
        QCOMPARE(direct->memory.peaks.optimizerStep, result->peaks.optimizerStep);
    }
};

QTEST_APPLESS_MAIN(TestTimeline)
#include "tst_timeline.moc"
