// SPDX-License-Identifier: GPL-3.0-or-later
// Plans from elsewhere are checked before they are simulated; traces are valid; memory stays below what is reserved.
#include "planner/support/TimelineFixtures.h"
#include "planner/timeline/Timeline.h"
#include "planner/timeline/Trace.h"

#include <QtTest>
#include <nlohmann/json.hpp>

#include <map>

using namespace shardscope;
using namespace shardscope::testing;
using contract::Category;

namespace {

std::shared_ptr<const planner::Planner> smallPlanner() {
    planner::PlanRequest request;
    request.graph = smallGraph(smallArchitecture(3, 24, 3, 101, true), 16);
    request.cluster = exampleCluster(4, 1e-6, 1e-9);
    request.precision = "fp32-adam";
    return *planner::Planner::create(request);
}

contract::Plan smallPlan() {
    const auto planner = smallPlanner();
    return planner::emitPlan(*planner->solve(planner->solve(1)->smallestFeasibleBytes + 100'000), "test");
}

#define VERIFY_REFUSED(plan, graph, words)                                                                             \
    do {                                                                                                               \
        const auto refused = planner::planStep(plan, "p.json", graph);                                                 \
        QVERIFY(!refused);                                                                                             \
        QCOMPARE(static_cast<int>(refused.error().kind), static_cast<int>(contract::ErrorKind::BadInput));             \
        const QString message = QString::fromStdString(refused.error().message);                                       \
        QVERIFY2(message.startsWith("p.json: ") && message.contains(words), qPrintable(message));                      \
    } while (false)

} // namespace

class TestTimelineInput : public QObject {
    Q_OBJECT

private slots:
    void wrongPlansAreRefused() {
        const contract::Plan good = smallPlan();
        QVERIFY(planner::planStep(good, "p.json"));
        contract::Plan plan = good;
        plan.buffers.buffers[3].bytes += 256;
        VERIFY_REFUSED(plan, nullptr, "buffers[3].bytes");
        plan = good;
        plan.buffers.buffers.pop_back();
        VERIFY_REFUSED(plan, nullptr, "buffers has");
        plan = good;
        plan.buffers.buffers[0].last = 1 << 29;
        VERIFY_REFUSED(plan, nullptr, "buffers[0]");
        plan = good;
        plan.operators.pop_back();
        VERIFY_REFUSED(plan, nullptr, "operators has");
        plan = good;
        plan.operators[2].name = "other";
        VERIFY_REFUSED(plan, nullptr, "operators[2].name");
        plan = good;
        plan.operators[0].recompute = true;
        VERIFY_REFUSED(plan, nullptr, "operators[0].recompute");
        plan = good;
        plan.operators[3].placement = {contract::PlacementKind::Shard, 1 << 26, 1 << 26, {}};
        VERIFY_REFUSED(plan, nullptr, "operators[3].slices");
        plan = good;
        plan.parallel.tensor = 2;
        VERIFY_REFUSED(plan, nullptr, "parallel.tensor");
        plan = good;
        plan.parallel.data = 3;
        VERIFY_REFUSED(plan, nullptr, "parallel.data");
        plan = good;
        plan.training.microBatch = std::int64_t{1} << 40;
        VERIFY_REFUSED(plan, nullptr, "training.micro_batch");
        plan = good;
        plan.training.accumulate = std::int64_t{1} << 40;
        VERIFY_REFUSED(plan, nullptr, "micro-steps");
        plan = good;
        plan.training.precision = "fp1";
        VERIFY_REFUSED(plan, nullptr, "training.precision");
    }

    void withoutArchitectureTheGraphMustBeTheSame() {
        contract::Plan plan = smallPlan();
        plan.graph.architecture.reset();
        VERIFY_REFUSED(plan, nullptr, "graph.architecture is missing");
        const planner::GraphPointer same = smallGraph(smallArchitecture(3, 24, 3, 101, true), 16);
        QVERIFY(planner::planStep(plan, "p.json", same));
        const planner::GraphPointer other = smallGraph(smallArchitecture(3, 24, 3, 103, true), 16);
        VERIFY_REFUSED(plan, other, "graph.sha256");
        const planner::GraphPointer shorter = smallGraph(smallArchitecture(3, 24, 3, 101, true), 8);
        VERIFY_REFUSED(plan, shorter, "training.sequence");
    }

    void whatCannotBeSimulatedSaysSo() {
        const auto none = planner::simulate(*smallPlanner()->solve(1));
        QVERIFY(!none);
        QVERIFY(none.error().message.find("memory limit") != std::string::npos);
        contract::Cluster slow = exampleCluster(8, 1e3, 1);
        StepRecipe recipe{timedGraph(2), slow, {"shard"}};
        const auto endless = planner::simulate(makeStep(recipe));
        QVERIFY(!endless);
        QVERIFY(endless.error().message.find("longer than a timeline") != std::string::npos);
    }

    void memoryNeverExceedsWhatIsReserved() {
        std::mt19937 random(99);
        for (int round = 0; round < 400; ++round) {
            const planner::PlannedStep step = randomStep(random);
            const auto timeline = planner::simulate(step);
            const planner::MemoryTimeline& memory = timeline->memory;
            QCOMPARE(memory.reservedBytes, step.buffers.totalBytes() + step.request.cluster.reserveBytes());
            contract::Ledger inUse = memory.constant;
            std::int64_t total = inUse.total();
            std::int64_t largest = total;
            std::int64_t now = 0;
            for (const planner::MemoryChange& change : memory.changes) {
                QVERIFY(change.picoseconds >= now);
                now = change.picoseconds;
                inUse[change.category] += change.bytes;
                total += change.bytes;
                QVERIFY(inUse[change.category] >= memory.constant[change.category]);
                QVERIFY2(total <= memory.reservedBytes, qPrintable(QString::number(round)));
                largest = std::max(largest, total);
            }
            QVERIFY(now <= timeline->stepPicoseconds);
            QCOMPARE(largest, memory.peakBytes);
            QCOMPARE(memory.atPeak.total(), memory.peakBytes);
            // When the step is over only what is there all the time is left.
            QVERIFY(inUse == memory.constant);
            QCOMPARE(memory.peaks.optimizerStep, memory.constant.total());
            QCOMPARE(memory.peaks.firstStep, memory.peakBytes);
            QCOMPARE(memory.peaks.resume, memory.peakBytes);
        }
    }

    void keptActivationsGrowAndFall() {
        const planner::PlannedStep step = makeStep(
            {smallGraph(smallArchitecture(4, 24, 3, 101, false), 16), exampleCluster(2, 1e-6, 1e-9), {"shard"}});
        const auto timeline = planner::simulate(step);
        std::int64_t activations = timeline->memory.constant[Category::Activations];
        std::int64_t largest = 0;
        bool fell = false;
        for (const planner::MemoryChange& change : timeline->memory.changes) {
            if (change.category != Category::Activations)
                continue;
            activations += change.bytes;
            QVERIFY(!(fell && change.bytes > 0)); // never grows again
            fell = fell || change.bytes < 0;
            largest = std::max(largest, activations);
        }
        QCOMPARE(largest, step.buffers.ledger()[Category::Activations]);
        QCOMPARE(activations, 0);
    }

    void samplesMissNoPeak() {
        std::mt19937 random(5);
        for (int round = 0; round < 50; ++round) {
            const auto timeline = planner::simulate(randomStep(random));
            for (const std::size_t windows : {1U, 7U, 100U}) {
                const auto samples = planner::sampleMemory(timeline->memory, timeline->stepPicoseconds, windows);
                QCOMPARE(samples.size(), windows);
                std::int64_t largest = 0;
                for (const planner::MemorySample& sample : samples)
                    largest = std::max(largest, sample.bytes.total());
                QCOMPARE(largest, timeline->memory.peakBytes);
            }
            QVERIFY(planner::sampleMemory(timeline->memory, timeline->stepPicoseconds, 0).empty());
        }
    }

    void tracesAreValid() {
        std::mt19937 random(3);
        for (int round = 0; round < 20; ++round) {
            const planner::PlannedStep step = randomStep(random);
            const auto timeline = planner::simulate(step);
            const std::string text = planner::formatTrace(step, *timeline);
            const auto document = contract::parseJson(text, "trace");
            QVERIFY2(document, document ? "" : document.error().message.c_str());
            const contract::Json& events = document->at("traceEvents");
            std::size_t complete = 0;
            std::map<int, double> end;
            std::map<std::string, std::pair<double, std::int64_t>> counters;
            std::map<int, std::string> threads;
            for (const contract::Json& event : events) {
                const std::string phase = event.at("ph");
                if (phase == "M") {
                    if (event.at("name") == "thread_name")
                        threads[event.at("tid")] = event.at("args").at("name");
                } else if (phase == "X") {
                    ++complete;
                    const double begin = event.at("ts");
                    const double duration = event.at("dur");
                    double& last = end[event.at("tid")];
                    QVERIFY(begin >= last - 1e-6);
                    QVERIFY(duration > 0);
                    last = begin + duration;
                    QVERIFY(last <= static_cast<double>(timeline->stepPicoseconds) * 1e-6 + 1e-6);
                    QVERIFY(threads.contains(event.at("tid")));
                } else {
                    QCOMPARE(phase, std::string("C"));
                    auto& [at, bytes] = counters[event.at("name")];
                    QVERIFY(event.at("ts").get<double>() >= at);
                    at = event.at("ts");
                    bytes = event.at("args").at("bytes");
                    QVERIFY(bytes >= 0);
                }
            }
            QCOMPARE(complete, timeline->intervals.size());
            QCOMPARE(threads.size(), std::size_t{2});
            std::int64_t left = 0;
            for (const auto& [name, last] : counters)
                left += last.second;
            QCOMPARE(left, timeline->memory.constant.total());
        }
    }

    void namesAreQuotedInTraces() {
        StepRecipe recipe{timedGraph(1), exampleCluster(1, 0, 1e-9), {"replicate"}};
        auto graph = std::make_shared<planner::Graph>(*recipe.graph);
        graph->operators[0].name = "a\"b\\c\n";
        recipe.graph = graph;
        const planner::PlannedStep step = makeStep(recipe);
        const auto document = contract::parseJson(planner::formatTrace(step, *planner::simulate(step)), "trace");
        QVERIFY(document);
        QCOMPARE(document->at("traceEvents").at(3).at("args").at("operator").get<std::string>(),
                 graph->operators[0].name);
    }
};

QTEST_APPLESS_MAIN(TestTimelineInput)
#include "tst_timeline_input.moc"
