// SPDX-License-Identifier: GPL-3.0-or-later
#include "planner/readers/ConfigFamilies.h"
#include "planner/readers/Readers.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>

namespace shardscope::planner {

namespace {

constexpr std::int64_t kDefaultSequence = 4096;

} // namespace

contract::Result<GraphPointer> readConfig(std::string_view text, const std::string& name, const std::string& file,
                                          std::int64_t sequence) {
    const auto document = contract::parseJson(text, file);
    if (!document)
        return tl::unexpected(document.error());
    const contract::JsonCursor cursor(*document, file);
    auto graph = std::make_shared<Graph>();
    const contract::Architecture architecture = readFamily(cursor, graph->warnings);
    if (cursor.failed())
        return cursor.error();
    if (const auto wrong = contract::checkArchitecture(architecture))
        return contract::badInput(fmt::format("{}: {}", file, *wrong));

    graph->maximumSequence = architecture.positions;
    graph->sequence = sequence == 0 ? std::min(architecture.positions, kDefaultSequence) : sequence;
    if (graph->sequence < 1 || graph->sequence > architecture.positions)
        return contract::badInput(
            fmt::format("{}: a sequence of {} tokens is outside 1..{}, the context length that {} gives", file,
                        sequence, architecture.positions, contextField(architecture.family)));
    auto operators = contract::lowerArchitecture(architecture, graph->sequence);
    if (!operators)
        return contract::badInput(fmt::format("{}: {}", file, operators.error().message));
    graph->name = name;
    graph->title = name;
    graph->family = architecture.family;
    graph->source = file;
    graph->architecture = architecture;
    graph->operators = std::move(*operators);
    return GraphPointer(std::move(graph));
}

} // namespace shardscope::planner
