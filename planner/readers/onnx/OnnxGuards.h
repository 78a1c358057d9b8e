// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <cstdint>
#include <onnx/onnx_pb.h>
#include <optional>
#include <string>

namespace shardscope::planner {

/// The onnx library trusts what it infers shapes from. In the copy of a graph that it is given, nodes that do not fit
/// their operator's schema, divide by zero or hold subgraphs are moved to a domain that it does not know, so that it
/// passes over them; functions and training graphs are left out. Returns how many nodes were hidden so.
std::int64_t hideFromInference(onnx::ModelProto& proto);

/// Whether a tensor holds as many elements as its shape says.
bool isComplete(const onnx::TensorProto& tensor);

/// The place and fault of the first name in a graph that cannot be written to a plan or a message, if any:
/// "node[3].input[0]: is not valid UTF-8".
std::optional<std::string> findWrongName(const onnx::GraphProto& graph);

} // namespace shardscope::planner
