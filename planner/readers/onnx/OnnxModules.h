// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "planner/readers/onnx/OnnxFile.h"
#include "planner/readers/onnx/OnnxShapes.h"

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <vector>

namespace shardscope::planner {

/// Which values are parameters and which are constants, followed through the nodes that merely reshape them.
class OnnxConstants {
public:
    explicit OnnxConstants(const OnnxFile& file);

    /// The initialiser whose elements a value is, or null.
    const onnx::TensorProto* initializer(const std::string& value) const;
    /// Whether a value can be computed before any input is known.
    bool isConstant(const std::string& value) const { return m_constant.contains(value); }
    /// Whether input `index` of a node is trained: a floating-point initialiser at a place where a module has its
    /// weights. Scalars, masks, indices and running statistics are not.
    const onnx::TensorProto* parameter(const onnx::NodeProto& node, int index) const;
    /// The same, but all that a recurrent layer's weights are put together of: exporters cut and join them.
    std::vector<const onnx::TensorProto*> parameters(const onnx::NodeProto& node, int index) const;

private:
    void addSources(const onnx::NodeProto& node);

    std::unordered_map<std::string, const onnx::TensorProto*> m_initializer;
    std::unordered_map<std::string, std::vector<const onnx::TensorProto*>> m_sources; ///< what was cut and joined
    std::unordered_set<std::string> m_constant;
};

/// "h.0.attn.c_attn" for the node "/transformer/h.0/attn/c_attn/MatMul"; the node's name where it is no path.
std::string moduleOfNode(const onnx::NodeProto& node, std::size_t index);
/// "h.0.attn.c_attn" for the initialiser "transformer.h.0.attn.c_attn.weight"; empty for names that an exporter made
/// up.
std::string moduleOfInitializer(std::string_view name);

/// Whether `copy` holds the elements of `owner`, as they are or transposed, by a look at many of them. False as well
/// when they cannot be read.
bool isStoredAgain(const OnnxFile& file, const onnx::TensorProto& owner, const onnx::TensorProto& copy);

} // namespace shardscope::planner
