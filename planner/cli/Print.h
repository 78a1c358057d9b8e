// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "runtime/contract/Json.h"

#include <fmt/format.h>

#include <string>
#include <string_view>
#include <utility>

namespace shardscope::planner::cli {

/// The text as a terminal may show it: names come from files of others, and a control character in one could move the
/// cursor or rename the window. Line ends and tabs stay, other controls are written as "\x1b".
std::string withoutControls(std::string_view text);

/// Formats text for people to standard output, without controls.
template<typename... Arguments> void print(fmt::format_string<Arguments...> format, Arguments&&... arguments) {
    fmt::print("{}", withoutControls(fmt::format(format, std::forward<Arguments>(arguments)...)));
}

/// One JSON document for programs; what is not UTF-8 in it (a path) is replaced.
void printJson(const contract::OrderedJson& document);

} // namespace shardscope::planner::cli
