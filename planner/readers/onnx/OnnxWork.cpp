// SPDX-License-Identifier: GPL-3.0-or-later
#include "planner/readers/onnx/OnnxWork.h"

#include <algorithm>
#include <array>
#include <map>
#include <string_view>
#include <unordered_map>

namespace shardscope::planner {

namespace {

double real(std::int64_t value) {
    return static_cast<double>(value);
}

const OnnxShape* inputShape(const onnx::NodeProto& node, int index, const OnnxShapes& shapes) {
    return index < node.input_size() ? shapes.find(node.input(index)) : nullptr;
}
const OnnxShape* outputShape(const onnx::NodeProto& node, const OnnxShapes& shapes) {
    return node.output_size() > 0 ? shapes.find(node.output(0)) : nullptr;
}

/// (.., m, k) x (.., k, n): 2 m n k for each.
double matmulFlops(const onnx::NodeProto& node, const OnnxShapes& shapes) {
    const OnnxShape* left = inputShape(node, 0, shapes);
    const OnnxShape* result = outputShape(node, shapes);
    if (!left || !result || left->extents.empty())
        return 0;
    return 2 * result->elements() * real(left->extents.back());
}

double gemmFlops(const onnx::NodeProto& node, const OnnxShapes& shapes) {
    const OnnxShape* left = inputShape(node, 0, shapes);
    const OnnxShape* result = outputShape(node, shapes);
    if (!left || !result || left->extents.size() != 2)
        return 0;
    const std::size_t inner = onnxAttribute(node, "transA", 0) != 0 ? 0 : 1;
    return 2 * result->elements() * real(left->extents[inner]);
}

/// Weights (out, in / groups, k...): each output element is a product over all but the first axis. A transposed
/// convolution does the same for each input element.
double convolutionFlops(const onnx::NodeProto& node, const OnnxShapes& shapes, bool transposed) {
    const OnnxShape* weight = inputShape(node, 1, shapes);
    const OnnxShape* moved = transposed ? inputShape(node, 0, shapes) : outputShape(node, shapes);
    if (!weight || !moved || weight->extents.empty() || weight->extents[0] == 0)
        return 0;
    return 2 * moved->elements() * weight->elements() / real(weight->extents[0]);
}

/// X (tokens, batch, in), W (directions, gates x hidden, in), R (directions, gates x hidden, hidden).
double recurrentFlops(const onnx::NodeProto& node, const OnnxShapes& shapes) {
    const OnnxShape* input = inputShape(node, 0, shapes);
    const OnnxShape* weight = inputShape(node, 1, shapes);
    const OnnxShape* recurrent = inputShape(node, 2, shapes);
    if (!input || !weight || !recurrent || input->extents.size() != 3)
        return 0;
    return 2 * real(input->extents[0]) * real(input->extents[1]) * (weight->elements() + recurrent->elements());
}

/// Two for each combination of all named axes: "bhid,bhjd->bhij".
double einsumFlops(const onnx::NodeProto& node, const OnnxShapes& shapes) {
    std::string equation;
    for (const auto& attribute : node.attribute()) {
        if (attribute.name() == "equation")
            equation = attribute.s();
    }
    std::map<char, double> axes;
    std::size_t position = 0;
    for (int i = 0; i < node.input_size(); ++i) {
        const OnnxShape* shape = inputShape(node, i, shapes);
        if (!shape)
            return 0;
        std::size_t axis = 0;
        for (; position < equation.size() && equation[position] != ',' && equation[position] != '-'; ++position) {
            if (equation[position] == ' ')
                continue;
            if (equation[position] == '.' || axis >= shape->extents.size())
                return 0;
            axes[equation[position]] = real(shape->extents[axis++]);
        }
        ++position;
    }
    double product = node.input_size() > 1 ? 2 : 1;
    for (const auto& [name, extent] : axes)
        product *= extent;
    return product;
}

double poolFlops(const onnx::NodeProto& node, const OnnxShapes& shapes) {
    const OnnxShape* result = outputShape(node, shapes);
    double kernel = 1;
    for (const auto& attribute : node.attribute()) {
        if (attribute.name() == "kernel_shape") {
            for (const std::int64_t extent : attribute.ints())
                kernel *= real(extent);
        }
    }
    return result ? result->elements() * kernel : 0;
}

/// How a node that works element by element is counted.
struct Elementwise {
    double flopsPerElement;
    bool keepsInputs;
    bool keepsOutput;
    bool countsInput; ///< per element of the first input instead of the result
};
const std::unordered_map<std::string_view, Elementwise>& elementwise() {
    static const std::unordered_map<std::string_view, Elementwise> table{
        {"Add", {1, false, false, false}},
        {"Sub", {1, false, false, false}},
        {"Neg", {1, false, false, false}},
        {"Sum", {1, false, false, false}},
        {"Mul", {1, true, false, false}},
        {"Div", {1, true, false, false}},
        {"Pow", {1, true, false, false}},
        {"Abs", {1, true, false, false}},
        {"Max", {1, true, false, false}},
        {"Min", {1, true, false, false}},
        {"Clip", {1, true, false, false}},
        {"Erf", {1, true, false, false}},
        {"Log", {1, true, false, false}},
        {"Cos", {1, true, false, false}},
        {"Sin", {1, true, false, false}},
        {"Gelu", {8, true, false, false}},
        {"FastGelu", {8, true, false, false}},
        {"QuickGelu", {8, true, false, false}},
        {"BiasGelu", {8, true, false, false}},
        {"HardSwish", {4, true, false, false}},
        {"HardSigmoid", {3, true, false, false}},
        {"Mish", {8, true, false, false}},
        {"Softplus", {3, true, false, false}},
        {"PRelu", {1, true, false, false}},
        {"LeakyRelu", {1, true, false, false}},
        {"Elu", {2, false, true, false}},
        {"Selu", {2, false, true, false}},
        {"Relu", {1, false, true, false}},
        {"Sigmoid", {4, false, true, false}},
        {"Tanh", {4, false, true, false}},
        {"Exp", {1, false, true, false}},
        {"Sqrt", {1, false, true, false}},
        {"Reciprocal", {1, false, true, false}},
        {"Softmax", {5, false, true, false}},
        {"LogSoftmax", {5, false, true, false}},
        {"LayerNormalization", {8, true, false, false}},
        {"SimplifiedLayerNormalization", {5, true, false, false}},
        {"RMSNormalization", {5, true, false, false}},
        {"BatchNormalization", {8, true, false, false}},
        {"InstanceNormalization", {8, true, false, false}},
        {"GroupNormalization", {8, true, false, false}},
        {"LRN", {8, true, false, false}},
        {"ReduceMean", {1, false, false, true}},
        {"ReduceSum", {1, false, false, true}},
        {"ReduceMax", {1, true, false, true}},
        {"ReduceMin", {1, true, false, true}},
        {"ReduceL2", {2, true, false, true}},
        {"ReduceSumSquare", {2, true, false, true}},
        {"GlobalAveragePool", {1, false, false, true}},
        {"GlobalMaxPool", {1, true, false, true}},
        {"CumSum", {1, false, false, false}},
    };
    return table;
}

/// Nodes that move, choose or compare: no work of multiplication, nothing kept but indices.
bool movesOnly(std::string_view type) {
    constexpr std::array kTypes{
        std::string_view("Gather"),
        std::string_view("GatherElements"),
        std::string_view("GatherND"),
        std::string_view("Concat"),
        std::string_view("Slice"),
        std::string_view("Split"),
        std::string_view("Where"),
        std::string_view("Expand"),
        std::string_view("Tile"),
        std::string_view("Pad"),
        std::string_view("Shape"),
        std::string_view("Size"),
        std::string_view("Range"),
        std::string_view("Constant"),
        std::string_view("ConstantOfShape"),
        std::string_view("Equal"),
        std::string_view("Less"),
        std::string_view("LessOrEqual"),
        std::string_view("Greater"),
        std::string_view("GreaterOrEqual"),
        std::string_view("Not"),
        std::string_view("And"),
        std::string_view("Or"),
        std::string_view("Trilu"),
        std::string_view("ScatterND"),
        std::string_view("ScatterElements"),
        std::string_view("OneHot"),
        std::string_view("ArgMax"),
        std::string_view("TopK"),
        std::string_view("NonZero"),
        std::string_view("Dropout"),
        std::string_view("IsNaN"),
        std::string_view("Resize"),
        std::string_view("Sign"),
        std::string_view("Floor"),
        std::string_view("Ceil"),
        std::string_view("Round"),
        std::string_view("Mod"),
        std::string_view("EyeLike"),
        std::string_view("DepthToSpace"),
        std::string_view("SpaceToDepth"),
        std::string_view("IsInf"),
    };
    return std::find(kTypes.begin(), kTypes.end(), type) != kTypes.end();
}

} // namespace

std::int64_t onnxAttribute(const onnx::NodeProto& node, std::string_view name, std::int64_t fallback) {
    for (const auto& attribute : node.attribute()) {
        if (attribute.name() == name)
            return attribute.i();
    }
    return fallback;
}

bool isView(const onnx::NodeProto& node) {
    constexpr std::array kTypes{std::string_view("Reshape"),   std::string_view("Transpose"),
                                std::string_view("Identity"),  std::string_view("Cast"),
                                std::string_view("Unsqueeze"), std::string_view("Squeeze"),
                                std::string_view("Flatten"),   std::string_view("CastLike")};
    return node.input_size() > 0 && std::find(kTypes.begin(), kTypes.end(), node.op_type()) != kTypes.end();
}

OnnxWork workOf(const onnx::NodeProto& node, const OnnxShapes& shapes) {
    const std::string& type = node.op_type();
    OnnxWork work;
    if (isView(node) || movesOnly(type))
        return work;
    if (const auto found = elementwise().find(type); found != elementwise().end()) {
        const Elementwise& counted = found->second;
        const OnnxShape* shape = counted.countsInput ? inputShape(node, 0, shapes) : outputShape(node, shapes);
        work.flops = shape ? shape->elements() * counted.flopsPerElement : 0;
        work.keepsInputs = counted.keepsInputs;
        work.keepsOutput = counted.keepsOutput;
        return work;
    }
    work.keepsInputs = true;
    if (type == "MatMul" || type == "MatMulInteger" || type == "FusedMatMul")
        work.flops = matmulFlops(node, shapes);
    else if (type == "Gemm")
        work.flops = gemmFlops(node, shapes);
    else if (type == "Conv" || type == "ConvTranspose")
        work.flops = convolutionFlops(node, shapes, type == "ConvTranspose");
    else if (type == "LSTM" || type == "GRU" || type == "RNN")
        work.flops = recurrentFlops(node, shapes);
    else if (type == "Einsum")
        work.flops = einsumFlops(node, shapes);
    else if (type == "MaxPool" || type == "AveragePool" || type == "LpPool")
        work.flops = poolFlops(node, shapes);
    else
        work.isKnown = false;
    return work;
}

} // namespace shardscope::planner
