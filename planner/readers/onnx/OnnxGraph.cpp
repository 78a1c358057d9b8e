// SPDX-License-Identifier: GPL-3.0-or-later
#include "planner/graph/SplitAxes.h"
#include "planner/readers/OnnxReader.h"
#include "planner/readers/onnx/OnnxModules.h"
#include "planner/readers/onnx/OnnxWork.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <memory>
#include <set>

namespace shardscope::planner {

using contract::badInput;
using contract::Operator;
using contract::OperatorKind;
using contract::Result;
using contract::TensorSpec;

namespace {

constexpr int kMaximumNodes = 1 << 20;
constexpr double kMaximumTotal = 0x1p50;

/// Every value is made once and before it is used, so that neither cycles nor two makers exist.
Result<void> checkOrder(const OnnxFile& file) {
    const onnx::GraphProto& graph = file.proto.graph();
    if (graph.node_size() > kMaximumNodes)
        return badInput(
            fmt::format("{}: graph: has {} nodes, more than {}", file.path, graph.node_size(), kMaximumNodes));
    std::unordered_set<std::string> made;
    for (const onnx::TensorProto& tensor : graph.initializer())
        made.insert(tensor.name());
    for (const onnx::SparseTensorProto& tensor : graph.sparse_initializer())
        made.insert(tensor.values().name());
    for (const onnx::ValueInfoProto& input : graph.input())
        made.insert(input.name());
    int index = 0;
    for (const onnx::NodeProto& node : graph.node()) {
        const std::string place = fmt::format("{}: graph.node[{}] {}", file.path, index++, node.name().substr(0, 200));
        for (const std::string& input : node.input()) {
            if (!input.empty() && !made.contains(input))
                return badInput(fmt::format("{}: reads \"{}\", which no node before it makes; the graph has a cycle or "
                                            "is not in order",
                                            place, input.substr(0, 200)));
        }
        for (const std::string& output : node.output()) {
            if (!output.empty() && !made.insert(output).second)
                return badInput(fmt::format("{}: makes \"{}\", which is made already", place, output.substr(0, 200)));
        }
    }
    return {};
}

/// Lowers the nodes of a graph to operators: one for each module that owns parameters, other work charged to the
/// operator before it.
class GraphLowering {
public:
    GraphLowering(const OnnxFile& file, const OnnxConstants& constants, const OnnxShapes& shapes)
        : m_file(file), m_constants(constants), m_shapes(shapes), m_batch(static_cast<double>(shapes.batch)) {}

    std::vector<Operator> build() {
        std::size_t index = 0;
        for (const onnx::NodeProto& node : m_file.proto.graph().node())
            addNode(node, index++);
        for (Operator& op : m_operators)
            alignSplitAxes(op);
        return std::move(m_operators);
    }
    bool tooLarge() const { return m_total > kMaximumTotal; }
    const std::set<std::string>& uncounted() const { return m_uncounted; }
    std::int64_t copiedElements() const { return m_copied; }

private:
    void addNode(const onnx::NodeProto& node, std::size_t index) {
        const bool isFolded = std::all_of(node.output().begin(), node.output().end(),
                                          [&](const std::string& value) { return m_constants.isConstant(value); });
        if (isFolded)
            return;
        if (isView(node)) {
            m_root[node.output(0)] = rootOf(node.input(0));
            return;
        }
        for (int i = 0; i < node.input_size(); ++i) {
            for (const onnx::TensorProto* tensor : m_constants.parameters(node, i))
                addParameter(node, index, i, *tensor);
        }
        const OnnxWork work = workOf(node, m_shapes);
        if (!work.isKnown)
            m_uncounted.insert(node.op_type());
        if (m_operators.empty() && (work.flops > 0 || work.keepsInputs || work.keepsOutput))
            open(moduleOfNode(node, index));
        if (m_operators.empty())
            return; // nothing but moves before the first module
        Operator& op = m_operators.back();
        op.flopsForward += work.flops / m_batch;
        double widest = 0;
        for (const std::string& input : node.input()) {
            const double elements = activationElements(input);
            widest = std::max(widest, elements);
            if (work.keepsInputs)
                keep(op, rootOf(input), elements);
        }
        op.liveActivationElements = std::max(op.liveActivationElements, whole(widest));
        double made = 0;
        for (const std::string& output : node.output())
            made += output.empty() ? 0 : activationElements(output);
        op.liveWideElements = std::max(op.liveWideElements, whole(made));
        if (work.keepsOutput && node.output_size() > 0)
            keep(op, node.output(0), activationElements(node.output(0)));
    }

    std::string rootOf(const std::string& value) const {
        const auto found = m_root.find(value);
        return found == m_root.end() ? value : found->second;
    }
    /// Elements of a sample; 0 for constants, indices and unknown shapes.
    double activationElements(const std::string& value) const {
        const OnnxShape* shape = m_constants.isConstant(value) ? nullptr : m_shapes.find(value);
        return shape && shape->isFloat ? shape->elements() / m_batch : 0;
    }
    std::int64_t whole(double elements) const {
        return elements <= kMaximumTotal ? static_cast<std::int64_t>(std::ceil(elements)) : 0;
    }
    void keep(Operator& op, const std::string& value, double elements) {
        if (elements <= 0 || !m_kept.insert(value).second)
            return;
        m_total += elements;
        const bool first = op.kept.empty();
        const std::string name = first ? "input" : fmt::format("kept.{}", op.kept.size());
        op.kept.push_back({name, whole(elements), false, first && m_blockStarts});
        m_blockStarts = m_blockStarts && !first;
    }

    void addParameter(const onnx::NodeProto& node, std::size_t index, int input, const onnx::TensorProto& tensor) {
        const std::string byNode = moduleOfNode(node, index);
        const std::string byName = moduleOfInitializer(tensor.name());
        const std::string module = byName.empty() ? byNode : byName;
        if (const auto owner = m_owner.find(tensor.name()); owner != m_owner.end()) {
            // The same weight in another module is tied; the same module again (a reused layer) is not.
            const bool isPath = !node.name().empty() && node.name().front() == '/';
            const std::string again = isPath && byNode != owner->second ? byNode : std::string();
            if (isMatrix(tensor) && (!again.empty() || !isPath))
                addTied(again.empty() ? fmt::format("{}.tied_{}", owner->second, index) : again, tensor, owner->second);
            return;
        }
        if (isMatrix(tensor)) {
            for (const onnx::TensorProto* table : m_tables) {
                if (!isStoredAgain(m_file, *table, tensor))
                    continue;
                m_copied += onnxElements(tensor);
                m_owner.emplace(tensor.name(), m_owner.at(table->name()));
                addTied(byName.empty() ? byNode : byName, tensor, m_owner.at(table->name()));
                return;
            }
        }
        if (node.op_type() == "Gather")
            m_tables.push_back(&tensor);
        m_owner.emplace(tensor.name(), module);
        Operator& op = open(module);
        TensorSpec spec = specOf(node, input, tensor);
        m_total += static_cast<double>(spec.elements());
        const bool isWeight = spec.shape.size() > 1 && op.tensors.empty();
        op.tensors.push_back(std::move(spec));
        if (isWeight || op.tensors.size() == 1)
            op.kind = kindOf(node, op.tensors.back());
    }

    static bool isMatrix(const onnx::TensorProto& tensor) { return tensor.dims_size() == 2; }

    static OperatorKind kindOf(const onnx::NodeProto& node, const TensorSpec& spec) {
        const std::string& type = node.op_type();
        if (type == "Gather")
            return OperatorKind::Embedding;
        if (type.ends_with("Normalization") || (type == "Mul" && spec.shape.size() == 1))
            return OperatorKind::Norm;
        if (type == "MatMul" || type == "Gemm" || type.starts_with("Conv"))
            return OperatorKind::Linear;
        return OperatorKind::Other;
    }

    /// The split axis is that of the output features.
    TensorSpec specOf(const onnx::NodeProto& node, int input, const onnx::TensorProto& tensor) const {
        TensorSpec spec;
        const auto dot = tensor.name().rfind('.');
        const bool madeUp = moduleOfInitializer(tensor.name()).empty();
        spec.name = madeUp ? (tensor.dims_size() > 1 ? "weight" : "bias") : tensor.name().substr(dot + 1);
        spec.shape.assign(tensor.dims().begin(), tensor.dims().end());
        const std::int64_t elements = onnxElements(tensor);
        // (in, out), unless the graph transposes the stored weight itself.
        const bool transposedByNode =
            m_constants.initializer(node.input(input)) == &tensor && node.input(input) != tensor.name();
        const bool outputsLast =
            spec.shape.size() == 2 && ((node.op_type() == "MatMul" && !transposedByNode) ||
                                       (node.op_type() == "Gemm" && onnxAttribute(node, "transB", 0) == 0));
        spec.rows = spec.shape.empty() ? 1 : outputsLast ? spec.shape[1] : spec.shape[0];
        spec.columns = spec.rows > 0 ? elements / spec.rows : 0;
        return spec;
    }

    /// The operator of a module: the last one, or one that was opened before, or a new one.
    Operator& open(const std::string& module) {
        if (!m_operators.empty() && m_operators.back().name == module)
            return m_operators.back();
        if (const auto found = m_index.find(module); found != m_index.end())
            return m_operators[found->second];
        Operator op;
        op.name = module;
        const std::string block = blockOf(module);
        if (block != m_blockName || (block.empty() != (m_block < 0))) {
            m_blockName = block;
            m_block = block.empty() ? -1 : m_blocks++;
            m_blockStarts = m_block >= 0;
        }
        op.block = m_block;
        op.blockName = m_block >= 0 ? block : std::string();
        m_index.emplace(module, m_operators.size());
        m_operators.push_back(std::move(op));
        return m_operators.back();
    }

    void addTied(const std::string& module, const onnx::TensorProto& tensor, const std::string& owner) {
        if (m_index.contains(module))
            return;
        Operator& first = m_operators[m_index.at(owner)];
        if (first.tensors.empty())
            return;
        first.sharedStorage = true;
        const TensorSpec spec = first.tensors.front();
        Operator& op = open(module);
        op.kind = OperatorKind::Linear;
        op.tiedTo = owner;
        op.tensors = {spec};
        op.tensors.front().shape.assign(tensor.dims().begin(), tensor.dims().end());
    }

    const OnnxFile& m_file;
    const OnnxConstants& m_constants;
    const OnnxShapes& m_shapes;
    double m_batch;
    double m_total = 0;
    std::int64_t m_copied = 0;
    std::vector<Operator> m_operators;
    std::unordered_map<std::string, std::size_t> m_index; ///< of m_operators, by module
    std::unordered_map<std::string, std::string> m_owner; ///< module, by initialiser
    std::vector<const onnx::TensorProto*> m_tables;       ///< embeddings, which heads are tied to
    std::unordered_map<std::string, std::string> m_root;  ///< the value whose elements a view shares
    std::unordered_set<std::string> m_kept;
    std::set<std::string> m_uncounted;
    std::int32_t m_block = -1;
    std::int32_t m_blocks = 0;
    std::string m_blockName;
    bool m_blockStarts = false;
};

struct Opened {
    OnnxFile file;
    std::unique_ptr<OnnxConstants> constants;
};

Result<std::vector<Operator>> lower(const Opened& opened, const OnnxShapes& shapes, std::int64_t* copied,
                                    std::vector<std::string>* notes) {
    GraphLowering lowering(opened.file, *opened.constants, shapes);
    std::vector<Operator> operators = lowering.build();
    if (lowering.tooLarge())
        return badInput(
            fmt::format("{}: graph: its shapes make a network that is too large to plan", opened.file.path));
    if (operators.empty())
        return badInput(fmt::format("{}: graph: nothing in it is computed from its inputs", opened.file.path));
    if (notes && !lowering.uncounted().empty()) {
        std::string list;
        for (const std::string& type : lowering.uncounted())
            list += (list.empty() ? "" : ", ") + type;
        notes->push_back(fmt::format("the work of {} is not counted", list));
    }
    if (copied)
        *copied = lowering.copiedElements();
    return operators;
}

/// What the file holds, constants included.
StoredWeights summarize(const OnnxFile& file, const std::vector<Operator>& operators, std::int64_t copied) {
    StoredWeights stored;
    stored.source = file.path;
    std::set<std::string> files;
    for (const onnx::TensorProto& tensor : file.proto.graph().initializer()) {
        const std::int64_t elements = onnxElements(tensor);
        stored.elements += elements;
        stored.bytes += elements * onnxElementBytes(tensor.data_type());
        stored.elementsByDtype[onnx::TensorProto_DataType_Name(
            static_cast<onnx::TensorProto_DataType>(tensor.data_type()))] += elements;
    }
    for (const auto& [name, data] : file.data)
        files.insert(data.file.empty() ? file.path : data.file);
    stored.files = std::max<std::int64_t>(1, static_cast<std::int64_t>(files.size()));
    stored.copiedElements = copied;
    stored.bufferElements = stored.elements - copied;
    for (const Operator& op : operators)
        stored.bufferElements -= op.parameters();
    return stored;
}

} // namespace

Result<GraphPointer> readOnnx(const std::string& path, const std::string& name, std::int64_t sequence) {
    auto file = openOnnxFile(path);
    if (!file)
        return tl::unexpected(file.error());
    if (auto ordered = checkOrder(*file); !ordered)
        return tl::unexpected(ordered.error());
    const auto opened = std::make_shared<Opened>(Opened{std::move(*file), nullptr});
    opened->constants = std::make_unique<OnnxConstants>(opened->file);
    const auto shapes = inferShapes(opened->file, sequence);
    if (!shapes)
        return tl::unexpected(shapes.error());
    if (sequence != 0 && sequence != shapes->sequence)
        return badInput(fmt::format("{}: a sequence of {} tokens is not possible; the graph was exported for {}", path,
                                    sequence, shapes->sequence));
    auto graph = std::make_shared<Graph>();
    graph->warnings = opened->file.notes;
    std::int64_t copied = 0;
    auto operators = lower(*opened, *shapes, &copied, &graph->warnings);
    if (!operators)
        return tl::unexpected(operators.error());
    graph->name = name;
    graph->title = name;
    graph->family = "onnx";
    graph->source = path;
    graph->sequence = shapes->sequence;
    graph->maximumSequence = shapes->symbolicSequence ? 0 : shapes->sequence;
    graph->operators = std::move(*operators);
    graph->weights = summarize(opened->file, graph->operators, copied);
    graph->warnings.insert(graph->warnings.end(), shapes->notes.begin(), shapes->notes.end());
    if (shapes->batch > 1)
        graph->warnings.push_back(fmt::format("exported for {} samples; sizes here are those of one", shapes->batch));
    if (shapes->symbolicSequence)
        graph->lower = [opened](std::int64_t other) -> Result<std::vector<Operator>> {
            const auto changed = inferShapes(opened->file, other);
            if (!changed)
                return tl::unexpected(changed.error());
            return lower(*opened, *changed, nullptr, nullptr);
        };
    return GraphPointer(std::move(graph));
}

} // namespace shardscope::planner
