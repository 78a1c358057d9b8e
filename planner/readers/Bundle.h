// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "planner/readers/Readers.h"

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace shardscope::planner {

/// The entries of models/KIND/index.json ("graphs", "clusters") in their order; empty when there is none. Each path is
/// models/KIND/NAME followed by `suffix`.
std::vector<ZooEntry> readBundleIndex(std::string_view kind, std::string_view suffix);

std::optional<ZooEntry> findEntry(const std::vector<ZooEntry>& entries, std::string_view name);

/// "gpt2, gpt2-medium, ...", for messages; says so when nothing is bundled.
std::string listNames(const std::vector<ZooEntry>& entries);

} // namespace shardscope::planner
