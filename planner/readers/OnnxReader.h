// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "planner/graph/Graph.h"

#include <string>

namespace shardscope::planner {

/// Reads an ONNX graph: operators are the modules that own initialisers, in the order of the graph; shapes come from
/// shape inference. Where this program was built without the onnx library the error says so. Errors: BadInput.
contract::Result<GraphPointer> readOnnx(const std::string& path, const std::string& name, std::int64_t sequence);

} // namespace shardscope::planner
