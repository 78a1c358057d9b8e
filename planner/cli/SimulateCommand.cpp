// SPDX-License-Identifier: GPL-3.0-or-later
#include "planner/cli/Commands.h"
#include "planner/cli/PlanFile.h"
#include "planner/cli/Print.h"
#include "planner/cli/RequestOptions.h"
#include "planner/timeline/Timeline.h"
#include "planner/timeline/Trace.h"
#include "runtime/contract/Bytes.h"
#include "runtime/contract/Json.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <memory>

namespace shardscope::planner::cli {

namespace {

constexpr std::size_t kPrintedWindows = 20;

struct SimulateOptions {
    std::string plan;
    std::string trace;
    std::string graph;
    bool json = false;
};

/// "backward h.3.mlp.c_fc"; "start" before the first instruction.
std::string describeInstruction(const PlannedStep& step, std::int32_t index) {
    if (index < 0)
        return "start";
    const contract::StepInstruction& instruction = step.program.instructions[static_cast<std::size_t>(index)];
    std::string text(contract::stepCodeName(instruction.code));
    if (instruction.op >= 0)
        text += " " + step.operators()[static_cast<std::size_t>(instruction.op)].name;
    return text;
}

/// Simulated over predicted; 0 where a file predicts nothing.
double ratioOf(const PlannedStep& step, const Timeline& timeline) {
    return step.predictedStepSeconds > 0 ? timeline.stepSeconds() / step.predictedStepSeconds : 0;
}

contract::OrderedJson toJson(const contract::Peaks& peaks) {
    return {{"first_step", peaks.firstStep}, {"resume", peaks.resume}, {"optimizer_step", peaks.optimizerStep}};
}

contract::OrderedJson toJson(const OpenedPlan& opened, const Timeline& timeline, const std::string& trace) {
    const PlannedStep& step = opened.step;
    const MemoryTimeline& memory = timeline.memory;
    contract::OrderedJson json{
        {"graph", step.request.graph->name},
        {"cluster", step.request.cluster.name},
        {"micro_batch", step.training.microBatch},
        {"accumulate", step.training.accumulate},
        {"global_batch", step.training.globalBatch},
        {"step_seconds", timeline.stepSeconds()},
        {"samples_per_second", timeline.samplesPerSecond()},
        {"predicted", {{"step_seconds", step.predictedStepSeconds}, {"peak_bytes", step.predictedPeakBytes}}},
        {"simulated_over_predicted", ratioOf(step, timeline)},
        {"waterfall_seconds", waterfallJson(timeline.waterfall)},
        {"compute_seconds", toSeconds(timeline.computePicoseconds)},
        {"communication_seconds", toSeconds(timeline.communicationPicoseconds)},
        {"exposed_communication_seconds", toSeconds(timeline.exposedPicoseconds)},
        {"collectives", timeline.collectives},
        {"collectives_fixed_seconds", toSeconds(timeline.fixedPicoseconds)},
        {"memory",
         {{"peak_bytes", memory.peakBytes},
          {"peaks", toJson(memory.peaks)},
          {"predicted_peaks", toJson(step.predictedPeaks)},
          {"reserved_bytes", memory.reservedBytes},
          {"peak_seconds", toSeconds(memory.peakPicoseconds)},
          {"peak_at", describeInstruction(step, memory.peakInstruction)},
          {"ledger_at_peak", contract::toJson(memory.atPeak)}}}};
    contract::OrderedJson samples = contract::OrderedJson::array();
    for (const MemorySample& sample : sampleMemory(memory, timeline.stepPicoseconds, kPrintedWindows))
        samples.push_back({{"seconds", toSeconds(sample.picoseconds)}, {"bytes", sample.bytes.total()}});
    json["memory"]["over_time"] = std::move(samples);
    json["trace"] = trace.empty() ? contract::OrderedJson(nullptr) : contract::OrderedJson(trace);
    return json;
}

void printWaterfall(const Timeline& timeline) {
    const auto row = [&](const char* what, Cause cause, const std::string& note = {}) {
        const double share = timeline.stepPicoseconds > 0 ? 100.0 * static_cast<double>(timeline.waterfall[cause]) /
                                                                static_cast<double>(timeline.stepPicoseconds)
                                                          : 0;
        print("  {:<18} {:>12} {:>6.1f} %{}\n", what, durationText(toSeconds(timeline.waterfall[cause])), share, note);
    };
    row("compute", Cause::Compute);
    row("recomputation", Cause::Recomputation);
    row("exposed gather", Cause::ExposedGather);
    row("exposed reduce", Cause::ExposedReduce);
    row("optimizer", Cause::Optimizer);
    row("exposed fixed cost", Cause::Fixed,
        fmt::format("   of {} collectives, {} in all", timeline.collectives,
                    durationText(toSeconds(timeline.fixedPicoseconds))));
}

void printMemory(const PlannedStep& step, const Timeline& timeline) {
    const MemoryTimeline& memory = timeline.memory;
    const auto size = [](std::int64_t bytes) { return contract::describeBytes(bytes); };
    print("\nMemory in use: peak {} at {} ({}); reserved {}, predicted peak {}\n", size(memory.peakBytes),
          durationText(toSeconds(memory.peakPicoseconds)), describeInstruction(step, memory.peakInstruction),
          size(memory.reservedBytes), size(step.predictedPeakBytes));
    print("  {:<18} {:>12} {:>12}\n", "", "in use", "predicted");
    const auto row = [&](const char* what, std::int64_t used, std::int64_t predicted) {
        print("  {:<18} {:>12} {:>12}\n", what, size(used), size(predicted));
    };
    row("first step", memory.peaks.firstStep, step.predictedPeaks.firstStep);
    row("resumed run", memory.peaks.resume, step.predictedPeaks.resume);
    row("optimizer step", memory.peaks.optimizerStep, step.predictedPeaks.optimizerStep);
    constexpr int kBarWidth = 50;
    print("\n");
    for (const MemorySample& sample : sampleMemory(memory, timeline.stepPicoseconds, kPrintedWindows)) {
        const std::int64_t bytes = sample.bytes.total();
        const double share =
            memory.reservedBytes > 0 ? static_cast<double>(bytes) / static_cast<double>(memory.reservedBytes) : 0;
        print("  {:>12} {:>12}  {}\n", durationText(toSeconds(sample.picoseconds)), size(bytes),
              std::string(static_cast<std::size_t>(share * kBarWidth), '#'));
    }
}

void printTimeline(const OpenedPlan& opened, const Timeline& timeline) {
    const PlannedStep& step = opened.step;
    print("{} on {}, micro-batch {} x accumulate {}, global batch {}\n", step.request.graph->name,
          step.request.cluster.title, step.training.microBatch, step.training.accumulate, step.training.globalBatch);
    print("Step {} simulated, {} predicted (ratio {:.4f}); {:.2f} samples/s\n", durationText(timeline.stepSeconds()),
          durationText(step.predictedStepSeconds), ratioOf(step, timeline), timeline.samplesPerSecond());
    printWaterfall(timeline);
    print("Compute busy {}, communication {}, of it exposed {}\n", durationText(toSeconds(timeline.computePicoseconds)),
          durationText(toSeconds(timeline.communicationPicoseconds)),
          durationText(toSeconds(timeline.exposedPicoseconds)));
    printMemory(step, timeline);
}

int runSimulate(const SimulateOptions& options) {
    const auto opened = openPlan(options.plan, options.graph);
    if (!opened)
        return report(opened.error(), options.json);
    const auto timeline = simulate(opened->step);
    if (!timeline)
        return report(timeline.error(), options.json);
    if (!options.trace.empty()) {
        const std::string trace = formatTrace(opened->step, *timeline);
        if (const auto written = contract::writeFileAtomically(options.trace, trace); !written)
            return report(written.error(), options.json);
    }
    if (options.json)
        printJson(toJson(*opened, *timeline, options.trace));
    else {
        printTimeline(*opened, *timeline);
        if (!options.trace.empty())
            print("\nTrace written to {}; open it in ui.perfetto.dev\n", options.trace);
    }
    return 0;
}

} // namespace

void addSimulate(CLI::App& app, int& exitCode) {
    const auto options = std::make_shared<SimulateOptions>();
    CLI::App* command = app.add_subcommand("simulate", "the two-stream timeline of one step of a plan, and its memory");
    command->add_option("PLAN", options->plan, "a plan file written by solve")->required();
    command->add_option("--graph", options->graph, "the graph that was planned, where the plan file does not hold it");
    command->add_option("--trace", options->trace, "write a Chrome/Perfetto trace here");
    command->add_flag("--json", options->json, "one JSON document on standard output");
    command->callback([options, &exitCode] { exitCode = runSimulate(*options); });
}

} // namespace shardscope::planner::cli
