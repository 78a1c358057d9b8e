// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "planner/readers/onnx/OnnxShapes.h"

#include <string>
#include <vector>

namespace shardscope::planner {

/// What a node computes and what its backward pass needs, for the whole batch that the graph was exported for.
struct OnnxWork {
    double flops = 0;
    bool keepsInputs = false; ///< matrix products, products of two values, norms
    bool keepsOutput = false; ///< softmax, sigmoid, tanh, relu: their derivative is a function of the result
    bool isKnown = true;      ///< false: work of such a node is not counted
};

/// Two per multiplied pair in matrix products and convolutions; one to eight per element elsewhere.
OnnxWork workOf(const onnx::NodeProto& node, const OnnxShapes& shapes);

/// Nodes whose result shares the elements of their first input: what they pass on is kept once.
bool isView(const onnx::NodeProto& node);

/// An integer attribute, or `fallback`.
std::int64_t onnxAttribute(const onnx::NodeProto& node, std::string_view name, std::int64_t fallback);

} // namespace shardscope::planner
