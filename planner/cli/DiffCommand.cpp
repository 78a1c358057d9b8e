// SPDX-License-Identifier: GPL-3.0-or-later
#include "planner/cli/Commands.h"
#include "planner/cli/PlanFile.h"
#include "planner/cli/Print.h"
#include "planner/cli/RequestOptions.h"
#include "planner/timeline/PlanDiff.h"
#include "runtime/contract/Bytes.h"
#include "runtime/contract/Json.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <memory>

namespace shardscope::planner::cli {

namespace {

using contract::OrderedJson;

struct DiffOptions {
    std::string a;
    std::string b;
    std::string graph;
    bool json = false;
};

OrderedJson toJson(const std::array<double, kCauseCount>& seconds) {
    OrderedJson json = OrderedJson::object();
    for (int i = 0; i < kCauseCount; ++i)
        json[std::string(causeName(static_cast<Cause>(i)))] = seconds[static_cast<std::size_t>(i)];
    return json;
}

OrderedJson toJson(const std::optional<OperatorSide>& side) {
    if (!side)
        return nullptr;
    return {{"placement", contract::formatPlacement(side->placement)},
            {"slices", side->placement.isSharded() ? side->placement.slices : 1},
            {"sharded_slices", side->placement.isSharded() ? side->placement.shardedSlices : 0},
            {"group", side->placement.group == contract::ShardGroup::Node ? "node" : "world"},
            {"recompute", side->recompute},
            {"coalesced", side->coalesced},
            {"step_seconds", toSeconds(side->time.total())}};
}

OrderedJson toJson(const std::string& path, const OpenedPlan& opened, const PlanSide& side) {
    return {{"plan", path},
            {"graph", opened.plan.graph.name},
            {"cluster", opened.plan.cluster.name},
            {"micro_batch", side.microBatch},
            {"accumulate", side.accumulate},
            {"global_batch", side.globalBatch},
            {"step_seconds", toSeconds(side.time.total())},
            {"predicted_step_seconds", opened.plan.predicted.stepSeconds},
            {"seconds_per_sample", toSeconds(side.time.total()) / static_cast<double>(side.globalBatch)},
            {"peak_bytes", side.peakBytes},
            {"collectives", side.collectives},
            {"waterfall_seconds", waterfallJson(side.time)},
            {"waterfall_picoseconds", side.time.picoseconds},
            {"waterfall_seconds_per_sample", toJson(side.secondsPerSample())}};
}

std::array<double, kCauseCount> perSampleDifference(const PlanDiff& diff) {
    std::array<double, kCauseCount> seconds = diff.b.secondsPerSample();
    const std::array<double, kCauseCount> a = diff.a.secondsPerSample();
    for (std::size_t i = 0; i < seconds.size(); ++i)
        seconds[i] -= a[i];
    return seconds;
}

OrderedJson toJson(const DiffOptions& options, const OpenedPlan& a, const OpenedPlan& b, const PlanDiff& diff) {
    OrderedJson operators = OrderedJson::array();
    for (const OperatorDifference& entry : diff.operators)
        operators.push_back(
            {{"name", entry.name}, {"differs", entry.differs()}, {"a", toJson(entry.a)}, {"b", toJson(entry.b)}});
    const Waterfall difference = diff.difference();
    return {{"a", toJson(options.a, a, diff.a)},
            {"b", toJson(options.b, b, diff.b)},
            {"difference",
             {{"step_seconds", toSeconds(difference.total())},
              {"step_picoseconds", difference.total()},
              {"waterfall_seconds", waterfallJson(difference)},
              {"waterfall_picoseconds", difference.picoseconds},
              {"waterfall_seconds_per_sample", toJson(perSampleDifference(diff))},
              {"collectives", diff.b.collectives - diff.a.collectives},
              {"peak_bytes", diff.b.peakBytes - diff.a.peakBytes},
              {"same_batch", diff.sameBatch()},
              {"operators", diff.differingOperators()}}},
            {"operators", operators}};
}

std::string sideText(const std::optional<OperatorSide>& side) {
    if (!side)
        return "absent";
    return contract::formatPlacement(side->placement) + (side->coalesced ? " coalesced" : "") +
           (side->recompute ? " recomputed" : "");
}

/// Operators that change alike in many blocks are printed once: "h.*.mlp.c_fc  replicate -> shard:4  (20 blocks)".
void printOperators(const PlanDiff& diff) {
    struct Row {
        std::string name;   ///< with the block's index replaced by a star
        std::string change; ///< "replicate -> keep"
        std::string first, last;
        std::int64_t count = 0;
    };
    std::vector<Row> rows;
    for (const OperatorDifference& entry : diff.operators) {
        if (!entry.differs())
            continue;
        const std::string change = sideText(entry.a) + " -> " + sideText(entry.b);
        std::string name = entry.name;
        if (!entry.blockName.empty())
            name = entry.blockName.substr(0, entry.blockName.rfind('.') + 1) + "*" +
                   entry.name.substr(entry.blockName.size());
        const auto known = std::find_if(rows.begin(), rows.end(),
                                        [&](const Row& row) { return row.name == name && row.change == change; });
        if (known == rows.end()) {
            rows.push_back({name, change, entry.name, entry.blockName, 1});
        } else {
            known->last = entry.blockName;
            ++known->count;
        }
    }
    print("\n{} of {} operators differ\n", diff.differingOperators(), diff.operators.size());
    for (const Row& row : rows) {
        const std::string where = row.count > 1 ? fmt::format("   {} blocks up to {}", row.count, row.last) : "";
        print("  {:<28} {}{}\n", row.count > 1 ? row.name : row.first, row.change, where);
    }
}

void printDiff(const DiffOptions& options, const OpenedPlan& a, const OpenedPlan& b, const PlanDiff& diff) {
    const auto describe = [](const char* letter, const std::string& path, const OpenedPlan& opened,
                             const PlanSide& side) {
        print("{}: {}: {} on {}, global batch {}, step {}, {:.2f} samples/s, peak {}\n", letter, path,
              opened.plan.graph.name, opened.plan.cluster.title, side.globalBatch,
              durationText(toSeconds(side.time.total())),
              static_cast<double>(side.globalBatch) / toSeconds(side.time.total()),
              contract::describeBytes(side.peakBytes));
        // A file may come from other cost formulas than these.
        if (toPicoseconds(opened.plan.predicted.stepSeconds) != side.time.total())
            print("   the file itself predicts {}\n", durationText(opened.plan.predicted.stepSeconds));
    };
    describe("A", options.a, a, diff.a);
    describe("B", options.b, b, diff.b);
    const std::array<double, kCauseCount> perSample = perSampleDifference(diff);
    const bool showSamples = !diff.sameBatch();
    print("\n{:<18} {:>13} {:>13} {:>13}{}\n", "a step, predicted", "A", "B", "B - A",
          showSamples ? fmt::format(" {:>18}", "B - A per sample") : "");
    const auto row = [&](std::string_view what, std::int64_t left, std::int64_t right, double sample) {
        print("{:<18} {:>13} {:>13} {:>13}{}\n", what, durationText(toSeconds(left)), durationText(toSeconds(right)),
              durationText(toSeconds(right - left)), showSamples ? fmt::format(" {:>18}", durationText(sample)) : "");
    };
    constexpr std::array<std::string_view, kCauseCount> kWords{"compute",        "recomputation", "exposed gather",
                                                               "exposed reduce", "optimizer",     "fixed cost"};
    double sampleTotal = 0;
    for (int i = 0; i < kCauseCount; ++i) {
        const auto at = static_cast<std::size_t>(i);
        sampleTotal += perSample[at];
        row(kWords[at], diff.a.time.picoseconds[at], diff.b.time.picoseconds[at], perSample[at]);
    }
    row("sum", diff.a.time.total(), diff.b.time.total(), sampleTotal);
    for (int i = 0; i < contract::kCategoryCount; ++i) {
        const auto category = static_cast<contract::Category>(i);
        const std::int64_t left = a.plan.predicted.ledger[category];
        const std::int64_t right = b.plan.predicted.ledger[category];
        if (left != right)
            print("{:<18} {:>13} {:>13} {:>13}\n", contract::categoryName(category), contract::describeBytes(left),
                  contract::describeBytes(right),
                  (right > left ? "+" : "-") + contract::describeBytes(std::abs(right - left)));
    }
    print("{:<18} {:>13} {:>13} {:>+13}\n", "collectives", diff.a.collectives, diff.b.collectives,
          diff.b.collectives - diff.a.collectives);
    printOperators(diff);
}

int runDiff(const DiffOptions& options) {
    const auto a = openPlan(options.a, options.graph);
    if (!a)
        return report(a.error(), options.json);
    const auto b = openPlan(options.b, options.graph);
    if (!b)
        return report(b.error(), options.json);
    const auto diff = comparePlans(a->step, b->step);
    if (!diff)
        return report(diff.error(), options.json);
    if (options.json)
        printJson(toJson(options, *a, *b, *diff));
    else
        printDiff(options, *a, *b, *diff);
    return 0;
}

} // namespace

void addDiff(CLI::App& app, int& exitCode) {
    const auto options = std::make_shared<DiffOptions>();
    CLI::App* command =
        app.add_subcommand("diff", "two plans, operator by operator, and where their step times differ");
    command->add_option("A", options->a, "a plan file")->required();
    command->add_option("B", options->b, "another plan file")->required();
    command->add_option("--graph", options->graph, "the graph that was planned, where the plan files do not hold it");
    command->add_flag("--json", options->json, "one JSON document on standard output");
    command->callback([options, &exitCode] { exitCode = runDiff(*options); });
}

} // namespace shardscope::planner::cli
