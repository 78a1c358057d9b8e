// SPDX-License-Identifier: GPL-3.0-or-later
#include "planner/readers/onnx/OnnxShapes.h"

#include "planner/readers/onnx/OnnxGuards.h"
#include "planner/readers/onnx/OnnxIntegers.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <deque>
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

void addValue(OnnxShapes& shapes, const std::string& name, const onnx::TypeProto& type) {
    if (!type.has_tensor_type() || !type.tensor_type().has_shape())
        return;
    OnnxShape shape;
    shape.isFloat = isFloatType(type.tensor_type().elem_type());
    for (const auto& dim : type.tensor_type().shape().dim()) {
        if (!dim.has_dim_value() || dim.dim_value() < 0 || dim.dim_value() > kMaximumExtent)
            return;
        shape.extents.push_back(dim.dim_value());
    }
    shapes.values[name] = std::move(shape);
}

/// Gives every node to its operator's inference function in turn. Integers that exporters compute shapes with are
/// evaluated on the way, since the functions need to see them.
class NodeByNode {
public:
    NodeByNode(onnx::ModelProto& proto, OnnxShapes& shapes) : m_graph(*proto.mutable_graph()), m_shapes(shapes) {
        for (const auto& import : proto.opset_import())
            m_versions[import.domain()] = static_cast<int>(std::clamp<std::int64_t>(import.version(), 1, 1000));
    }

    void run() {
        for (const onnx::TensorProto& tensor : m_graph.initializer()) {
            onnx::TypeProto& type = m_types[tensor.name()];
            type.mutable_tensor_type()->set_elem_type(tensor.data_type());
            type.mutable_tensor_type()->mutable_shape();
            for (const std::int64_t extent : tensor.dims())
                type.mutable_tensor_type()->mutable_shape()->add_dim()->set_dim_value(extent);
            m_typePointers[tensor.name()] = &type;
            m_data[tensor.name()] = &tensor;
            if (auto integers = readIntegers(tensor))
                m_integers[tensor.name()] = std::move(*integers);
        }
        for (const onnx::ValueInfoProto& input : m_graph.input()) {
            if (m_types.contains(input.name()))
                continue;
            m_typePointers[input.name()] = &(m_types[input.name()] = input.type());
            addValue(m_shapes, input.name(), input.type());
        }
        for (onnx::NodeProto& node : *m_graph.mutable_node())
            inferNode(node);
    }

private:
    void inferNode(onnx::NodeProto& node) {
        const auto shapeOf = [&](const std::string& value) -> const std::vector<std::int64_t>* {
            const OnnxShape* shape = m_shapes.find(value);
            return shape ? &shape->extents : nullptr;
        };
        if (auto integers = foldIntegers(node, m_integers, shapeOf); integers && node.output_size() == 1)
            addIntegers(node.output(0), std::move(*integers));
        const auto version = m_versions.find(node.domain());
        const onnx::OpSchema* schema =
            version == m_versions.end()
                ? nullptr
                : onnx::OpSchemaRegistry::Schema(node.op_type(), version->second, node.domain());
        if (!schema || !schema->has_type_and_shape_inference_function())
            return;
        try {
            onnx::shape_inference::InferenceContextImpl context(node, m_typePointers, m_data, m_sparse);
            schema->GetTypeAndShapeInferenceFunction()(context);
            for (int i = 0; i < node.output_size(); ++i) {
                const onnx::TypeProto& type = *context.getOutputType(static_cast<std::size_t>(i));
                if (node.output(i).empty() || type.value_case() == onnx::TypeProto::VALUE_NOT_SET)
                    continue;
                m_typePointers[node.output(i)] = &(m_types[node.output(i)] = type);
                addValue(m_shapes, node.output(i), type);
            }
        } catch (const std::exception&) {
            return; // its shapes stay unknown, which is noted
        }
    }

    void addIntegers(const std::string& name, OnnxInteger integers) {
        onnx::TensorProto& tensor = m_made.emplace_back();
        tensor.set_name(name);
        tensor.set_data_type(onnx::TensorProto::INT64);
        for (const std::int64_t extent : integers.extents)
            tensor.add_dims(extent);
        for (const std::int64_t value : integers.values)
            tensor.add_int64_data(value);
        m_data[name] = &tensor;
        m_integers[name] = std::move(integers);
    }

    onnx::GraphProto& m_graph;
    OnnxShapes& m_shapes;
    std::unordered_map<std::string, int> m_versions;
    std::unordered_map<std::string, onnx::TypeProto> m_types; // whose nodes stay where they are
    std::unordered_map<std::string, onnx::TypeProto*> m_typePointers;
    std::unordered_map<std::string, const onnx::TensorProto*> m_data;
    std::unordered_map<std::string, const onnx::SparseTensorProto*> m_sparse;
    std::deque<onnx::TensorProto> m_made;
    OnnxIntegers m_integers;
};

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
    adaptToLibrary(graph);
    if (const std::int64_t hidden = hideFromInference(proto); hidden > 0)
        shapes.notes.push_back(fmt::format("{} nodes do not fit their operator or hold subgraphs; their shapes are not "
                                           "inferred",
                                           hidden));
    NodeByNode(proto, shapes).run();
    noteUnknown(shapes, graph);
    return shapes;
}

} // namespace shardscope::planner
