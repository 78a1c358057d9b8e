// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "planner/graph/Graph.h"

#include <optional>
#include <string>
#include <vector>

namespace shardscope::planner {

/// Opens a GRAPH argument: a Hugging Face folder, its config.json, safetensors or their index, an ONNX file, a
/// *.graph.json, or a bundled name.
/// `sequence` 0 means the default, min(context, 4096). Errors: BadInput naming file and field, and what is supported.
contract::Result<GraphPointer> openGraph(const std::string& argument, std::int64_t sequence = 0);

/// Reads the text of a config.json. `name` becomes the graph's name, `file` stands in messages.
contract::Result<GraphPointer> readConfig(std::string_view text, const std::string& name, const std::string& file,
                                          std::int64_t sequence = 0);

struct ZooEntry {
    std::string name;
    std::string title;
    std::string path;
};
/// The bundled graphs, in the order in which they are offered.
std::vector<ZooEntry> bundledGraphs();

/// The folder `models/` of this installation: SHARDSCOPE_MODELS if set, else beside or above the executable, else the
/// source tree.
std::string modelsFolder();

} // namespace shardscope::planner
