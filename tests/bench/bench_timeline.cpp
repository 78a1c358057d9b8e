// SPDX-License-Identifier: GPL-3.0-or-later
// How far the additive step time that the search minimises is from the simulated one, and how long a simulation takes.
#include "planner/cluster/Clusters.h"
#include "planner/readers/Readers.h"
#include "planner/timeline/Timeline.h"

#include <fmt/format.h>

#include <chrono>

using namespace shardscope;

int main() {
    // Rows are printed as they are found. "first use": updated weights are gathered before their first use instead of
    // at the end of the step.
    fmt::print("{:<18} {:<16} {:>4} {:>12} {:>10} {:>10} {:>9} {:>13} {:>10}\n", "cluster", "graph", "acc.",
               "additive s", "simulated", "first use", "exposed", "instructions", "ms");
    for (const planner::ZooEntry& clusterEntry : planner::bundledClusters()) {
        for (const planner::ZooEntry& graphEntry : planner::bundledGraphs()) {
            for (const std::int64_t accumulate : {1, 8}) {
                planner::PlanRequest request;
                request.graph = *planner::openGraph(graphEntry.name);
                request.cluster = *planner::openCluster(clusterEntry.name);
                request.accumulate = accumulate;
                const auto planner = planner::Planner::create(request);
                planner::SearchBudget budget;
                budget.timeLimitSeconds = 2;
                const auto plan = (*planner)->solve(request.cluster.device.memoryBytes, budget);
                if (!plan->feasible)
                    continue;
                const auto step = planner::planStep(*plan);
                if (!step) {
                    fmt::print("{:<18} {:<16} {:>4} {}\n", clusterEntry.name, graphEntry.name, accumulate,
                               step.error().message);
                    continue;
                }
                const auto begin = std::chrono::steady_clock::now();
                const auto timeline = planner::simulate(*step, {planner::UpdatedGather::EndOfStep, false});
                const std::chrono::duration<double, std::milli> spent = std::chrono::steady_clock::now() - begin;
                const auto early = planner::simulate(*step, {planner::UpdatedGather::BeforeFirstUse, false});
                if (!timeline || !early)
                    continue;
                fmt::print("{:<18} {:<16} {:>4} {:>12.4f} {:>10.4f} {:>10.4f} {:>8.1f}% {:>13} {:>10.2f}\n",
                           clusterEntry.name, graphEntry.name, accumulate, plan->stepSeconds,
                           timeline->stepSeconds() / plan->stepSeconds, early->stepSeconds() / plan->stepSeconds,
                           100.0 * static_cast<double>(timeline->exposedPicoseconds) /
                               static_cast<double>(timeline->stepPicoseconds),
                           step->executedInstructions(), spent.count());
                std::fflush(stdout);
            }
        }
    }
    return 0;
}
