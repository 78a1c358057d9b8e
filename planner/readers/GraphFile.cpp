// SPDX-License-Identifier: GPL-3.0-or-later
#include "planner/readers/GraphFile.h"

#include "planner/graph/SplitAxes.h"
#include "runtime/contract/Bytes.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>
#include <unordered_map>

namespace shardscope::planner {

using contract::badInput;
using contract::JsonCursor;
using contract::Operator;
using contract::OperatorKind;
using contract::OperatorRole;
using contract::OrderedJson;
using contract::Result;

namespace {

constexpr std::int64_t kMaximumFileBytes = 31 << 20;
// 61 layers of 256 experts are 45,000 operators, 1.3 million values and 27 MiB.
constexpr std::size_t kMaximumValues = 1'400'000;
constexpr std::int64_t kMaximumElements = std::int64_t{1} << 50;
constexpr std::int64_t kMaximumSequence = 1 << 24;
constexpr std::size_t kMaximumOperators = 1 << 17;
constexpr std::size_t kMaximumTensors = 4096;
constexpr double kMaximumFlops = 1e30;

/// The roles that sizes depend on; the others are told from names and kinds by nobody but the runtime.
constexpr std::array kRoles{
    std::pair{std::string_view("token_embedding"), OperatorRole::TokenEmbedding},
    std::pair{std::string_view("position_embedding"), OperatorRole::PositionEmbedding},
    std::pair{std::string_view("final_norm"), OperatorRole::FinalNorm},
    std::pair{std::string_view("head"), OperatorRole::Head},
};

OrderedJson roleJson(OperatorRole role) {
    for (const auto& [name, known] : kRoles) {
        if (known == role)
            return name;
    }
    return nullptr;
}

OrderedJson toJson(const Operator& op) {
    OrderedJson tensors = OrderedJson::array();
    for (const contract::TensorSpec& tensor : op.tensors)
        tensors.push_back({{"name", tensor.name}, {"shape", tensor.shape}, {"rows", tensor.rows}});
    OrderedJson kept = OrderedJson::array();
    for (const contract::ActivationSpec& spec : op.kept)
        kept.push_back({{"name", spec.name},
                        {"elements", spec.elementsPerSample},
                        {"fp32", spec.isFloat32},
                        {"block_input", spec.blockInput}});
    OrderedJson json{{"name", op.name},
                     {"kind", contract::operatorKindName(op.kind)},
                     {"role", roleJson(op.role)},
                     {"block", op.block >= 0 ? OrderedJson(op.blockName) : OrderedJson(nullptr)},
                     {"tied_to", op.isTied() ? OrderedJson(op.tiedTo) : OrderedJson(nullptr)},
                     {"tensors", tensors},
                     {"flops_forward", op.flopsForward},
                     {"kept", kept},
                     {"live",
                      {{"activation_elements", op.liveActivationElements},
                       {"wide_elements", op.liveWideElements},
                       {"scratch_bytes", op.liveScratchBytes}}}};
    if (op.attention)
        json["attention"] = {{"heads", op.attention->heads},
                             {"kv_heads", op.attention->kvHeads},
                             {"head_dim", op.attention->headDim},
                             {"keys", op.attention->keys},
                             {"value_head_dim", op.attention->valueHeadDim},
                             {"queries", op.attention->queries},
                             {"tokens", op.attention->tokens}};
    if (op.experts > 0)
        json["experts"] = {{"count", op.experts}, {"active", op.activeExperts}};
    return json;
}

contract::TensorSpec readTensor(const JsonCursor& cursor) {
    contract::TensorSpec tensor;
    cursor.expectOnly({"name", "shape", "rows"});
    tensor.name = cursor.at("name").text(256);
    const JsonCursor shape = cursor.at("shape");
    const std::size_t rank = shape.arraySize(16);
    std::optional<std::int64_t> elements = 1;
    for (std::size_t i = 0; i < rank && elements; ++i) {
        tensor.shape.push_back(shape.element(i).integer(0, kMaximumElements));
        elements = contract::checkedMultiply(*elements, tensor.shape.back());
    }
    if (!elements || *elements > kMaximumElements) {
        shape.fail("has more elements than any tensor here");
        return tensor;
    }
    const std::int64_t first = tensor.shape.empty() ? 1 : tensor.shape.front();
    const auto rows = cursor.find("rows");
    tensor.rows = rows ? rows->integer(0, kMaximumElements) : first;
    if (tensor.rows == 0 ? *elements != 0 : *elements % tensor.rows != 0)
        rows ? rows->fail(fmt::format("{} does not divide the {} elements", tensor.rows, *elements))
             : shape.fail("is empty along its first axis");
    else
        tensor.columns = tensor.rows == 0 ? 0 : *elements / tensor.rows;
    return tensor;
}

/// Of a sample of `sequence` tokens, where the file does not say more.
contract::AttentionShape readAttention(const JsonCursor& cursor, std::int64_t sequence) {
    const auto given = [&](std::string_view key, std::int64_t least, std::int64_t most, std::int64_t usual) {
        const auto field = cursor.find(key);
        return field ? field->integer(least, most) : usual;
    };
    contract::AttentionShape shape;
    cursor.expectOnly({"heads", "kv_heads", "head_dim", "keys", "value_head_dim", "queries", "tokens"});
    shape.heads = cursor.at("heads").integer(1, 1 << 20);
    shape.kvHeads = cursor.at("kv_heads").integer(1, 1 << 20);
    shape.headDim = cursor.at("head_dim").integer(1, 1 << 20);
    shape.keys = cursor.at("keys").integer(0, kMaximumSequence);
    shape.valueHeadDim = given("value_head_dim", 1, 1 << 20, shape.headDim);
    shape.queries = given("queries", 1, kMaximumSequence, sequence);
    shape.tokens = given("tokens", 0, kMaximumSequence, std::max(sequence, shape.keys));
    if (!cursor.failed() && shape.keys > shape.tokens)
        cursor.at("keys").fail(fmt::format("{} are more than the {} tokens there are", shape.keys, shape.tokens));
    return shape;
}

void readExtras(const JsonCursor& cursor, Operator& op, std::int64_t sequence) {
    if (const auto role = cursor.find("role"))
        op.role = role->choice<OperatorRole>({{kRoles[0].first, kRoles[0].second},
                                              {kRoles[1].first, kRoles[1].second},
                                              {kRoles[2].first, kRoles[2].second},
                                              {kRoles[3].first, kRoles[3].second}});
    if (const auto live = cursor.find("live")) {
        live->expectOnly({"activation_elements", "wide_elements", "scratch_bytes"});
        op.liveActivationElements = live->at("activation_elements").integer(0, kMaximumElements);
        op.liveWideElements = live->at("wide_elements").integer(0, kMaximumElements);
        op.liveScratchBytes = live->at("scratch_bytes").integer(0, kMaximumElements);
    }
    if (const auto attention = cursor.find("attention"))
        op.attention = readAttention(*attention, sequence);
    if (const auto experts = cursor.find("experts")) {
        experts->expectOnly({"count", "active"});
        op.experts = static_cast<std::int32_t>(experts->at("count").integer(1, 1 << 16));
        op.activeExperts = static_cast<std::int32_t>(experts->at("active").integer(1, op.experts));
    }
}

Operator readOperator(const JsonCursor& cursor, std::int64_t sequence) {
    Operator op;
    cursor.expectOnly({"name", "kind", "role", "block", "tied_to", "tensors", "flops_forward", "kept", "live",
                       "attention", "experts"});
    op.name = cursor.at("name").text(512);
    if (op.name.empty())
        cursor.at("name").fail("is empty");
    op.kind = cursor.at("kind").choice<OperatorKind>({{"embedding", OperatorKind::Embedding},
                                                      {"linear", OperatorKind::Linear},
                                                      {"norm", OperatorKind::Norm},
                                                      {"other", OperatorKind::Other}});
    if (const auto tied = cursor.find("tied_to"))
        op.tiedTo = tied->text(512);
    const JsonCursor tensors = cursor.at("tensors");
    const std::size_t count = tensors.arraySize(kMaximumTensors);
    for (std::size_t i = 0; i < count && !cursor.failed(); ++i)
        op.tensors.push_back(readTensor(tensors.element(i)));
    op.flopsForward = cursor.at("flops_forward").number(0, kMaximumFlops);
    const JsonCursor kept = cursor.at("kept");
    const std::size_t activations = kept.arraySize(kMaximumTensors);
    for (std::size_t i = 0; i < activations && !cursor.failed(); ++i) {
        const JsonCursor spec = kept.element(i);
        spec.expectOnly({"name", "elements", "fp32", "block_input"});
        const auto isFloat32 = spec.find("fp32");
        const auto blockInput = spec.find("block_input");
        op.kept.push_back({spec.at("name").text(256), spec.at("elements").integer(0, kMaximumElements),
                           isFloat32 && isFloat32->boolean(), blockInput && blockInput->boolean()});
    }
    readExtras(cursor, op, sequence);
    return op;
}

/// Names are given once, blocks lie together and prefix the names in them, tied operators follow their owner.
void readOperators(const JsonCursor& cursor, std::int64_t sequence, std::vector<Operator>& operators) {
    const JsonCursor list = cursor.at("operators");
    const std::size_t count = list.arraySize(kMaximumOperators);
    std::unordered_map<std::string, std::size_t> index;
    std::unordered_map<std::string, std::int32_t> blocks;
    double total = 0;
    for (std::size_t i = 0; i < count && !cursor.failed(); ++i) {
        const JsonCursor entry = list.element(i);
        Operator op = readOperator(entry, sequence);
        if (const auto block = entry.find("block")) {
            op.blockName = block->text(256);
            const bool continues = !operators.empty() && operators.back().blockName == op.blockName;
            const auto [known, isNew] = blocks.emplace(op.blockName, static_cast<std::int32_t>(blocks.size()));
            op.block = known->second;
            if (!isNew && !continues)
                block->fail(
                    fmt::format("\"{}\" is in two places; the operators of a block follow each other", op.blockName));
            else if (op.blockName.empty() || !op.name.starts_with(op.blockName + "."))
                entry.at("name").fail(fmt::format("\"{}\" must continue its block \"{}\"", op.name, op.blockName));
        }
        if (!index.emplace(op.name, i).second)
            entry.at("name").fail(fmt::format("\"{}\" is given twice", op.name));
        if (op.isTied()) {
            const auto owner = index.find(op.tiedTo);
            const bool suits = owner != index.end() && owner->second < i && !operators[owner->second].isTied() &&
                               operators[owner->second].tensorElements() == op.tensorElements();
            if (suits)
                operators[owner->second].sharedStorage = true;
            else
                entry.at("tied_to").fail(
                    fmt::format("\"{}\" must be an operator before this one with as many elements", op.tiedTo));
        }
        for (const contract::TensorSpec& tensor : op.tensors)
            total += static_cast<double>(tensor.rows) * static_cast<double>(tensor.columns);
        for (const contract::ActivationSpec& spec : op.kept)
            total += static_cast<double>(spec.elementsPerSample);
        if (total > static_cast<double>(kMaximumElements))
            entry.fail("makes the graph too large to plan");
        alignSplitAxes(op);
        operators.push_back(std::move(op));
    }
    if (!cursor.failed() && operators.empty())
        list.fail("is empty");
}

} // namespace

std::string graphFileText(const Graph& graph) {
    OrderedJson json{{"format", "shardscope-graph"},
                     {"version", 1},
                     {"name", graph.name},
                     {"title", graph.title},
                     {"family", graph.family},
                     {"sequence", graph.sequence},
                     {"maximum_sequence", graph.maximumSequence}};
    if (graph.attentionDropout)
        json["attention_dropout"] = true;
    if (graph.architecture) {
        json["architecture"] = contract::toJson(*graph.architecture);
    } else {
        OrderedJson operators = OrderedJson::array();
        for (const Operator& op : graph.operators)
            operators.push_back(toJson(op));
        json["operators"] = std::move(operators);
    }
    return json.dump(1, ' ', false, OrderedJson::error_handler_t::replace) + "\n";
}

Result<GraphPointer> readGraphFile(const std::string& path, std::int64_t sequence) {
    const auto document = contract::readJsonFile(path, kMaximumFileBytes, kMaximumValues);
    if (!document)
        return tl::unexpected(document.error());
    const JsonCursor cursor(*document, path);
    auto graph = std::make_shared<Graph>();
    cursor.expectOnly({"format", "version", "name", "title", "family", "sequence", "maximum_sequence",
                       "attention_dropout", "architecture", "operators"});
    cursor.at("format").choice<int>({{"shardscope-graph", 0}});
    cursor.at("version").integer(1, 1);
    graph->name = cursor.at("name").text(256);
    const auto title = cursor.find("title");
    graph->title = title ? title->text(256) : graph->name;
    graph->family = cursor.at("family").text(64);
    graph->source = path;
    graph->sequence = cursor.at("sequence").integer(1, kMaximumSequence);
    if (const auto longest = cursor.find("maximum_sequence"))
        graph->maximumSequence = longest->integer(0, kMaximumSequence);
    if (!cursor.failed() && graph->maximumSequence > 0 && graph->sequence > graph->maximumSequence)
        cursor.at("sequence")
            .fail(fmt::format("{} is more than maximum_sequence {}", graph->sequence, graph->maximumSequence));
    if (const auto dropout = cursor.find("attention_dropout"))
        graph->attentionDropout = dropout->boolean();
    if (const auto architecture = cursor.find("architecture")) {
        if (cursor.find("operators"))
            architecture->fail("and operators are both given; one of them says what the graph is");
        graph->architecture = contract::readArchitecture(*architecture);
        graph->maximumSequence = graph->architecture->positions;
    } else {
        readOperators(cursor, graph->sequence, graph->operators);
    }
    if (cursor.failed())
        return cursor.error();
    graph->unknownKeys = cursor.unknownKeys();
    graph->warnings = graph->unknownKeys;
    if (graph->architecture) {
        auto operators = contract::lowerArchitecture(*graph->architecture, graph->sequence);
        if (!operators)
            return badInput(fmt::format("{}: {}", path, operators.error().message));
        graph->operators = std::move(*operators);
    }
    if (sequence != 0 && sequence != graph->sequence && !graph->architecture)
        return badInput(fmt::format("{}: sequence is {} and {} tokens are asked for; its operators are sized for these "
                                    "alone, so export the graph again with --sequence {}",
                                    path, graph->sequence, sequence, sequence));
    return sequence == 0 ? GraphPointer(std::move(graph)) : withSequence(graph, sequence);
}

} // namespace shardscope::planner
