// SPDX-License-Identifier: GPL-3.0-or-later
#include "planner/cli/RequestOptions.h"

#include "planner/cli/Commands.h"
#include "planner/cli/Print.h"
#include "planner/cluster/Clusters.h"
#include "planner/readers/Readers.h"
#include "runtime/contract/Bytes.h"
#include "runtime/contract/Json.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <charconv>
#include <cmath>
#include <cstdio>

namespace shardscope::planner::cli {

using contract::Result;

namespace {

/// Ranges let "nan" pass, since it compares with nothing.
CLI::Validator finiteNumber() {
    return {[](std::string& text) {
                double value = 0;
                const auto [end, status] = std::from_chars(text.data(), text.data() + text.size(), value);
                const bool finite = status == std::errc{} && end == text.data() + text.size() && std::isfinite(value);
                return finite ? std::string() : "\"" + text + "\" is not a finite number";
            },
            "FINITE"};
}

CLI::Validator positiveSeconds() {
    return {[](std::string& text) {
                double value = 0;
                const auto [end, status] = std::from_chars(text.data(), text.data() + text.size(), value);
                const bool right = status == std::errc{} && end == text.data() + text.size() && value > 0;
                return right && std::isfinite(value) ? std::string() : "\"" + text + "\" is not a positive number";
            },
            "SECONDS"};
}

} // namespace

CLI::Validator positiveCount() {
    return {[](std::string& text) {
                constexpr std::int64_t kMaximum = std::int64_t{1} << 53;
                std::int64_t value = 0;
                const auto [end, status] = std::from_chars(text.data(), text.data() + text.size(), value);
                const bool right =
                    status == std::errc{} && end == text.data() + text.size() && value >= 1 && value <= kMaximum;
                return right ? std::string() : fmt::format("\"{}\" is not a whole number from 1 to {}", text, kMaximum);
            },
            "POSITIVE"};
}

void RequestOptions::addTo(CLI::App& command) {
    command.add_option("--cluster", cluster, "a *.cluster.json, a bundled name, or local")->capture_default_str();
    command.add_option("--devices", devices, "replace the device count: N or NODESxDEVICES");
    command.add_option("--training", training, "read a plan's training object from this JSON file");
    command.add_option("--sequence", sequence, "tokens of a sample (default min(context, 4096))")
        ->check(positiveCount());
    command.add_option("--batch", batch, "micro-batch per device: auto or N")->capture_default_str();
    command.add_option("--global-batch", globalBatch, "samples of a step over all devices")->check(positiveCount());
    command.add_option("--accumulate", accumulate,
                       "micro-steps of a step: auto or N (default 1, auto with --global-batch)");
    command.add_option("--precision", precision, "a precision preset: " + contract::presetNames());
    command.add_option("--recompute", recompute, "off, on or auto")
        ->check(CLI::IsMember({"off", "on", "auto"}))
        ->capture_default_str();
    command.add_option("--attention", attention, "fused (default), or unfused: its scores are kept")
        ->check(CLI::IsMember({"fused", "unfused"}));
    command.add_option("--mode", mode, "the cost formulas: paper or full")
        ->check(CLI::IsMember({"paper", "full"}))
        ->capture_default_str();
    command.add_option("--slices", slices, "slice counts that may be used (default 1,2,4,8,16)")
        ->delimiter(',')
        ->check(positiveCount());
    command
        .add_option("--pin", pins,
                    "NAME=PLACEMENT with globs; later pins win. Placements: replicate, keep, keep-held, shard, shard:S "
                    "(S slices), "
                    "shard:S:K (K of them sharded); @node: inside nodes")
        ->take_all();
    command.add_option("--pin-recompute", recomputePins, "BLOCK=on|off with globs")->take_all();
    command.add_option("--coalescing", coalescing, "one collective for a block's operators: auto, never or always")
        ->check(CLI::IsMember({"auto", "never", "always"}))
        ->capture_default_str();
    command
        .add_option("--granularity", granularity,
                    "what is placed alike: operator (each on its own) or block (all of a block's operators)")
        ->check(CLI::IsMember({"operator", "block"}))
        ->capture_default_str();
    command
        .add_option("--loss-chunks", lossChunks, "compute logits and loss in so many chunks of a micro-batch's tokens")
        ->check(CLI::Range(1, 4096))
        ->capture_default_str();
    command.add_option("--prefetch", prefetch, "operators gathered ahead of their use: 0 or 1; full mode only")
        ->check(CLI::Range(0, 1))
        ->capture_default_str();
    command.add_option("--tolerance", tolerance, "stop at this certified relative gap")
        ->check(CLI::Range(0.0, 1.0) & finiteNumber());
    command.add_option("--work-limit", workLimit, "stop after this many search steps (deterministic)")
        ->check(positiveCount());
    command.add_option("--time-limit", timeLimitSeconds, "stop after this many seconds")->check(positiveSeconds());
    command.add_flag("--json", json, "one JSON document on standard output");
}

namespace {

/// "auto" -> 0, a positive number -> itself.
Result<std::int64_t> automaticOr(const std::string& text, const char* option) {
    if (text == "auto")
        return 0;
    std::int64_t value = 0;
    const auto [end, status] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (status != std::errc{} || end != text.data() + text.size() || value < 1 || value > (1 << 30))
        return contract::usageError(fmt::format("{} is \"{}\"; write auto or a positive number", option, text));
    return value;
}

Result<Pin> parsePin(const std::string& text) {
    const auto equals = text.rfind('=');
    if (equals == std::string::npos || equals == 0)
        return contract::usageError(
            fmt::format("--pin \"{}\": write NAME=PLACEMENT, for example 'h.0.*=shard:4'", text));
    const auto placement = contract::parsePlacement(std::string_view(text).substr(equals + 1));
    if (!placement)
        return contract::usageError(fmt::format("--pin \"{}\": {}", text, placement.error().message));
    return Pin{text.substr(0, equals), *placement};
}

Result<RecomputePin> parseRecomputePin(const std::string& text) {
    const auto equals = text.rfind('=');
    const std::string value = equals == std::string::npos ? "" : text.substr(equals + 1);
    if (equals == 0 || (value != "on" && value != "off"))
        return contract::usageError(fmt::format("--pin-recompute \"{}\": write BLOCK=on or BLOCK=off", text));
    return RecomputePin{text.substr(0, equals), value == "on"};
}

/// Reads a training object, alone in a file or inside a plan.
Result<contract::Training> readTrainingFile(const std::string& path) {
    const auto document = contract::readJsonFile(path);
    if (!document)
        return tl::unexpected(document.error());
    const contract::JsonCursor root(*document, path);
    const auto inside = root.find("training");
    contract::Training training = contract::readTraining(inside ? *inside : root);
    if (root.failed())
        return root.error();
    return training;
}

} // namespace

Result<PlanRequest> RequestOptions::request() const {
    PlanRequest request;
    std::int64_t wantedSequence = sequence;
    std::string accumulateText = accumulate;
    auto givenAttention = contract::AttentionKernel::Fused;
    if (!training.empty()) {
        const auto given = readTrainingFile(training);
        if (!given)
            return tl::unexpected(given.error());
        request.optimizer = given->optimizer;
        request.precision = given->precision;
        request.recompute = given->recompute;
        request.globalBatch = given->globalBatch;
        request.microBatch = given->microBatch;
        if (wantedSequence == 0)
            wantedSequence = given->sequence;
        if (attention.empty())
            givenAttention = given->attention;
        if (accumulateText.empty())
            accumulateText = std::to_string(given->accumulate);
    }
    const auto graphResult = openGraph(graph, wantedSequence);
    if (!graphResult)
        return tl::unexpected(graphResult.error());
    warn((*graphResult)->unknownKeys);
    auto attended =
        withAttention(*graphResult, attention == "unfused" ? contract::AttentionKernel::Materialised : givenAttention);
    if (!attended)
        return tl::unexpected(attended.error());
    request.graph = *attended;
    const auto clusterResult = openCluster(cluster, devices);
    if (!clusterResult)
        return tl::unexpected(clusterResult.error());
    warn(clusterResult->warnings);
    request.cluster = *clusterResult;
    request.mode = mode == "paper" ? CostMode::Paper : CostMode::Full;
    if (!precision.empty())
        request.precision = precision;
    if (training.empty() || recompute != "auto")
        request.recompute = recompute == "off"  ? contract::RecomputePolicy::Off
                            : recompute == "on" ? contract::RecomputePolicy::On
                                                : contract::RecomputePolicy::Auto;
    if (globalBatch > 0)
        request.globalBatch = globalBatch;
    if (training.empty() || batch != "auto") {
        const auto microBatch = automaticOr(batch, "--batch");
        if (!microBatch)
            return tl::unexpected(microBatch.error());
        request.microBatch = *microBatch;
    }
    if (accumulateText.empty())
        accumulateText = request.globalBatch > 0 ? "auto" : "1";
    const auto steps = automaticOr(accumulateText, "--accumulate");
    if (!steps)
        return tl::unexpected(steps.error());
    request.accumulate = *steps;
    request.slices = slices;
    request.coalescing = coalescing == "never"    ? Coalescing::Never
                         : coalescing == "always" ? Coalescing::Always
                                                  : Coalescing::Auto;
    request.granularity = granularity == "block" ? Granularity::Block : Granularity::Operator;
    request.lossChunks = lossChunks;
    request.prefetchDepth = prefetch;
    for (const std::string& text : pins) {
        auto pin = parsePin(text);
        if (!pin)
            return tl::unexpected(pin.error());
        request.pins.push_back(std::move(*pin));
    }
    for (const std::string& text : recomputePins) {
        auto pin = parseRecomputePin(text);
        if (!pin)
            return tl::unexpected(pin.error());
        request.recomputePins.push_back(std::move(*pin));
    }
    return request;
}

Result<std::int64_t> memoryLimit(const std::string& text, const PlanRequest& request) {
    if (text.empty())
        return request.cluster.device.memoryBytes;
    auto parsed = contract::parseBytes(text);
    if (!parsed)
        return contract::usageError("--memory " + parsed.error().message);
    constexpr std::int64_t kSmallestMeant = 4096; // a plain number is bytes, and nobody has so few
    if (*parsed < kSmallestMeant)
        return contract::usageError(
            fmt::format("--memory {} is {} bytes a device; write a unit, for example {}GiB", text, *parsed, text));
    return parsed;
}

SearchBudget RequestOptions::searchBudget() const {
    return {tolerance, workLimit, timeLimitSeconds, interruptToken()};
}

void complain(const std::string& text) {
    // One line: a line end in a file's name would begin another message.
    std::string line;
    for (const char letter : withoutControls(text))
        line += letter == '\n' ? "\\x0a" : std::string(1, letter);
    std::fputs(("shardscope-plan: " + line + "\n").c_str(), stderr);
}

void warn(const std::vector<std::string>& texts) {
    for (const std::string& text : texts)
        complain("warning: " + text);
}

int report(const contract::Error& error, bool json) {
    complain(error.message);
    if (json)
        printJson(contract::OrderedJson{{"error", error.message}});
    return contract::exitCode(error.kind);
}

} // namespace shardscope::planner::cli
