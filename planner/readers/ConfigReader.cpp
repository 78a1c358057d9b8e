// SPDX-License-Identifier: GPL-3.0-or-later
#include "planner/readers/ConfigFamilies.h"
#include "planner/readers/Readers.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>

namespace shardscope::planner {

namespace {

/// Architectures are lowered by the contract, other networks by their family's builder.
contract::Result<std::vector<contract::Operator>> lowerNetwork(const Network& network, std::int64_t sequence) {
    if (network.architecture)
        return contract::lowerArchitecture(*network.architecture, sequence);
    NetworkBuilder builder(sequence);
    if (network.body) {
        auto operators = contract::lowerArchitecture(*network.body, sequence);
        if (operators)
            network.adapt(*operators, builder);
        return operators;
    }
    network.build(builder);
    if (builder.tooLarge())
        return contract::badInput(
            fmt::format("the sizes make a network that is too large to plan at {} tokens", sequence));
    return builder.take();
}

contract::Result<std::int64_t> chooseSequence(const Network& network, const std::string& file, std::int64_t wanted) {
    const std::int64_t longest = network.context > 0 ? network.context : kMaximumPositions;
    if (wanted == 0)
        return network.fixedSequence ? longest : std::min(longest, network.usual);
    if (network.fixedSequence && wanted != longest)
        return contract::badInput(fmt::format("{}: a sequence of {} tokens is not possible; {} makes it {}", file,
                                              wanted, network.contextField, longest));
    if (wanted < 1 || wanted > longest)
        return contract::badInput(
            fmt::format("{}: a sequence of {} tokens is outside 1..{}, the context length that {} gives", file, wanted,
                        longest, network.context > 0 ? network.contextField : "this version"));
    return wanted;
}

} // namespace

contract::Result<GraphPointer> readConfig(std::string_view text, const std::string& name, const std::string& file,
                                          std::int64_t sequence) {
    const auto document = contract::parseJson(text, file);
    if (!document)
        return tl::unexpected(document.error());
    const contract::JsonCursor cursor(*document, file);
    auto graph = std::make_shared<Graph>();
    const auto network = std::make_shared<const Network>(readFamily(cursor, graph->warnings));
    if (cursor.failed())
        return cursor.error();
    const contract::Architecture* body = network->architecture ? &*network->architecture
                                         : network->body       ? &*network->body
                                                               : nullptr;
    if (body) {
        if (const auto wrong = contract::checkArchitecture(*body))
            return contract::badInput(fmt::format("{}: {}", file, *wrong));
    }
    const auto length = chooseSequence(*network, file, sequence);
    if (!length)
        return tl::unexpected(length.error());
    auto operators = lowerNetwork(*network, *length);
    if (!operators)
        return contract::badInput(fmt::format("{}: {}", file, operators.error().message));
    graph->sequence = *length;
    graph->maximumSequence = network->context;
    graph->name = name;
    graph->title = name;
    graph->family = network->family;
    graph->source = file;
    graph->architecture = network->architecture;
    graph->attentionDropout = network->attentionDropout;
    if (!network->architecture && !network->fixedSequence)
        graph->lower = [network](std::int64_t other) { return lowerNetwork(*network, other); };
    graph->operators = std::move(*operators);
    return GraphPointer(std::move(graph));
}

} // namespace shardscope::planner
