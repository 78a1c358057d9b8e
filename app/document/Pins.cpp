// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/document/Document.h"

#include <algorithm>
#include <set>

namespace shardscope::app {

bool matchesGlob(std::string_view pattern, std::string_view name) {
    std::size_t p = 0, n = 0, star = std::string_view::npos, mark = 0;
    while (n < name.size()) {
        if (p < pattern.size() && pattern[p] == '*') {
            star = p++;
            mark = n;
        } else if (p < pattern.size() && pattern[p] == name[n]) {
            ++p;
            ++n;
        } else if (star != std::string_view::npos) {
            p = star + 1;
            n = ++mark;
        } else {
            return false;
        }
    }
    while (p < pattern.size() && pattern[p] == '*')
        ++p;
    return p == pattern.size();
}

namespace {

/// "*.mlp.c_fc" when the operators are exactly all those under one name in every block.
std::optional<std::string> commonPattern(const planner::Graph& graph, const std::vector<std::int32_t>& operators) {
    if (operators.size() < 2)
        return std::nullopt;
    const contract::Operator& first = graph.operators[static_cast<std::size_t>(operators.front())];
    if (first.block < 0 || first.name.size() <= first.blockName.size())
        return std::nullopt;
    std::string pattern(1, '*');
    pattern.append(first.name, first.blockName.size());
    const std::set<std::int32_t> wanted(operators.begin(), operators.end());
    for (std::size_t i = 0; i < graph.operators.size(); ++i)
        if (matchesGlob(pattern, graph.operators[i].name) != wanted.contains(static_cast<std::int32_t>(i)))
            return std::nullopt;
    return pattern;
}

} // namespace

std::vector<planner::Pin> withPins(std::vector<planner::Pin> pins, const planner::Graph& graph,
                                   const std::vector<std::int32_t>& operators,
                                   const std::optional<contract::Placement>& placement) {
    std::set<std::string> names;
    for (const std::int32_t op : operators)
        if (op >= 0 && static_cast<std::size_t>(op) < graph.operators.size())
            names.insert(graph.operators[static_cast<std::size_t>(op)].name);

    // A pattern that also pins others is replaced by the names of those others.
    std::vector<planner::Pin> result;
    for (const planner::Pin& pin : pins) {
        std::vector<std::string> others;
        bool touches = false;
        for (const contract::Operator& op : graph.operators) {
            if (!matchesGlob(pin.pattern, op.name))
                continue;
            if (names.contains(op.name))
                touches = true;
            else
                others.push_back(op.name);
        }
        if (!touches) {
            result.push_back(pin);
            continue;
        }
        for (const std::string& name : others)
            result.push_back({name, pin.placement});
    }
    if (!placement)
        return result;
    if (const auto pattern = commonPattern(graph, operators)) {
        result.push_back({*pattern, *placement});
        return result;
    }
    for (const std::int32_t op : operators)
        if (op >= 0 && static_cast<std::size_t>(op) < graph.operators.size())
            result.push_back({graph.operators[static_cast<std::size_t>(op)].name, *placement});
    return result;
}

} // namespace shardscope::app
