// SPDX-License-Identifier: GPL-3.0-or-later
#include "planner/cli/Commands.h"
#include "planner/cli/PlanFile.h"
#include "planner/cli/Print.h"
#include "planner/cli/RequestOptions.h"
#include "runtime/contract/Bytes.h"
#include "runtime/contract/Json.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <memory>

namespace shardscope::planner::cli {

namespace {

struct CompareOptions : RequestOptions {
    std::string memory;
};

contract::OrderedJson rowJson(const Baseline& row, double fullRate) {
    contract::OrderedJson json{{"name", row.name}, {"what", row.what}, {"feasible", row.feasible}};
    if (row.feasible) {
        const PlanResult& plan = *row.plan;
        json["samples_per_second"] = row.samplesPerSecond;
        json["tokens_per_second"] = plan.tokensPerSecond;
        json["step_seconds"] = row.stepSeconds;
        json["batch"] = row.microBatch;
        json["accumulate"] = plan.training.accumulate;
        json["global_batch"] = plan.training.globalBatch;
        json["recomputed_blocks"] = recomputedBlocks(plan);
        json["peak_bytes"] = row.peakBytes;
        json["proven_optimal"] = plan.certificate.provenOptimal;
        json["gap"] = plan.certificate.gap;
        // How much faster the full plan is.
        json["full_is_faster_by"] = fullRate / row.samplesPerSecond - 1;
    }
    json["smallest_feasible_bytes"] = row.smallestFeasibleBytes;
    return json;
}

int runCompare(const CompareOptions& options) {
    const auto request = options.request();
    if (!request)
        return report(request.error(), options.json);
    const auto limit = memoryLimit(options.memory, *request);
    if (!limit)
        return report(limit.error(), options.json);
    const auto planner = Planner::create(*request);
    if (!planner)
        return report(planner.error(), options.json);
    std::vector<Baseline> rows = solveBaselines((*planner)->request(), *limit, options.searchBudget());
    const PlanResultPointer full = (*planner)->solve(*limit, options.searchBudget());
    if (interruptToken().stop_requested())
        return 130;
    Baseline own;
    own.name = "full";
    own.what = "every placement, group, coalescing and recomputation";
    own.feasible = full->feasible;
    own.peakBytes = full->peakBytes;
    own.samplesPerSecond = full->samplesPerSecond;
    own.stepSeconds = full->stepSeconds;
    own.microBatch = full->training.microBatch;
    own.smallestFeasibleBytes = full->smallestFeasibleBytes;
    own.plan = full;
    rows.push_back(own);
    if (options.json) {
        contract::OrderedJson list = contract::OrderedJson::array();
        for (const Baseline& row : rows)
            list.push_back(rowJson(row, full->samplesPerSecond));
        printJson(contract::OrderedJson{{"graph", request->graph->name},
                                        {"cluster", request->cluster.name},
                                        {"limit_bytes", *limit},
                                        {"rows", list}});
        return full->feasible ? 0 : contract::exitCode(contract::ErrorKind::Infeasible);
    }
    print("{} on {}, limit {}: each at its own best batch and recomputation, priced by the same cost model\n",
          request->graph->title, request->cluster.title, contract::describeBytes(*limit));
    print("{:<20} {:>12} {:>12} {:>7} {:>11} {:>12} {:>14}\n", "policy", "samples/s", "step", "batch", "recomputed",
          "peak", "full is faster");
    for (const Baseline& row : rows) {
        if (!row.feasible) {
            print("{:<20} does not fit; at least {}\n", row.name, contract::describeBytes(row.smallestFeasibleBytes));
            continue;
        }
        print("{:<20} {:>12.3f} {:>12} {:>7} {:>11} {:>12} {:>14}\n", row.name, row.samplesPerSecond,
              durationText(row.stepSeconds), row.microBatch,
              fmt::format("{}/{}", recomputedBlocks(*row.plan), request->graph->blockCount()),
              contract::describeBytes(row.peakBytes),
              row.plan == full ? "-"
                               : fmt::format("{:.1f} %", (full->samplesPerSecond / row.samplesPerSecond - 1) * 100));
    }
    return full->feasible ? 0 : contract::exitCode(contract::ErrorKind::Infeasible);
}

} // namespace

void addCompare(CLI::App& app, int& exitCode) {
    const auto options = std::make_shared<CompareOptions>();
    CLI::App* command =
        app.add_subcommand("compare", "DDP, ZeRO-2, FSDP, HSDP, OSDP and the full search under the same limit");
    command->add_option("GRAPH", options->graph, kGraphHelp)->required();
    command->add_option("--memory", options->memory, "limit of one device, for example 16GiB (default: all of it)");
    options->addTo(*command);
    command->callback([options, &exitCode] { exitCode = runCompare(*options); });
}

} // namespace shardscope::planner::cli
