// SPDX-License-Identifier: GPL-3.0-or-later
#include "planner/cli/InspectReport.h"

#include "runtime/contract/Bytes.h"
#include "runtime/contract/Json.h"
#include "runtime/contract/Sizing.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <set>

namespace shardscope::planner::cli {

using contract::Operator;
using contract::OrderedJson;

namespace {

constexpr std::string_view kPreset = "bf16-adam";
constexpr std::string_view kDtype = "bf16";

std::string shapeText(const Operator& op) {
    std::string text;
    if (!op.tensors.empty()) {
        for (const std::int64_t extent : op.tensors.front().shape)
            text += (text.empty() ? "" : "x") + std::to_string(extent);
    }
    return text;
}

/// Bytes of what backward keeps, by the dtype it is kept in.
OrderedJson keptJson(const Operator& op, const contract::Preset& preset) {
    OrderedJson kept = OrderedJson::array();
    for (const contract::ActivationSpec& spec : op.kept)
        kept.push_back({{"name", spec.name},
                        {"dtype", spec.isByte      ? std::string_view("uint8")
                                  : spec.isFloat32 ? std::string_view("fp32")
                                                   : kDtype},
                        {"bytes", contract::activationBytes(spec, preset, 1)},
                        {"block_input", spec.blockInput}});
    return kept;
}

OrderedJson operatorJson(const Operator& op, const contract::Preset& preset, contract::AttentionKernel attention) {
    OrderedJson tensors = OrderedJson::array();
    for (const contract::TensorSpec& tensor : op.tensors)
        tensors.push_back({{"name", tensor.name}, {"shape", tensor.shape}});
    OrderedJson entry{{"name", op.name},
                      {"kind", contract::operatorKindName(op.kind)},
                      {"block", op.block >= 0 ? OrderedJson(op.blockName) : OrderedJson(nullptr)},
                      {"parameters", op.parameters()},
                      {"shape", op.tensors.empty() ? std::vector<std::int64_t>{} : op.tensors.front().shape},
                      {"flops_forward", op.flopsForward},
                      {"activation_bytes", contract::keptBytes(op, preset, 1, false)},
                      {"tied_to", op.isTied() ? OrderedJson(op.tiedTo) : OrderedJson(nullptr)},
                      {"tensors", tensors},
                      {"kept", keptJson(op, preset)},
                      {"maximum_slices", op.maximumSlices()}};
    if (op.attention)
        entry["attention"] = {{"heads", op.attention->heads},
                              {"kv_heads", op.attention->kvHeads},
                              {"head_dim", op.attention->headDim},
                              {"keys", op.attention->keys},
                              {"fused", attention == contract::AttentionKernel::Fused}};
    if (op.experts > 0)
        entry["experts"] = {{"count", op.experts}, {"active", op.activeExperts}};
    return entry;
}

OrderedJson weightsJson(const Graph& graph) {
    if (!graph.weights)
        return nullptr;
    const StoredWeights& stored = *graph.weights;
    OrderedJson dtypes = OrderedJson::object();
    for (const auto& [dtype, elements] : stored.elementsByDtype)
        dtypes[dtype] = elements;
    return {{"source", stored.source},
            {"files", stored.files},
            {"bytes", stored.bytes},
            {"dtypes", dtypes},
            {"buffers", stored.bufferElements}};
}

std::string describeWork(double flops) {
    return flops >= 1e11 ? fmt::format("{:.2f} TFLOP", flops / 1e12) : fmt::format("{:.3f} GFLOP", flops / 1e9);
}

/// In GFLOP, for a column: what is little is not shown as nothing.
std::string gigaText(double flops) {
    return flops > 0 && flops < 5e5 ? std::string("<0.001") : fmt::format("{:.3f}", flops / 1e9);
}

/// 46702792704 -> "46,702,792,704"
std::string grouped(std::int64_t count) {
    std::string text = std::to_string(count);
    for (auto at = static_cast<std::ptrdiff_t>(text.size()) - 3; at > (count < 0 ? 1 : 0); at -= 3)
        text.insert(static_cast<std::size_t>(at), ",");
    return text;
}

std::string header(const Graph& graph, const contract::Preset& preset) {
    const Graph::Parameters count = graph.countParameters();
    std::string text = fmt::format("{}  ({})\n{} unique parameters", graph.title, graph.family, grouped(count.unique));
    if (count.active != count.unique)
        text += fmt::format(", {} active", grouped(count.active));
    text += fmt::format(", {} block{}, {} operator{}\n", graph.blockCount(), graph.blockCount() == 1 ? "" : "s",
                        graph.operators.size(), graph.operators.size() == 1 ? "" : "s");
    if (graph.weights)
        text += fmt::format("{} elements stored in {} file{}, {} of them copies, {} buffers\n", grouped(count.stored),
                            graph.weights->files, graph.weights->files == 1 ? "" : "s", grouped(count.duplicated),
                            grouped(graph.weights->bufferElements));
    std::int64_t kept = 0;
    for (const Operator& op : graph.operators)
        kept += contract::keptBytes(op, preset, 1, false);
    const bool attends = std::any_of(graph.operators.begin(), graph.operators.end(),
                                     [](const Operator& op) { return op.attention.has_value(); });
    text += fmt::format("One sample{}: {} forward, {} kept for backward; activations in {}{}\n\n",
                        graph.sequence > 1 ? fmt::format(" of {} tokens", graph.sequence) : "",
                        describeWork(graph.flopsForward()), contract::describeBytes(kept), kDtype,
                        attends ? fmt::format(", attention {}", contract::attentionKernelName(graph.attention)) : "");
    return text;
}

/// "layers.3.mlp.experts.17.up_proj" -> "layers.3.mlp.experts..up_proj": alike for all experts of a layer.
std::string expertPattern(const std::string& name) {
    const auto begin = name.find("experts.");
    if (begin == std::string::npos)
        return name;
    const auto end = name.find('.', begin + 8);
    return name.substr(0, begin + 8) + (end == std::string::npos ? "" : name.substr(end));
}

std::string moreExperts(std::int64_t hidden) {
    return hidden > 0 ? fmt::format("    ... {} operators of more experts alike\n", hidden) : std::string();
}

/// The lines of one block, or of one operator outside blocks.
struct Section {
    std::string lines;
    std::string key; ///< equal for sections alike
    std::string block;
};

Section sectionOf(const Graph& graph, std::size_t begin, std::size_t end, const contract::Preset& preset,
                  std::size_t nameWidth) {
    Section section;
    std::set<std::string> experts;
    std::int64_t hidden = 0;
    for (std::size_t i = begin; i < end; ++i) {
        const Operator& op = graph.operators[i];
        const std::string facts = fmt::format("{:<10} {:>16} {:>14} {:>12} {:>11}", contract::operatorKindName(op.kind),
                                              shapeText(op), grouped(op.parameters()), gigaText(op.flopsForward),
                                              contract::describeBytes(contract::keptBytes(op, preset, 1, false)));
        std::string note = op.isTied() ? "  tied to " + op.tiedTo : "";
        if (op.experts > 0)
            note += fmt::format("  {} of {} experts", op.activeExperts, op.experts);
        if (op.attention)
            note += fmt::format(
                "  attention: {} head{} of {}{}{}", op.attention->heads, op.attention->heads == 1 ? "" : "s",
                op.attention->headDim,
                op.attention->kvHeads == op.attention->heads ? "" : fmt::format(", {} for keys", op.attention->kvHeads),
                op.attention->keys == graph.sequence ? "" : fmt::format(", {} keys", op.attention->keys));
        const bool again = op.experts > 0 && !experts.insert(expertPattern(op.name) + facts).second;
        hidden += again ? 1 : 0;
        if (!again) {
            section.lines += moreExperts(hidden);
            hidden = 0;
            section.lines += fmt::format("{:<{}} {}{}\n", op.name, nameWidth, facts, note);
        }
        section.key += (op.block >= 0 ? op.name.substr(op.blockName.size()) : op.name) + facts + note;
        section.block = op.blockName;
    }
    section.lines += moreExperts(hidden);
    return section;
}

} // namespace

std::string inspectJson(const Graph& graph) {
    const contract::Preset preset = *contract::findPreset(kPreset);
    const Graph::Parameters parameters = graph.countParameters();
    // The operators of a network with thousands of experts are too many to hold as values: each is written at once.
    constexpr std::string_view kPlace = "\n  \"operators\": null";
    std::string operators;
    for (const Operator& op : graph.operators) {
        const std::string entry =
            operatorJson(op, preset, graph.attention).dump(2, ' ', false, OrderedJson::error_handler_t::replace);
        operators += operators.empty() ? "\n    " : ",\n    ";
        for (const char letter : entry)
            operators.append(letter == '\n' ? "\n    " : std::string_view(&letter, 1));
    }
    const OrderedJson document{{"name", graph.name},
                               {"title", graph.title},
                               {"family", graph.family},
                               {"sequence", graph.sequence},
                               {"maximum_sequence", graph.maximumSequence},
                               {"dtype", kDtype},
                               {"parameters",
                                {{"unique", parameters.unique},
                                 {"stored", parameters.stored},
                                 {"duplicated", parameters.duplicated},
                                 {"active", parameters.active}}},
                               {"weights", weightsJson(graph)},
                               {"operators", nullptr},
                               {"warnings", graph.warnings}};
    std::string text = document.dump(2, ' ', false, OrderedJson::error_handler_t::replace) + "\n";
    constexpr std::size_t kNull = 4;
    operators.insert(0, "[");
    operators += "\n  ]";
    text.replace(text.find(kPlace) + kPlace.size() - kNull, kNull, operators);
    return text;
}

std::string inspectTable(const Graph& graph) {
    const contract::Preset preset = *contract::findPreset(kPreset);
    std::size_t nameWidth = 12;
    for (const Operator& op : graph.operators)
        nameWidth = std::max(nameWidth, std::min<std::size_t>(op.name.size(), 72));
    std::string text = header(graph, preset);
    text += fmt::format("{:<{}} {:<10} {:>16} {:>14} {:>12} {:>11}\n", "operator", nameWidth, "kind", "shape",
                        "parameters", "GFLOP", "kept");
    std::string previous;
    std::int64_t repeats = 0;
    const auto flush = [&] {
        if (repeats > 0)
            text += fmt::format("    ... {} more block{} alike\n", repeats, repeats == 1 ? "" : "s");
        repeats = 0;
    };
    for (std::size_t begin = 0; begin < graph.operators.size();) {
        std::size_t end = begin + 1;
        while (end < graph.operators.size() && graph.operators[begin].block >= 0 &&
               graph.operators[end].block == graph.operators[begin].block)
            ++end;
        const Section section = sectionOf(graph, begin, end, preset, nameWidth);
        if (!section.block.empty() && section.key == previous) {
            ++repeats;
        } else {
            flush();
            text += section.lines;
        }
        previous = section.block.empty() ? std::string() : section.key;
        begin = end;
    }
    flush();
    for (const std::string& warning : graph.warnings)
        text += "\nnote: " + warning + "\n";
    return text;
}

} // namespace shardscope::planner::cli
