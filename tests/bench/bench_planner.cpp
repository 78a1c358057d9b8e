// SPDX-License-Identifier: GPL-3.0-or-later
// Planning at one budget with every batch size open, on one core: from nothing (reading apart), and again at 200
// budgets as a moving slider asks for them, with the work limit that the window uses. Then frontiers of 512 points:
// quick ones with a certified gap, and proven ones. Processor time of the thread, so that other load does not count.
#include "planner/cluster/Clusters.h"
#include "planner/readers/Readers.h"
#include "planner/search/Planner.h"

#include <fmt/format.h>

#include <algorithm>
#include <ctime>
#include <string>
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

struct Setting {
    std::string cluster;
    std::string devices;
};

planner::PlanRequest requestFor(const std::string& graph, const Setting& setting) {
    planner::PlanRequest request;
    request.graph = planner::openGraph(graph).value();
    request.cluster = planner::openCluster(setting.cluster, setting.devices).value();
    return request;
}

void measureReplans(const std::string& graphName, const Setting& setting) {
    const planner::PlanRequest request = requestFor(graphName, setting);
    const std::int64_t device = request.cluster.device.memoryBytes;
    std::vector<double> cold;
    std::int64_t smallest = 0;
    for (int i = 0; i < 5; ++i) {
        const double begin = threadMilliseconds();
        const auto fresh = planner::Planner::create(request);
        const auto plan = (*fresh)->solve(device, planner::interactiveBudget());
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
        const auto plan =
            planner->solve(smallest + (largest - smallest) / (kBudgets - 1) * i, planner::interactiveBudget());
        warm.push_back(threadMilliseconds() - begin);
        proven += plan->certificate.provenOptimal ? 1 : 0;
        gap = std::max(gap, plan->certificate.gap);
    }
    fmt::print("{:<26} {:<18} {:>5} {:>9.2f} {:>9.2f} {:>9.2f} {:>9} {:>10.1e}\n", graphName,
               setting.cluster + (setting.devices.empty() ? "" : " " + setting.devices), request.cluster.devices(),
               percentile(cold, 0.5), percentile(warm, 0.5), percentile(warm, 0.99),
               fmt::format("{}/{}", proven, kBudgets), gap);
}

void measureFrontier(const std::string& graphName, const Setting& setting, double tolerance) {
    const auto planner = *planner::Planner::create(requestFor(graphName, setting));
    planner::SearchBudget budget;
    budget.tolerance = tolerance;
    const double begin = threadMilliseconds();
    double last = begin, longest = 0;
    const planner::Frontier frontier = planner->frontier(512, budget, [&](double) {
        const double now = threadMilliseconds();
        longest = std::max(longest, now - last);
        last = now;
    });
    const double total = threadMilliseconds() - begin;
    double gap = 0;
    for (const planner::FrontierPoint& point : frontier.points)
        gap = std::max(gap, point.gap);
    const std::size_t supported = planner->breakpoints(budget).size();
    fmt::print("{:<26} {:<18} {:>9.0e} {:>9.1f} {:>12.2f} {:>8} {:>10} {:>10.1e}\n", graphName,
               setting.cluster + (setting.devices.empty() ? "" : " " + setting.devices), tolerance, total, longest,
               frontier.points.size(), supported, gap);
}

} // namespace

int main(int argc, char** argv) {
    const std::vector<Setting> settings{{"8x-titan-pcie3", ""}, {"4x-rtx4090-pcie4", ""}, {"8x-a100-80g", ""},
                                        {"2x8-h100", ""},       {"64x8-h100", ""},        {"64x8-h100", "128x8"}};
    fmt::print("{:<26} {:<18} {:>5} {:>9} {:>9} {:>9} {:>9} {:>10}\n", "graph", "cluster", "ranks", "first ms",
               "p50 ms", "p99 ms", "proven", "worst gap");
    for (const planner::ZooEntry& graph : planner::bundledGraphs()) {
        if (argc > 1 && graph.name != argv[1])
            continue;
        for (const Setting& setting : settings) {
            if (argc < 3 || setting.cluster == argv[2])
                measureReplans(graph.name, setting);
        }
    }
    if (argc > 2) // one graph and one cluster: nothing else is asked
        return 0;
    fmt::print("\n{:<26} {:<18} {:>9} {:>9} {:>12} {:>8} {:>10} {:>10}\n", "frontier", "cluster", "tolerance", "ms",
               "slowest ms", "points", "supported", "worst gap");
    for (const double tolerance : {1e-4, 0.0}) {
        measureFrontier("gpt3-175b", {"16x8-h100", ""}, tolerance);
        measureFrontier("gpt3-175b", {"64x8-h100", "128x8"}, tolerance);
        measureFrontier("gpt2-xl", {"8x-titan-pcie3", ""}, tolerance);
    }
    return 0;
}
