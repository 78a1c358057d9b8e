// SPDX-License-Identifier: GPL-3.0-or-later
// Planning at one budget with every batch size open, on one core: from nothing (reading apart), and again at 200
// budgets as a moving slider asks for them. Processor time of the thread, so that other load does not count.
#include "planner/cluster/Clusters.h"
#include "planner/readers/Readers.h"
#include "planner/search/Planner.h"

#include <fmt/format.h>

#include <algorithm>
#include <ctime>
#include <vector>

using namespace shardscope;

namespace {

double threadMilliseconds() {
    timespec now{};
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return static_cast<double>(now.tv_sec) * 1e3 + static_cast<double>(now.tv_nsec) * 1e-6;
}

double percentile(std::vector<double> values, double fraction) {
    std::sort(values.begin(), values.end());
    return values[static_cast<std::size_t>(fraction * static_cast<double>(values.size() - 1))];
}

bool measure(const char* graphName, const char* clusterName) {
    const auto graph = planner::openGraph(graphName);
    const auto cluster = planner::openCluster(clusterName);
    if (!graph || !cluster) {
        fmt::print(stderr, "{} on {} cannot be opened\n", graphName, clusterName);
        return false;
    }
    planner::PlanRequest request;
    request.graph = *graph;
    request.cluster = *cluster;
    const std::int64_t device = cluster->device.memoryBytes;

    std::vector<double> cold;
    std::int64_t smallest = 0;
    for (int i = 0; i < 9; ++i) {
        const double begin = threadMilliseconds();
        const auto fresh = planner::Planner::create(request);
        const auto plan = (*fresh)->solve(device);
        cold.push_back(threadMilliseconds() - begin);
        smallest = plan->smallestFeasibleBytes;
    }
    const auto planner = *planner::Planner::create(request);
    std::vector<double> warm;
    int proven = 0;
    double gap = 0;
    constexpr int kBudgets = 200;
    const std::int64_t largest = std::max(device, smallest * 3 / 2);
    for (int i = 0; i < kBudgets; ++i) {
        const double begin = threadMilliseconds();
        const auto plan = planner->solve(smallest + (largest - smallest) / (kBudgets - 1) * i);
        warm.push_back(threadMilliseconds() - begin);
        proven += plan->certificate.provenOptimal ? 1 : 0;
        gap = std::max(gap, plan->certificate.gap);
    }
    fmt::print("{:<18} {:<18} {:>10.2f} {:>10.2f} {:>10.2f} {:>9} {:>10.1e}\n", graphName, clusterName,
               percentile(cold, 0.5), percentile(warm, 0.5), percentile(warm, 0.99),
               fmt::format("{}/{}", proven, kBudgets), gap);
    return true;
}

} // namespace

int main() {
    fmt::print("{:<18} {:<18} {:>10} {:>10} {:>10} {:>9} {:>10}\n", "graph", "cluster", "first ms", "p50 ms", "p99 ms",
               "proven", "worst gap");
    bool done = measure("gpt2-xl", "8x-titan-pcie3");
    for (const auto& [graph, cluster] : {std::pair{"gpt2-xl", "8x-a100-80g"},
                                         {"llama-3.1-8b", "2x8-h100"},
                                         {"gpt3-175b", "16x8-h100"},
                                         {"llama-3.1-405b", "64x8-h100"},
                                         {"qwen3-4b", "4x-rtx4090-pcie4"}})
        done = measure(graph, cluster) && done;
    return done ? 0 : 1;
}
