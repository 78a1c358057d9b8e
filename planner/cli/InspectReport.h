// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "planner/graph/Graph.h"

#include <string>

namespace shardscope::planner::cli {

// Activations are those of one sample under the bf16-adam preset.

/// The document of `inspect --json`.
std::string inspectJson(const Graph& graph);
/// A table for people; blocks alike are printed once.
std::string inspectTable(const Graph& graph);

} // namespace shardscope::planner::cli
