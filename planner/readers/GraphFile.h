// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "planner/graph/Graph.h"

#include <string>

namespace shardscope::planner {

/// The text of a `*.graph.json` (schema: models/README.md): the architecture where the training runtime speaks of it,
/// else the operators for the graph's sequence.
std::string graphFileText(const Graph& graph);

/// Reads a `*.graph.json`. Errors: BadInput, naming the JSON path.
contract::Result<GraphPointer> readGraphFile(const std::string& path, std::int64_t sequence);

} // namespace shardscope::planner
