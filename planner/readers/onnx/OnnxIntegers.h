// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <cstdint>
#include <onnx/onnx_pb.h>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

namespace shardscope::planner {

/// A small tensor of integers that is known before anything runs: exporters compute shapes with these.
struct OnnxInteger {
    std::vector<std::int64_t> extents; ///< of rank 0 or 1
    std::vector<std::int64_t> values;
};
using OnnxIntegers = std::unordered_map<std::string, OnnxInteger>;

/// The integers of an initialiser or a Constant, if it holds few of them.
std::optional<OnnxInteger> readIntegers(const onnx::TensorProto& tensor);

/// What a node computes from known integers and known shapes, or nothing. `shapeOf` gives a value's extents, null when
/// they are not known.
template<typename ShapeOf>
std::optional<OnnxInteger> foldIntegers(const onnx::NodeProto& node, const OnnxIntegers& known, ShapeOf shapeOf);

/// The same without shapes: for all nodes but Shape and Size.
std::optional<OnnxInteger> foldKnown(const onnx::NodeProto& node, const OnnxIntegers& known);

template<typename ShapeOf>
std::optional<OnnxInteger> foldIntegers(const onnx::NodeProto& node, const OnnxIntegers& known, ShapeOf shapeOf) {
    if ((node.op_type() != "Shape" && node.op_type() != "Size") || node.input_size() != 1)
        return foldKnown(node, known);
    const std::vector<std::int64_t>* extents = shapeOf(node.input(0));
    if (!extents || node.attribute_size() > 0) // a part of a shape is seldom asked for
        return std::nullopt;
    if (node.op_type() == "Shape")
        return OnnxInteger{{static_cast<std::int64_t>(extents->size())}, *extents};
    std::int64_t product = 1;
    for (const std::int64_t extent : *extents) {
        if (__builtin_mul_overflow(product, extent, &product))
            return std::nullopt;
    }
    return OnnxInteger{{}, {product}};
}

} // namespace shardscope::planner
