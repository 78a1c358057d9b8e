// SPDX-License-Identifier: GPL-3.0-or-later
// What must hold of every answer, on the bundled graphs and clusters.
#include "planner/cluster/Clusters.h"
#include "planner/readers/Readers.h"
#include "planner/search/AbstractProblem.h"
#include "planner/search/Remedies.h"
#include "planner/support/PlannerFixtures.h"
#include "support/Sanitized.h"

#include <QtTest>

#include <algorithm>
#include <chrono>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <thread>

using namespace shardscope;
using namespace shardscope::testing;

namespace {

planner::PlanRequest bundled(const std::string& graph, const std::string& cluster) {
    planner::PlanRequest request;
    request.graph = planner::openGraph(graph).value();
    request.cluster = planner::openCluster(cluster, "").value();
    return request;
}

/// Two thousand operators of different sizes with the options of the paper's formulas.
planner::AbstractProblem differentOperators(std::uint64_t seed, std::size_t count, double share) {
    std::mt19937_64 random(seed);
    planner::AbstractProblem problem;
    std::int64_t least = 0, most = 0;
    for (std::size_t i = 0; i < count; ++i) {
        const double parameters = std::floor(std::uniform_real_distribution<double>(1e4, 4e7)(random));
        planner::AbstractOperator op{"x" + std::to_string(i), {}};
        std::int64_t opLeast = std::numeric_limits<std::int64_t>::max(), opMost = 0;
        for (const auto& [s, k] : {std::pair{1, 0}, {1, 1}, {2, 1}, {2, 2}, {4, 2}, {4, 4}, {8, 4}, {8, 8}}) {
            const double sharded = parameters * k / s;
            const double whole = parameters - sharded;
            const auto state = static_cast<std::int64_t>(std::ceil(16 * whole + 2 * sharded));
            const double time =
                21 * (1e-5 * k + 4 * sharded / 8 * 1e-10) + (k < s ? 14 * (1e-5 + 4 * whole / 8 * 1e-10) : 0.0);
            op.options.push_back({std::to_string(s), state, k == 0 ? 0 : static_cast<std::int64_t>(4 * parameters / s),
                                  std::llround(time * 1e9)});
            opLeast = std::min(opLeast, state);
            opMost = std::max(opMost, state);
        }
        least += opLeast;
        most += opMost;
        problem.operators.push_back(std::move(op));
    }
    problem.limitBytes = least + static_cast<std::int64_t>(share * static_cast<double>(most - least));
    return problem;
}

/// For each kind of operator (its options), the labels its operators chose, sorted.
std::map<std::string, std::vector<std::string>> choicesByKind(const planner::AbstractProblem& problem,
                                                              const planner::AbstractAnswer& answer) {
    std::map<std::string, std::vector<std::string>> choices;
    for (std::size_t i = 0; i < problem.operators.size(); ++i) {
        std::string kind;
        for (const planner::AbstractOption& option : problem.operators[i].options)
            kind += std::to_string(option.stateBytes) + "," + std::to_string(option.transientBytes) + "," +
                    std::to_string(option.nanoseconds) + ";";
        choices[kind].push_back(answer.choice[i]);
    }
    for (auto& [kind, labels] : choices)
        std::sort(labels.begin(), labels.end());
    return choices;
}

} // namespace

class TestSearchProperties : public QObject {
    Q_OBJECT

private slots:
    void noBaselineBeatsTheFullSearch_data() {
        QTest::addColumn<QString>("graph");
        for (const planner::ZooEntry& graph : planner::bundledGraphs())
            QTest::newRow(graph.name.c_str()) << QString::fromStdString(graph.name);
    }
    void noBaselineBeatsTheFullSearch() {
        QFETCH(QString, graph);
        int compared = 0, least = 3; // the largest graphs fit few of the clusters
        for (const planner::ZooEntry& cluster : planner::bundledClusters()) {
#ifdef SHARDSCOPE_SANITIZED
            least = 1;
            if (cluster.name != "8x-titan-pcie3" && cluster.name != "2x8-h100")
                continue; // ten times as slow
#endif
            const planner::PlanRequest request = bundled(graph.toStdString(), cluster.name);
            const auto planner = *planner::Planner::create(request);
            const std::int64_t smallest = planner->solve(0)->smallestFeasibleBytes;
            const std::int64_t device = request.cluster.device.memoryBytes;
            std::vector<std::int64_t> limits{device, device / 2, smallest + smallest / 20};
            for (const std::int64_t limit : limits) {
                const auto full = planner->solve(limit);
                QVERIFY(!full->feasible || full->certificate.provenOptimal);
                for (const planner::Baseline& baseline : planner::solveBaselines(request, limit)) {
                    if (!baseline.feasible)
                        continue;
                    ++compared;
                    QVERIFY(full->feasible);
                    QVERIFY2(baseline.samplesPerSecond <= full->samplesPerSecond * (1 + 1e-12),
                             qPrintable(QString("%1 on %2 within %3 bytes: %4 gives %5 samples/s, the search %6")
                                            .arg(graph, QString::fromStdString(cluster.name))
                                            .arg(limit)
                                            .arg(QString::fromStdString(baseline.name))
                                            .arg(baseline.samplesPerSecond)
                                            .arg(full->samplesPerSecond)));
                }
            }
        }
        QVERIFY2(compared >= least, qPrintable(QString("only %1 plans compared").arg(compared)));
    }

    void aBlockIsPlacedAlikeAndNeverFaster() {
        int slower = 0, compared = 0;
        for (const auto& [graph, cluster] :
             {std::pair{"gpt2-xl", "8x-titan-pcie3"}, {"llama-3.1-8b", "2x8-h100"}, {"qwen3-4b", "4x-rtx4090-pcie4"}}) {
            planner::PlanRequest request = bundled(graph, cluster);
            const auto byOperator = *planner::Planner::create(request);
            request.granularity = planner::Granularity::Block;
            const auto byBlock = *planner::Planner::create(request);
            const std::int64_t smallest = byBlock->solve(0)->smallestFeasibleBytes;
            QVERIFY(byOperator->solve(0)->smallestFeasibleBytes <= smallest);
            const std::int64_t device = request.cluster.device.memoryBytes;
            for (const std::int64_t limit : {smallest, (smallest + device) / 2, device}) {
                const auto plan = byBlock->solve(limit);
                QVERIFY(plan->feasible && plan->certificate.provenOptimal);
                const auto free = byOperator->solve(limit);
                QVERIFY(plan->samplesPerSecond <= free->samplesPerSecond * (1 + 1e-12));
                slower += plan->samplesPerSecond < free->samplesPerSecond * (1 - 1e-6) ? 1 : 0;
                ++compared;
                std::map<std::int32_t, const planner::PlannedOperator*> firstOf;
                for (const planner::PlannedOperator& planned : plan->operators) {
                    const std::int32_t block = request.graph->operators[static_cast<std::size_t>(planned.op)].block;
                    if (block < 0)
                        continue;
                    const planner::PlannedOperator& first = *firstOf.emplace(block, &planned).first->second;
                    QCOMPARE(planned.placement.kind, first.placement.kind);
                    QCOMPARE(planned.placement.group, first.placement.group);
                    QCOMPARE(planned.coalesced, first.coalesced);
                    QCOMPARE(planned.recompute, first.recompute);
                    // Cut as finely as its block, or into fewer slices where it cannot be; all of them sharded.
                    QVERIFY(!planned.placement.isSharded() ||
                            planned.placement.shardedSlices == planned.placement.slices);
                }
                for (const planner::Reason& reason : byBlock->reasons(*plan, 2)) {
                    QVERIFY(reason.wholeBlock);
                    QVERIFY(reason.alternative.kind != contract::PlacementKind::Shard ||
                            plan->operators[2].placement.kind != contract::PlacementKind::Shard);
                }
                QVERIFY(!byBlock->reasons(*plan, 2).empty());
            }
        }
        QVERIFY2(slower > 0 && slower <= compared, "operators decided alone gain nothing anywhere");
    }

    void equalQuestionsGiveEqualFiles() {
        planner::SearchBudget limited;
        limited.workLimit = 3000;
        for (const auto& [graph, cluster] :
             {std::pair{"gpt2-xl", "8x-titan-pcie3"}, {"qwen3-4b", "4x-rtx4090-pcie4"}}) {
            planner::PlanRequest request = bundled(graph, cluster);
            const std::int64_t limit = request.cluster.device.memoryBytes / 5 * 4;
            for (const planner::SearchBudget& budget : {planner::SearchBudget{}, limited}) {
                const auto file = [&](const planner::Planner& planner) {
                    return contract::formatPlan(planner::emitPlan(*planner.solve(limit, budget), "test"));
                };
                const auto shared = *planner::Planner::create(request);
                const std::string expected = file(*shared);
                // Several threads at once, after other questions have left their traces in what is remembered.
                shared->frontier(20);
                std::vector<std::string> files(4);
                std::vector<std::thread> threads;
                for (std::string& text : files)
                    threads.emplace_back([&] { text = file(*shared); });
                for (std::thread& thread : threads)
                    thread.join();
                for (const std::string& text : files)
                    QCOMPARE(text, expected);
                // The order in which equal things are said does not matter.
                planner::PlanRequest reordered = request;
                std::reverse(reordered.slices.begin(), reordered.slices.end());
                const contract::Plan other =
                    planner::emitPlan(*(*planner::Planner::create(reordered))->solve(limit, budget), "test");
                QCOMPARE(contract::formatPlan(other), expected);
            }
        }
    }

    void theOrderOfEqualOperatorsDoesNotMatter() {
        planner::AbstractProblem problem = differentOperators(3, 12, 0.4);
        for (int i = 0; i < 12; ++i)
            problem.operators.push_back(problem.operators[static_cast<std::size_t>(i % 4)]);
        problem.limitBytes *= 2;
        const auto first = *planner::solveAbstractProblem(problem);
        const auto expected = choicesByKind(problem, first);
        std::mt19937_64 random(9);
        for (int n = 0; n < 10; ++n) {
            std::shuffle(problem.operators.begin(), problem.operators.end(), random);
            const auto again = *planner::solveAbstractProblem(problem);
            QCOMPARE(again.nanoseconds, first.nanoseconds);
            QCOMPARE(again.peakBytes, first.peakBytes);
            QVERIFY(again.provenOptimal);
            // Of each kind of operator the same number takes each option.
            QCOMPARE(choicesByKind(problem, again), expected);
        }
    }

    void equalOperatorsInAnotherOrderGiveTheSameFile() {
        // Names turn by one block: every operator of a block stands somewhere else, among its equals.
        constexpr int kBlocks = 24;
        const planner::PlanRequest request = bundled("gpt2-medium", "8x-titan-pcie3");
        const QRegularExpression name("\\bh\\.(\\d+)\\.");
        const auto turn = [&](const QString& text, int by) {
            QString turned;
            qsizetype last = 0;
            for (auto found = name.globalMatch(text); found.hasNext();) {
                const QRegularExpressionMatch match = found.next();
                turned += text.mid(last, match.capturedStart() - last);
                turned += QString("h.%1.").arg((match.captured(1).toInt() + kBlocks + by) % kBlocks);
                last = match.capturedEnd();
            }
            return turned + text.mid(last);
        };
        auto graph = std::make_shared<planner::Graph>(*request.graph);
        int turned = 0;
        for (contract::Operator& op : graph->operators) {
            const std::string other = turn(QString::fromStdString(op.name), 1).toStdString();
            turned += other != op.name ? 1 : 0;
            op.name = other;
        }
        QVERIFY(turned >= 4 * kBlocks);
        for (const double share : {0.3, 0.6}) {
            const auto limit =
                static_cast<std::int64_t>(share * static_cast<double>(request.cluster.device.memoryBytes));
            planner::PlanRequest reordered = request;
            reordered.graph = graph;
            const auto file = [&](const planner::PlanRequest& asked) {
                const auto plan = (*planner::Planner::create(asked))->solve(limit);
                QString text = QString::fromStdString(contract::formatPlan(planner::emitPlan(*plan, "test")));
                // The digest of the graph covers its names.
                return text.remove(QRegularExpression("\"sha256\":\\s*\"[0-9a-f]+\""));
            };
            const QString expected = file(request);
            QVERIFY(file(reordered) != expected);
            QCOMPARE(turn(file(reordered), -1), expected);
        }
    }

    void frontierPointsAreTheAnswersAtTheirBudgets() {
        for (const auto& [graph, cluster] : {std::pair{"gpt2-large", "8x-titan-pcie3"}, {"llama-3.1-8b", "2x8-h100"}}) {
            const auto planner = *planner::Planner::create(bundled(graph, cluster));
            std::vector<planner::FrontierPoint> points = planner->frontier(24).points;
            QCOMPARE(points.size(), std::size_t{24});
            const std::vector<planner::FrontierPoint> breakpoints = planner->breakpoints();
            QVERIFY(breakpoints.size() > 3);
            points.insert(points.end(), breakpoints.begin(), breakpoints.end());
            for (const planner::FrontierPoint& point : points) {
                const auto plan = planner->solve(point.memoryBytes);
                QCOMPARE(point.gap, 0.0);
                QCOMPARE(point.samplesPerSecond, plan->samplesPerSecond);
                QVERIFY(point.peakBytes <= point.memoryBytes);
            }
        }
    }

    void manyDifferentOperatorsHaveASmallGapAtOnce() {
        for (const double share : {0.1, 0.3, 0.5, 0.8}) {
            planner::SearchLimits limits;
            limits.workLimit = 20'000; // a first look at a threshold, deterministic
            const auto answer = *planner::solveAbstractProblem(differentOperators(7, 2000, share), limits);
            QVERIFY(answer.feasible);
            QVERIFY2(answer.gap <= 1e-4, qPrintable(QString::number(answer.gap)));
            QVERIFY(answer.lowerBoundNanoseconds <= answer.nanoseconds);
        }
    }

    void aSearchCanBeCancelled() {
        const planner::AbstractProblem problem = differentOperators(7, 2000, 0.3);
        planner::SearchLimits limits;
        std::stop_source stop;
        limits.stop = stop.get_token();
        std::chrono::steady_clock::time_point asked;
        std::thread canceller([&] {
            std::this_thread::sleep_for(std::chrono::milliseconds(700));
            asked = std::chrono::steady_clock::now();
            stop.request_stop();
        });
        const auto answer = *planner::solveAbstractProblem(problem, limits);
        const std::chrono::duration<double> late = std::chrono::steady_clock::now() - asked;
        canceller.join();
        QVERIFY(answer.cancelled);
        QVERIFY(answer.feasible && answer.gap < 1e-5);
        QVERIFY2(late.count() < 1, qPrintable(QString::number(late.count()))); // the benchmark tells how late it is
    }

    void remediesFitAndPairsAreOnlyOfferedWhereNeitherSuffices() {
        planner::PlanRequest request = bundled("llama-3.1-8b", "8x-titan-pcie3");
        request.microBatch = 8;
        request.recompute = contract::RecomputePolicy::Off;
        const auto planner = *planner::Planner::create(request);
        const std::int64_t limit = request.cluster.device.memoryBytes;
        QVERIFY(!planner->solve(limit)->feasible);
        const auto remedies = planner::findRemedies(planner->request(), limit);
        QVERIFY(!remedies.empty());
        int pairs = 0;
        for (std::size_t i = 0; i < remedies.size(); ++i) {
            const planner::Remedy& remedy = remedies[i];
            const auto plan = (*planner::Planner::create(remedy.request))->solve(limit);
            QVERIFY(plan->feasible && plan->peakBytes <= limit);
            QCOMPARE(plan->peakBytes, remedy.peakBytes);
            pairs += remedy.isPair ? 1 : 0;
            QCOMPARE(remedy.isPair, remedy.change.find(", ") != std::string::npos);
            if (i > 0)
                QVERIFY(remedies[i - 1].changesNumerics <= remedy.changesNumerics);
        }
        for (const planner::Remedy& pair : remedies) {
            if (!pair.isPair)
                continue;
            for (const planner::Remedy& single : remedies)
                QVERIFY(single.isPair ||
                        (pair.change.find(single.change + ",") == std::string::npos &&
                         !QString::fromStdString(pair.change).endsWith(", " + QString::fromStdString(single.change))));
        }
        QVERIFY(pairs > 0);
    }
};

QTEST_APPLESS_MAIN(TestSearchProperties)
#include "tst_search_properties.moc"
