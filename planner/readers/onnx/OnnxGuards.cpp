// SPDX-License-Identifier: GPL-3.0-or-later
#include "planner/readers/onnx/OnnxGuards.h"

#include "planner/readers/onnx/OnnxFile.h"
#include "runtime/contract/Utf8.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <exception>
#include <map>
#include <onnx/defs/schema.h>
#include <string>
#include <string_view>

namespace shardscope::planner {

namespace {

constexpr const char* kHiddenDomain = "shardscope.hidden";

/// Attributes that the library divides by.
bool mustBePositive(std::string_view name) {
    constexpr std::array kNames{std::string_view("strides"),      std::string_view("dilations"),
                                std::string_view("kernel_shape"), std::string_view("group"),
                                std::string_view("blocksize"),    std::string_view("hidden_size"),
                                std::string_view("num_outputs")};
    return std::find(kNames.begin(), kNames.end(), name) != kNames.end();
}

bool isSound(const onnx::AttributeProto& attribute) {
    if (attribute.has_g() || attribute.graphs_size() > 0)
        return false;
    if (attribute.has_t() && !isComplete(attribute.t()))
        return false;
    if (!mustBePositive(attribute.name()))
        return true;
    const auto positive = [](std::int64_t value) { return value > 0; };
    return (attribute.ints_size() > 0 || positive(attribute.i())) &&
           std::all_of(attribute.ints().begin(), attribute.ints().end(), positive);
}

bool isSound(const onnx::NodeProto& node, const std::map<std::string, int>& versions) {
    if (!std::all_of(node.attribute().begin(), node.attribute().end(),
                     [](const onnx::AttributeProto& attribute) { return isSound(attribute); }))
        return false;
    const auto version = versions.find(node.domain());
    if (version == versions.end())
        return true; // which the library passes over
    const onnx::OpSchema* schema = onnx::OpSchemaRegistry::Schema(node.op_type(), version->second, node.domain());
    if (!schema)
        return true;
    try {
        schema->Verify(node);
        return true;
    } catch (const std::exception&) {
        return false;
    }
}

} // namespace

bool isComplete(const onnx::TensorProto& tensor) {
    std::int64_t elements = 1;
    for (const std::int64_t extent : tensor.dims()) {
        constexpr std::int64_t kMost = std::int64_t{1} << 40;
        if (extent < 0 || (extent > 0 && elements > kMost / extent))
            return false;
        elements *= extent;
    }
    const std::int64_t size = onnxElementBytes(tensor.data_type());
    if (tensor.has_raw_data())
        return size > 0 && static_cast<std::int64_t>(tensor.raw_data().size()) == elements * size;
    // Each list serves several types; a tensor uses one of them.
    const std::int64_t listed =
        std::max({tensor.float_data_size(), tensor.int32_data_size(), tensor.int64_data_size(),
                  tensor.double_data_size(), tensor.uint64_data_size(), tensor.string_data_size()});
    return listed == elements;
}

std::optional<std::string> findWrongName(const onnx::GraphProto& graph) {
    std::optional<std::string> wrong;
    const auto check = [&](const std::string& name, const auto& place) {
        constexpr std::size_t kLongest = 4096;
        if (wrong || (name.size() <= kLongest && contract::isUtf8(name)))
            return;
        wrong = place() + (name.size() > kLongest ? fmt::format(": has {} bytes, more than {}", name.size(), kLongest)
                                                  : ": is not valid UTF-8, as names in ONNX graphs are");
    };
    const auto checkAll = [&](const auto& names, int node, const char* what) {
        for (int i = 0; i < names.size(); ++i)
            check(names.Get(i), [&] { return fmt::format("node[{}].{}[{}]", node, what, i); });
    };
    const auto checkValues = [&](const auto& values, const char* what) {
        for (int i = 0; i < values.size(); ++i)
            check(values.Get(i).name(), [&] { return fmt::format("{}[{}].name", what, i); });
    };
    for (int i = 0; i < graph.node_size() && !wrong; ++i) {
        const onnx::NodeProto& node = graph.node(i);
        const auto place = [i](const char* what) { return [i, what] { return fmt::format("node[{}].{}", i, what); }; };
        check(node.name(), place("name"));
        check(node.op_type(), place("op_type"));
        check(node.domain(), place("domain"));
        checkAll(node.input(), i, "input");
        checkAll(node.output(), i, "output");
    }
    checkValues(graph.initializer(), "initializer");
    checkValues(graph.input(), "input");
    checkValues(graph.output(), "output");
    return wrong;
}

std::int64_t hideFromInference(onnx::ModelProto& proto) {
    proto.clear_functions();
    proto.clear_training_info();
    onnx::GraphProto& graph = *proto.mutable_graph();
    graph.clear_sparse_initializer();
    std::map<std::string, int> versions;
    for (const auto& import : proto.opset_import()) {
        constexpr std::int64_t kLatest = 1000;
        versions[import.domain()] = static_cast<int>(std::clamp<std::int64_t>(import.version(), 1, kLatest));
    }
    // What is not here cannot be read: the library is told so instead of finding an empty list.
    for (onnx::TensorProto& tensor : *graph.mutable_initializer()) {
        if (!isComplete(tensor))
            tensor.set_data_location(onnx::TensorProto::EXTERNAL);
    }
    std::int64_t hidden = 0;
    for (onnx::NodeProto& node : *graph.mutable_node()) {
        if (isSound(node, versions))
            continue;
        node.set_domain(kHiddenDomain);
        node.clear_attribute();
        ++hidden;
    }
    return hidden;
}

} // namespace shardscope::planner
