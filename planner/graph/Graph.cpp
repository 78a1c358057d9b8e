// SPDX-License-Identifier: GPL-3.0-or-later
#include "planner/graph/Graph.h"

#include "runtime/contract/Plan.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <map>
#include <utility>

namespace shardscope::planner {

Graph::Parameters Graph::countParameters() const {
    Parameters count;
    std::map<std::pair<std::int32_t, std::int32_t>, std::int64_t> routed; // by experts, active: divided once
    for (const contract::Operator& op : operators) {
        count.unique += op.parameters();
        if (op.experts > 0)
            routed[{op.experts, op.activeExperts}] += op.parameters();
    }
    count.stored = weights ? weights->elements : count.unique;
    count.duplicated = weights ? weights->copiedElements : 0;
    count.active = count.unique;
    for (const auto& [experts, parameters] : routed)
        count.active -= parameters - parameters / experts.first * experts.second;
    return count;
}

double Graph::flopsForward() const {
    double flops = 0;
    for (const contract::Operator& op : operators)
        flops += op.flopsForward;
    return flops;
}

std::int32_t Graph::blockCount() const {
    std::int32_t count = 0;
    for (const contract::Operator& op : operators)
        count = std::max(count, op.block + 1);
    return count;
}

/// The identity leaves out the sequence length, the file it was read from, and names that people give.
std::string Graph::sha256() const {
    std::string text = fmt::format("shardscope-graph 1\nfamily {}\n", family);
    if (architecture)
        text += fmt::format("architecture {}\n", contract::toJson(*architecture).dump());
    for (const contract::Operator& op : operators) {
        text += fmt::format("operator {} {} {} {}\n", op.name, contract::operatorKindName(op.kind), op.block,
                            op.isTied() ? op.tiedTo : "-");
        for (const contract::TensorSpec& tensor : op.tensors) {
            text += fmt::format("tensor {} {} {}", tensor.name, tensor.rows, tensor.columns);
            for (const std::int64_t extent : tensor.shape)
                text += fmt::format(" {}", extent);
            text += '\n';
        }
        if (op.experts > 0)
            text += fmt::format("experts {} {}\n", op.experts, op.activeExperts);
    }
    return contract::sha256(text);
}

namespace {

contract::Result<GraphPointer> lowered(const GraphPointer& graph, std::int64_t sequence,
                                       contract::AttentionKernel attention) {
    auto operators =
        graph->architecture ? contract::lowerArchitecture(*graph->architecture, sequence) : graph->lower(sequence);
    contract::Result<void> done;
    if (operators && attention == contract::AttentionKernel::Materialised)
        done = contract::materialiseScores(*operators, graph->attentionDropout);
    if (!operators || !done)
        return contract::badInput(
            fmt::format("{}: {}", graph->name, operators ? done.error().message : operators.error().message));
    auto changed = std::make_shared<Graph>(*graph);
    changed->sequence = sequence;
    changed->attention = attention;
    changed->operators = std::move(*operators);
    return GraphPointer(std::move(changed));
}

} // namespace

contract::Result<GraphPointer> withSequence(const GraphPointer& graph, std::int64_t sequence) {
    if (sequence == graph->sequence)
        return graph;
    if (sequence < 1)
        return contract::badInput(fmt::format("{}: a sequence of {} tokens is not possible", graph->name, sequence));
    if (graph->maximumSequence > 0 && sequence > graph->maximumSequence)
        return contract::badInput(fmt::format("{}: a sequence of {} tokens exceeds the context length {}", graph->name,
                                              sequence, graph->maximumSequence));
    if (!graph->architecture && !graph->lower)
        return contract::badInput(
            fmt::format("{}: is known for sequences of {} tokens only", graph->name, graph->sequence));
    return lowered(graph, sequence, graph->attention);
}

contract::Result<GraphPointer> withAttention(const GraphPointer& graph, contract::AttentionKernel attention) {
    if (attention == graph->attention)
        return graph;
    if (graph->architecture || graph->lower)
        return lowered(graph, graph->sequence, attention);
    if (attention == contract::AttentionKernel::Fused)
        return contract::badInput(fmt::format("{}: is known with unfused attention only", graph->name));
    auto changed = std::make_shared<Graph>(*graph);
    changed->attention = attention;
    if (const auto done = contract::materialiseScores(changed->operators, graph->attentionDropout); !done)
        return contract::badInput(fmt::format("{}: {}", graph->name, done.error().message));
    return GraphPointer(std::move(changed));
}

contract::Result<GraphPointer> withAttentionOf(const GraphPointer& graph, const contract::Training& training) {
    if (training.attention == contract::AttentionKernel::Fused || graph->attentionDropout == training.attentionDropout)
        return withAttention(graph, training.attention);
    auto changed = std::make_shared<Graph>(*graph);
    changed->attentionDropout = training.attentionDropout;
    return withAttention(changed, training.attention);
}

} // namespace shardscope::planner
