// SPDX-License-Identifier: GPL-3.0-or-later
#include "planner/cli/Commands.h"
#include "planner/cli/Print.h"
#include "planner/cli/RequestOptions.h"
#include "runtime/contract/Bytes.h"
#include "runtime/contract/Json.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <memory>

namespace shardscope::planner::cli {

namespace {

struct FrontierOptions : RequestOptions {
    std::int32_t points = 32;
};

int runFrontier(const FrontierOptions& options) {
    const auto request = options.request();
    if (!request)
        return report(request.error(), options.json);
    const auto planner = Planner::create(*request);
    if (!planner)
        return report(planner.error(), options.json);
    const Frontier frontier = (*planner)->frontier(options.points, options.searchBudget());
    if (options.json) {
        const auto list = [](const std::vector<FrontierPoint>& points) {
            contract::OrderedJson array = contract::OrderedJson::array();
            for (const FrontierPoint& point : points)
                array.push_back({{"memory_bytes", point.memoryBytes},
                                 {"samples_per_second", point.samplesPerSecond},
                                 {"step_seconds", point.stepSeconds},
                                 {"batch", point.microBatch},
                                 {"peak_bytes", point.peakBytes},
                                 {"gap", point.gap},
                                 {"counts",
                                  {{"replicate", point.counts.replicate},
                                   {"keep", point.counts.keep},
                                   {"shard", point.counts.shard}}}});
            return array;
        };
        const contract::OrderedJson document{{"smallest_feasible_bytes", frontier.smallestFeasibleBytes},
                                             {"largest_bytes", frontier.largestUsefulBytes},
                                             {"points", list(frontier.points)},
                                             {"breakpoints", list((*planner)->breakpoints(options.searchBudget()))}};
        printJson(document);
    } else {
        print("{:>12} {:>12} {:>14} {:>6} {:>10} {:>10} {:>6} {:>6}\n", "memory", "peak", "samples/s", "batch", "gap",
              "replicate", "keep", "shard");
        const std::int64_t device = (*planner)->request().cluster.device.memoryBytes;
        bool beyond = false;
        for (const FrontierPoint& point : frontier.points) {
            if (point.memoryBytes > device && !beyond)
                print("-- beyond the device, which has {} --\n", contract::describeBytes(device));
            beyond = point.memoryBytes > device;
            print("{:>12} {:>12} {:>14.3f} {:>6} {:>10.1e} {:>10} {:>6} {:>6}\n",
                  contract::describeBytes(point.memoryBytes), contract::describeBytes(point.peakBytes),
                  point.samplesPerSecond, point.microBatch, point.gap, point.counts.replicate, point.counts.keep,
                  point.counts.shard);
        }
    }
    return interruptToken().stop_requested() ? 130 : 0;
}

} // namespace

void addFrontier(CLI::App& app, int& exitCode) {
    const auto options = std::make_shared<FrontierOptions>();
    CLI::App* command = app.add_subcommand("frontier", "throughput over memory, from the smallest feasible budget up");
    command->add_option("GRAPH", options->graph, kGraphHelp)->required();
    command->add_option("--points", options->points, "how many budgets")
        ->check(CLI::Range(1, 4096))
        ->capture_default_str();
    options->addTo(*command);
    command->callback([options, &exitCode] { exitCode = runFrontier(*options); });
}

} // namespace shardscope::planner::cli
