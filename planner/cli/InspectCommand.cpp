// SPDX-License-Identifier: GPL-3.0-or-later
#include "planner/cli/Commands.h"
#include "planner/cli/RequestOptions.h"
#include "planner/readers/Readers.h"
#include "runtime/contract/Bytes.h"
#include "runtime/contract/Sizing.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <memory>

namespace shardscope::planner::cli {

namespace {

struct InspectOptions {
    std::string graph;
    std::int64_t sequence = 0;
    bool json = false;
};

std::int64_t activationBytes(const contract::Operator& op, const contract::Preset& preset) {
    return contract::keptBytes(op, preset, 1, false);
}

std::string shapeText(const std::vector<std::int64_t>& shape) {
    std::string text;
    for (const std::int64_t size : shape)
        text += (text.empty() ? "" : "x") + std::to_string(size);
    return text;
}

void printJson(const Graph& graph, const contract::Preset& preset) {
    const Graph::Parameters parameters = graph.countParameters();
    contract::OrderedJson operators = contract::OrderedJson::array();
    for (const contract::Operator& op : graph.operators) {
        contract::OrderedJson entry{
            {"name", op.name},
            {"kind", contract::operatorKindName(op.kind)},
            {"block", nullptr},
            {"parameters", op.parameters()},
            {"shape", op.tensors.empty() ? std::vector<std::int64_t>{} : op.tensors.front().shape},
            {"flops_forward", op.flopsForward},
            {"activation_bytes", activationBytes(op, preset)},
            {"tied_to", nullptr}};
        if (op.block >= 0)
            entry["block"] = op.blockName;
        if (op.isTied())
            entry["tied_to"] = op.tiedTo;
        operators.push_back(std::move(entry));
    }
    const contract::OrderedJson document{{"name", graph.name},
                                         {"family", graph.family},
                                         {"sequence", graph.sequence},
                                         {"parameters",
                                          {{"unique", parameters.unique},
                                           {"stored", parameters.stored},
                                           {"duplicated", parameters.duplicated},
                                           {"active", parameters.active}}},
                                         {"operators", operators},
                                         {"warnings", graph.warnings}};
    fmt::print("{}\n", document.dump(2));
}

void printTable(const Graph& graph, const contract::Preset& preset) {
    const Graph::Parameters parameters = graph.countParameters();
    fmt::print("{}  ({})\n{} unique parameters, {} blocks, {} operators, sequence {}\n\n", graph.title, graph.family,
               parameters.unique, graph.blockCount(), graph.operators.size(), graph.sequence);
    fmt::print("{:<36} {:<10} {:>14} {:>14} {:>14} {:>14}\n", "operator", "kind", "shape", "parameters",
               "GFLOP forward", "activations");
    // Blocks alike are printed once.
    std::string previous;
    std::string blockText;
    std::int32_t repeats = 0;
    const auto flush = [&](const std::string& text) {
        if (text.empty() || text != previous) {
            if (repeats > 0)
                fmt::print("    ... {} more blocks alike\n", repeats);
            fmt::print("{}", text.empty() ? "" : blockText);
            repeats = 0;
            previous = text;
        } else {
            ++repeats;
        }
    };
    std::int32_t block = -2;
    std::string shape;
    for (const contract::Operator& op : graph.operators) {
        if (op.block != block || op.block < 0) {
            flush(shape);
            shape.clear();
            blockText.clear();
            block = op.block;
        }
        const std::string facts =
            fmt::format("{:<10} {:>14} {:>14} {:>14.2f} {:>14}", contract::operatorKindName(op.kind),
                        op.tensors.empty() ? "" : shapeText(op.tensors.front().shape), op.parameters(),
                        op.flopsForward / 1e9, contract::describeBytes(activationBytes(op, preset)));
        const std::string relative = op.block >= 0 ? op.name.substr(op.blockName.size()) : op.name;
        shape += relative + facts;
        blockText += fmt::format("{:<36} {}{}\n", op.name, facts, op.isTied() ? "  tied to " + op.tiedTo : "");
    }
    flush(shape);
    for (const std::string& warning : graph.warnings)
        fmt::print("\nnote: {}\n", warning);
}

} // namespace

void addInspect(CLI::App& app, int& exitCode) {
    const auto options = std::make_shared<InspectOptions>();
    CLI::App* command = app.add_subcommand("inspect", "parameters, FLOPs and activations of every operator");
    command->add_option("GRAPH", options->graph, "a Hugging Face folder, its config.json, or a bundled name")
        ->required();
    command->add_option("--sequence", options->sequence, "tokens of a sample")->check(CLI::PositiveNumber);
    command->add_flag("--json", options->json, "one JSON document on standard output");
    command->callback([options, &exitCode] {
        const auto graph = openGraph(options->graph, options->sequence);
        if (!graph) {
            exitCode = report(graph.error(), options->json);
            return;
        }
        const contract::Preset preset = *contract::findPreset("bf16-adam");
        options->json ? printJson(**graph, preset) : printTable(**graph, preset);
    });
}

} // namespace shardscope::planner::cli
