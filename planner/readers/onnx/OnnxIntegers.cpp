// SPDX-License-Identifier: GPL-3.0-or-later
#include "planner/readers/onnx/OnnxIntegers.h"

#include "planner/readers/onnx/OnnxGuards.h"
#include "planner/readers/onnx/OnnxWork.h"

#include <algorithm>
#include <string_view>

namespace shardscope::planner {

namespace {

constexpr std::int64_t kMost = 1024; // elements; shapes have few

using Found = std::optional<OnnxInteger>;

OnnxInteger vectorOf(std::vector<std::int64_t> values) {
    const auto count = static_cast<std::int64_t>(values.size());
    return {{count}, std::move(values)};
}

/// Element by element, the shorter one repeated when it has one element.
template<typename Operation> Found combine(const OnnxInteger& a, const OnnxInteger& b, const Operation& operation) {
    const std::size_t count = std::max(a.values.size(), b.values.size());
    if ((a.values.size() != count && a.values.size() != 1) || (b.values.size() != count && b.values.size() != 1))
        return std::nullopt;
    OnnxInteger result{a.extents.size() >= b.extents.size() ? a.extents : b.extents, {}};
    if (!result.extents.empty())
        result.extents = {static_cast<std::int64_t>(count)};
    for (std::size_t i = 0; i < count; ++i) {
        std::int64_t value = 0;
        if (!operation(a.values[a.values.size() == 1 ? 0 : i], b.values[b.values.size() == 1 ? 0 : i], value))
            return std::nullopt;
        result.values.push_back(value);
    }
    return result;
}

bool divide(std::int64_t a, std::int64_t b, std::int64_t& result) {
    if (b == 0 || (b == -1 && a == INT64_MIN))
        return false;
    result = a / b;
    return true;
}

Found arithmetic(std::string_view type, const OnnxInteger& a, const OnnxInteger& b) {
    if (type == "Add")
        return combine(a, b, [](auto x, auto y, auto& r) { return !__builtin_add_overflow(x, y, &r); });
    if (type == "Sub")
        return combine(a, b, [](auto x, auto y, auto& r) { return !__builtin_sub_overflow(x, y, &r); });
    if (type == "Mul")
        return combine(a, b, [](auto x, auto y, auto& r) { return !__builtin_mul_overflow(x, y, &r); });
    if (type == "Div")
        return combine(a, b, divide);
    if (type == "Equal")
        return combine(a, b, [](auto x, auto y, auto& r) { return r = x == y, true; });
    return std::nullopt;
}

Found gather(const OnnxInteger& data, const OnnxInteger& indices) {
    OnnxInteger result{indices.extents, {}};
    const auto count = static_cast<std::int64_t>(data.values.size());
    for (std::int64_t index : indices.values) {
        index += index < 0 ? count : 0;
        if (data.extents.size() != 1 || index < 0 || index >= count)
            return std::nullopt;
        result.values.push_back(data.values[static_cast<std::size_t>(index)]);
    }
    return result;
}

/// data, starts, ends, axes, steps: of a vector, with steps of one.
Found slice(const std::vector<const OnnxInteger*>& inputs) {
    if (inputs.size() < 3 || inputs[0]->extents.size() != 1 || inputs[1]->values.size() != 1 ||
        inputs[2]->values.size() != 1 || (inputs.size() > 4 && inputs[4]->values != std::vector<std::int64_t>{1}))
        return std::nullopt;
    const auto count = static_cast<std::int64_t>(inputs[0]->values.size());
    const auto place = [&](std::int64_t at) { return std::clamp<std::int64_t>(at < 0 ? at + count : at, 0, count); };
    const std::int64_t begin = place(std::max<std::int64_t>(inputs[1]->values[0], -count));
    const std::int64_t end = place(std::max<std::int64_t>(inputs[2]->values[0], -count));
    const auto& values = inputs[0]->values;
    return vectorOf(begin < end ? std::vector(values.begin() + begin, values.begin() + end)
                                : std::vector<std::int64_t>{});
}

Found range(const OnnxInteger& start, const OnnxInteger& limit, const OnnxInteger& delta) {
    if (start.values.size() != 1 || limit.values.size() != 1 || delta.values != std::vector<std::int64_t>{1} ||
        limit.values[0] < start.values[0] || limit.values[0] > kMost || start.values[0] < -kMost)
        return std::nullopt;
    std::vector<std::int64_t> values;
    for (std::int64_t value = start.values[0]; value < limit.values[0]; ++value)
        values.push_back(value);
    return vectorOf(std::move(values));
}

/// A vector of one value.
Found filled(const onnx::NodeProto& node, const OnnxInteger& shape) {
    if (shape.values.size() != 1 || shape.values[0] < 0 || shape.values[0] > kMost)
        return std::nullopt;
    std::int64_t value = 0;
    for (const auto& attribute : node.attribute()) {
        const Found given = readIntegers(attribute.t());
        if (!given || given->values.size() != 1)
            return std::nullopt; // a tensor of another type
        value = given->values[0];
    }
    return vectorOf(std::vector<std::int64_t>(static_cast<std::size_t>(shape.values[0]), value));
}

} // namespace

Found readIntegers(const onnx::TensorProto& tensor) {
    if (tensor.dims_size() > 1 || !isComplete(tensor) || tensor.data_location() == onnx::TensorProto::EXTERNAL)
        return std::nullopt;
    OnnxInteger integer{{tensor.dims().begin(), tensor.dims().end()}, {}};
    const std::int64_t count = tensor.dims_size() == 0 ? 1 : tensor.dims(0);
    if (count > kMost)
        return std::nullopt;
    const bool wide = tensor.data_type() == onnx::TensorProto::INT64;
    const bool narrow = tensor.data_type() == onnx::TensorProto::INT32;
    if (!wide && !narrow && tensor.data_type() != onnx::TensorProto::BOOL)
        return std::nullopt;
    const std::size_t size = wide ? 8 : narrow ? 4 : 1;
    const std::string& raw = tensor.raw_data();
    for (std::size_t at = 0; at + size <= raw.size(); at += size) {
        std::uint64_t value = 0;
        for (std::size_t byte = size; byte-- > 0;)
            value = value << 8 | static_cast<unsigned char>(raw[at + byte]);
        integer.values.push_back(narrow ? static_cast<std::int32_t>(value) : static_cast<std::int64_t>(value));
    }
    if (wide)
        integer.values.insert(integer.values.end(), tensor.int64_data().begin(), tensor.int64_data().end());
    else
        integer.values.insert(integer.values.end(), tensor.int32_data().begin(), tensor.int32_data().end());
    return static_cast<std::int64_t>(integer.values.size()) == count ? Found(integer) : std::nullopt;
}

Found foldKnown(const onnx::NodeProto& node, const OnnxIntegers& known) {
    const std::string& type = node.op_type();
    if (type == "Constant") {
        for (const auto& attribute : node.attribute()) {
            if (attribute.name() == "value")
                return readIntegers(attribute.t());
            if (attribute.name() == "value_int")
                return OnnxInteger{{}, {attribute.i()}};
            if (attribute.name() == "value_ints" && attribute.ints_size() <= kMost)
                return vectorOf({attribute.ints().begin(), attribute.ints().end()});
        }
        return std::nullopt;
    }
    std::vector<const OnnxInteger*> inputs;
    for (const std::string& name : node.input()) {
        const auto found = known.find(name);
        if (found == known.end())
            return std::nullopt;
        inputs.push_back(&found->second);
    }
    if (inputs.empty())
        return std::nullopt;
    const OnnxInteger& first = *inputs[0];
    if (type == "Identity" || type == "Cast")
        return first;
    if (type == "Unsqueeze")
        return first.extents.empty() ? Found(vectorOf(first.values)) : std::nullopt;
    if (type == "Squeeze")
        return first.values.size() == 1 ? Found(OnnxInteger{{}, first.values}) : std::nullopt;
    if (type == "ConstantOfShape")
        return filled(node, first);
    if (type == "Concat") {
        std::vector<std::int64_t> all;
        for (const OnnxInteger* input : inputs)
            all.insert(all.end(), input->values.begin(), input->values.end());
        return all.size() <= kMost ? Found(vectorOf(std::move(all))) : std::nullopt;
    }
    if (type == "Gather" && inputs.size() == 2)
        return gather(first, *inputs[1]);
    if (type == "Slice")
        return slice(inputs);
    if (type == "Range" && inputs.size() == 3)
        return range(first, *inputs[1], *inputs[2]);
    if (type == "Reshape" && inputs.size() == 2 && inputs[1]->values.size() == 1)
        return vectorOf(first.values);
    if (type == "Where" && inputs.size() == 3 && first.values.size() == inputs[1]->values.size() &&
        first.values.size() == inputs[2]->values.size()) {
        OnnxInteger chosen{first.extents, {}};
        for (std::size_t i = 0; i < first.values.size(); ++i)
            chosen.values.push_back(inputs[first.values[i] != 0 ? 1 : 2]->values[i]);
        return chosen;
    }
    return inputs.size() == 2 ? arithmetic(type, first, *inputs[1]) : std::nullopt;
}

} // namespace shardscope::planner
