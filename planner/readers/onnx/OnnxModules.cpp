// SPDX-License-Identifier: GPL-3.0-or-later
#include "planner/readers/onnx/OnnxModules.h"

#include "planner/readers/RandomAccessFile.h"
#include "planner/readers/onnx/OnnxWork.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <optional>

namespace shardscope::planner {

namespace {

bool isFloat(const onnx::TensorProto& tensor) {
    return tensor.data_type() == onnx::TensorProto::FLOAT || tensor.data_type() == onnx::TensorProto::FLOAT16 ||
           tensor.data_type() == onnx::TensorProto::BFLOAT16 || tensor.data_type() == onnx::TensorProto::DOUBLE;
}

/// Additive masks are exported as (1, 1, n, n); learned positions have fewer axes.
bool looksLikeMask(const onnx::TensorProto& tensor) {
    return tensor.dims_size() >= 4 && tensor.dims(0) == 1 && tensor.dims(1) == 1;
}

/// A wrapper around a network adds one more of these.
std::string withoutPrefix(std::string name) {
    constexpr std::array kPrefixes{std::string_view("transformer."), std::string_view("model.")};
    for (bool found = true; found;) {
        found = false;
        for (const std::string_view prefix : kPrefixes) {
            if (!name.starts_with(prefix))
                continue;
            name.erase(0, prefix.size());
            found = true;
        }
    }
    return name;
}

} // namespace

OnnxConstants::OnnxConstants(const OnnxFile& file) {
    for (const onnx::TensorProto& tensor : file.proto.graph().initializer()) {
        m_initializer.emplace(tensor.name(), &tensor);
        m_constant.insert(tensor.name());
    }
    for (const onnx::NodeProto& node : file.proto.graph().node()) {
        const bool constant = std::all_of(node.input().begin(), node.input().end(), [&](const std::string& input) {
            return input.empty() || m_constant.contains(input);
        });
        // Random values and subgraphs depend on more than their inputs.
        if (!constant || node.op_type().starts_with("Random") || node.op_type() == "If" || node.op_type() == "Loop")
            continue;
        // What is computed from weights alone, as the sum of learned positions is, changes with them.
        // Parts of a recurrent layer's weights are only moved.
        bool fromWeights = false;
        for (int i = 0; i < node.input_size() && node.op_type() != "Concat"; ++i)
            fromWeights = fromWeights || parameter(node, i);
        if (fromWeights)
            continue;
        m_constant.insert(node.output().begin(), node.output().end());
        const bool passesOn = isView(node) || node.op_type() == "DequantizeLinear";
        addSources(node);
        if (const onnx::TensorProto* source = passesOn ? initializer(node.input(0)) : nullptr)
            m_initializer.emplace(node.output(0), source);
    }
}

void OnnxConstants::addSources(const onnx::NodeProto& node) {
    constexpr std::size_t kMost = 64;
    if (node.op_type() != "Slice" && node.op_type() != "Concat" && !isView(node))
        return;
    std::vector<const onnx::TensorProto*> all; // each once, in the order of the graph
    const auto add = [&](const onnx::TensorProto* tensor) {
        if (std::find(all.begin(), all.end(), tensor) == all.end())
            all.push_back(tensor);
    };
    for (const std::string& input : node.input()) {
        if (const auto parts = m_sources.find(input); parts != m_sources.end())
            std::for_each(parts->second.begin(), parts->second.end(), add);
        else if (const onnx::TensorProto* tensor = initializer(input); tensor && isFloat(*tensor))
            add(tensor);
    }
    if (!all.empty() && all.size() <= kMost)
        m_sources.emplace(node.output(0), std::move(all));
}

std::vector<const onnx::TensorProto*> OnnxConstants::parameters(const onnx::NodeProto& node, int index) const {
    const bool isRecurrent = node.op_type() == "LSTM" || node.op_type() == "GRU" || node.op_type() == "RNN";
    if (const auto parts = m_sources.find(node.input(index));
        isRecurrent && index >= 1 && index <= 3 && parts != m_sources.end())
        return parts->second;
    const onnx::TensorProto* one = parameter(node, index);
    return one ? std::vector{one} : std::vector<const onnx::TensorProto*>{};
}

const onnx::TensorProto* OnnxConstants::initializer(const std::string& value) const {
    const auto found = m_initializer.find(value);
    return found == m_initializer.end() ? nullptr : found->second;
}

const onnx::TensorProto* OnnxConstants::parameter(const onnx::NodeProto& node, int index) const {
    const onnx::TensorProto* tensor = initializer(node.input(index));
    if (!tensor || !isFloat(*tensor) || isView(node))
        return nullptr;
    const std::string& type = node.op_type();
    if (type == "BatchNormalization")
        return index == 1 || index == 2 ? tensor : nullptr; // 3 and 4 are running statistics
    if (type == "Gather")
        return index == 0 && tensor->dims_size() == 2 ? tensor : nullptr;
    constexpr std::array kWeighted{std::string_view("MatMul"),
                                   std::string_view("Gemm"),
                                   std::string_view("Conv"),
                                   std::string_view("ConvTranspose"),
                                   std::string_view("LSTM"),
                                   std::string_view("GRU"),
                                   std::string_view("RNN"),
                                   std::string_view("Einsum"),
                                   std::string_view("PRelu"),
                                   std::string_view("LayerNormalization"),
                                   std::string_view("SimplifiedLayerNormalization"),
                                   std::string_view("RMSNormalization"),
                                   std::string_view("InstanceNormalization"),
                                   std::string_view("GroupNormalization")};
    if (std::find(kWeighted.begin(), kWeighted.end(), type) != kWeighted.end())
        return onnxElements(*tensor) > 1 || type == "PRelu" ? tensor : nullptr;
    // Biases, scales of decomposed norms, class tokens and learned positions.
    const bool added = type == "Add" || type == "Mul" || type == "Concat" || type == "Expand" || type == "BiasGelu";
    return added && onnxElements(*tensor) > 1 && !looksLikeMask(*tensor) ? tensor : nullptr;
}

std::string moduleOfNode(const onnx::NodeProto& node, std::size_t index) {
    const std::string& name = node.name();
    if (name.empty())
        return node.op_type() + "_" + std::to_string(index);
    if (name.front() != '/')
        return name;
    std::string path = name.substr(1, std::max<std::size_t>(name.rfind('/'), 1) - 1);
    std::replace(path.begin(), path.end(), '/', '.');
    return path.empty() ? name.substr(1) : withoutPrefix(path);
}

std::string moduleOfInitializer(std::string_view name) {
    const auto dot = name.rfind('.');
    if (name.find("::") != std::string_view::npos || dot == std::string_view::npos || dot == 0)
        return {};
    return withoutPrefix(std::string(name.substr(0, dot)));
}

namespace {

/// Reads single elements, wherever they lie.
class ElementReader {
public:
    ElementReader(const OnnxFile& file, const onnx::TensorProto& tensor)
        : m_tensor(tensor), m_size(static_cast<std::size_t>(onnxElementBytes(tensor.data_type()))) {
        const auto found = file.data.find(tensor.name());
        if (found == file.data.end())
            return;
        m_offset = found->second.offset;
        if (found->second.file.empty()) {
            m_inline = true;
        } else if (auto opened = RandomAccessFile::open(found->second.file)) {
            m_file.emplace(std::move(*opened));
        }
    }
    bool read(std::int64_t index, std::array<char, 16>& bytes) const {
        const auto offset = static_cast<std::size_t>(index) * m_size;
        if (m_inline && offset + m_size <= m_tensor.raw_data().size()) {
            std::memcpy(bytes.data(), m_tensor.raw_data().data() + offset, m_size);
            return true;
        }
        return m_file && m_file->read(m_offset + static_cast<std::int64_t>(offset), bytes.data(), m_size);
    }

private:
    const onnx::TensorProto& m_tensor;
    std::size_t m_size;
    bool m_inline = false;
    std::int64_t m_offset = 0;
    std::optional<RandomAccessFile> m_file;
};

} // namespace

bool isStoredAgain(const OnnxFile& file, const onnx::TensorProto& owner, const onnx::TensorProto& copy) {
    if (owner.data_type() != copy.data_type() || owner.dims_size() != 2 || copy.dims_size() != 2)
        return false;
    const std::int64_t rows = owner.dims(0);
    const std::int64_t columns = owner.dims(1);
    const bool same = copy.dims(0) == rows && copy.dims(1) == columns;
    const bool transposed = copy.dims(0) == columns && copy.dims(1) == rows;
    if ((!same && !transposed) || rows == 0 || columns == 0)
        return false;
    const ElementReader first(file, owner);
    const ElementReader second(file, copy);
    const auto agree = [&](bool swapped) {
        constexpr std::int64_t kLooks = 256;
        const std::int64_t all = rows * columns;
        const std::int64_t step = std::max<std::int64_t>(1, all / kLooks);
        for (std::int64_t index = 0; index < all; index += step) {
            std::array<char, 16> a{}, b{};
            const std::int64_t other = swapped ? index % columns * rows + index / columns : index;
            if (!first.read(index, a) || !second.read(other, b) || a != b)
                return false;
        }
        return true;
    };
    return (same && agree(false)) || (transposed && agree(true));
}

} // namespace shardscope::planner
