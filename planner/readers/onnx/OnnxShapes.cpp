// SPDX-License-Identifier: GPL-3.0-or-later
#include "planner/readers/onnx/OnnxShapes.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <exception>
#include <onnx/defs/schema.h>
#include <onnx/shape_inference/implementation.h>
#include <unordered_set>

namespace shardscope::planner {

using contract::badInput;
using contract::Result;

namespace {

constexpr std::int64_t kDefaultSequence = 512;
constexpr std::int64_t kMaximumSequence = 1 << 24;
constexpr std::int64_t kDefaultPixels = 224;
constexpr std::int64_t kMaximumExtent = std::int64_t{1} << 40;

bool isFloatType(std::int32_t type) {
    return type == onnx::TensorProto::FLOAT || type == onnx::TensorProto::FLOAT16 ||
           type == onnx::TensorProto::BFLOAT16 || type == onnx::TensorProto::DOUBLE;
}

bool isInteger(std::int32_t type) {
    return type == onnx::TensorProto::INT64 || type == onnx::TensorProto::INT32;
}

/// Sizes of symbolic axes; sees to it that one name means one size.
class AxisBinder {
public:
    AxisBinder(OnnxShapes& shapes, std::int64_t sequence) : m_shapes(shapes), m_sequence(sequence) {}

    /// Nothing, or what is wrong with the input.
    std::string bind(onnx::ValueInfoProto& input) {
        if (!input.type().has_tensor_type())
            return "is no tensor";
        onnx::TypeProto_Tensor& type = *input.mutable_type()->mutable_tensor_type();
        const int rank = type.shape().dim_size();
        for (int axis = 0; axis < rank; ++axis) {
            onnx::TensorShapeProto_Dimension& dim = *type.mutable_shape()->mutable_dim(axis);
            if (dim.has_dim_value()) {
                if (dim.dim_value() < 0 || dim.dim_value() > kMaximumExtent)
                    return fmt::format("axis {} is {}", axis, dim.dim_value());
                continue;
            }
            const std::string name = dim.dim_param();
            const std::int64_t size = sizeOf(name, axis, rank);
            dim.set_dim_value(size);
        }
        noteSample(type, rank);
        return {};
    }

private:
    std::int64_t sizeOf(const std::string& name, int axis, int rank) {
        const bool isBatch = axis == 0 || name.find("batch") != std::string::npos;
        if (isBatch)
            return 1;
        if (rank == 4) {
            m_shapes.notes.push_back(fmt::format("the free axis {} of an image is taken as {} pixels",
                                                 name.empty() ? std::to_string(axis) : name, kDefaultPixels));
            return kDefaultPixels;
        }
        m_shapes.symbolicSequence = true;
        m_shapes.sequence = m_sequence;
        return m_sequence;
    }

    /// A graph exported for several samples has them as first axis of all inputs; one for token ids of a fixed length
    /// has that as second.
    void noteSample(const onnx::TypeProto_Tensor& type, int rank) {
        if (rank == 0)
            return;
        const std::int64_t first = type.shape().dim(0).dim_value();
        m_shapes.batch = m_first ? first : (m_shapes.batch == first ? first : 1);
        m_first = false;
        const bool isSequence = (rank == 2 && isInteger(type.elem_type())) || rank == 3;
        if (isSequence && !m_shapes.symbolicSequence)
            m_shapes.sequence = std::max<std::int64_t>(1, std::min(type.shape().dim(1).dim_value(), kMaximumSequence));
    }

    OnnxShapes& m_shapes;
    std::int64_t m_sequence;
    bool m_first = true;
};

/// Debian's library knows operators up to version 17. What later versions only write differently is put into the older
/// form, in the copy that shapes are inferred from.
void adaptToLibrary(onnx::GraphProto& graph) {
    constexpr std::array<std::string_view, 4> kElementwise{"Gelu", "FastGelu", "QuickGelu", "BiasGelu"};
    std::unordered_map<std::string, const onnx::TensorProto*> constants;
    for (const onnx::TensorProto& tensor : graph.initializer())
        constants.emplace(tensor.name(), &tensor);
    for (onnx::NodeProto& node : *graph.mutable_node()) {
        if (std::find(kElementwise.begin(), kElementwise.end(), node.op_type()) != kElementwise.end() &&
            node.input_size() > 0) {
            const std::string input = node.input(0);
            node.clear_input();
            node.add_input(input);
            node.clear_attribute();
            node.set_op_type("Identity");
            node.set_domain("");
        } else if (node.op_type() == "Split") {
            auto& attributes = *node.mutable_attribute();
            for (int i = attributes.size(); i-- > 0;) {
                if (attributes[i].name() == "num_outputs")
                    attributes.DeleteSubrange(i, 1);
            }
        } else if (node.op_type().starts_with("Reduce") && node.op_type() != "ReduceSum" && node.input_size() == 2) {
            // Version 18 gives the axes as an input.
            const auto axes = constants.find(node.input(1));
            if (axes == constants.end() || axes->second->data_type() != onnx::TensorProto::INT64)
                continue;
            onnx::AttributeProto& attribute = *node.add_attribute();
            attribute.set_name("axes");
            attribute.set_type(onnx::AttributeProto::INTS);
            const std::string& raw = axes->second->raw_data();
            for (std::size_t i = 0; i + 8 <= raw.size(); i += 8) {
                std::uint64_t value = 0;
                for (std::size_t byte = 8; byte-- > 0;)
                    value = value << 8 | static_cast<unsigned char>(raw[i + byte]);
                attribute.add_ints(static_cast<std::int64_t>(value));
            }
            for (const std::int64_t value : axes->second->int64_data())
                attribute.add_ints(value);
            node.mutable_input()->DeleteSubrange(1, 1);
        }
    }
}

void addValue(OnnxShapes& shapes, const onnx::ValueInfoProto& value) {
    if (!value.type().has_tensor_type() || !value.type().tensor_type().has_shape())
        return;
    OnnxShape shape;
    shape.isFloat = isFloatType(value.type().tensor_type().elem_type());
    for (const auto& dim : value.type().tensor_type().shape().dim()) {
        if (!dim.has_dim_value() || dim.dim_value() < 0 || dim.dim_value() > kMaximumExtent)
            return;
        shape.extents.push_back(dim.dim_value());
    }
    shapes.values[value.name()] = std::move(shape);
}

void noteUnknown(OnnxShapes& shapes, const onnx::GraphProto& graph) {
    std::int64_t unknown = 0;
    std::string first;
    for (const onnx::NodeProto& node : graph.node()) {
        for (const std::string& output : node.output()) {
            if (output.empty() || shapes.values.contains(output))
                continue;
            first = first.empty() ? fmt::format("{} ({})", node.name().empty() ? output : node.name(), node.op_type())
                                  : first;
            ++unknown;
        }
    }
    if (unknown > 0)
        shapes.notes.push_back(fmt::format("the shapes of {} values are not known, the first of {}; their work and "
                                           "activations are not counted",
                                           unknown, first.substr(0, 200)));
}

} // namespace

double OnnxShape::elements() const {
    double product = 1;
    for (const std::int64_t extent : extents)
        product *= static_cast<double>(extent);
    return product;
}

const OnnxShape* OnnxShapes::find(const std::string& value) const {
    const auto found = values.find(value);
    return found == values.end() ? nullptr : &found->second;
}

Result<OnnxShapes> inferShapes(const OnnxFile& file, std::int64_t sequence) {
    if (sequence < 0 || sequence > kMaximumSequence)
        return badInput(
            fmt::format("{}: a sequence of {} tokens is outside 1..{}", file.path, sequence, kMaximumSequence));
    OnnxShapes shapes;
    onnx::ModelProto proto = file.proto;
    onnx::GraphProto& graph = *proto.mutable_graph();
    std::unordered_set<std::string> constants;
    for (const onnx::TensorProto& tensor : graph.initializer()) {
        constants.insert(tensor.name());
        OnnxShape& shape = shapes.values[tensor.name()];
        shape.extents.assign(tensor.dims().begin(), tensor.dims().end());
        shape.isFloat = isFloatType(tensor.data_type());
    }
    AxisBinder binder(shapes, sequence == 0 ? kDefaultSequence : sequence);
    for (onnx::ValueInfoProto& input : *graph.mutable_input()) {
        if (constants.contains(input.name()))
            continue; // older graphs list their initialisers as inputs
        if (const std::string wrong = binder.bind(input); !wrong.empty())
            return badInput(fmt::format("{}: input {}: {}", file.path, input.name().substr(0, 256), wrong));
    }
    // What was inferred for other sizes would contradict these.
    graph.clear_value_info();
    for (onnx::ValueInfoProto& output : *graph.mutable_output())
        output.mutable_type()->mutable_tensor_type()->clear_shape();
    adaptToLibrary(graph);
    try {
        onnx::shape_inference::InferShapes(proto, onnx::OpSchemaRegistry::Instance(),
                                           onnx::ShapeInferenceOptions(false, 0, true));
    } catch (const std::exception& error) {
        shapes.notes.push_back(fmt::format("shape inference stopped: {}", std::string(error.what()).substr(0, 300)));
    }
    for (const onnx::ValueInfoProto& value : graph.input())
        addValue(shapes, value);
    for (const onnx::ValueInfoProto& value : graph.value_info())
        addValue(shapes, value);
    for (const onnx::ValueInfoProto& value : graph.output())
        addValue(shapes, value);
    noteUnknown(shapes, graph);
    return shapes;
}

} // namespace shardscope::planner
