// SPDX-License-Identifier: GPL-3.0-or-later
#include "planner/readers/onnx/OnnxFile.h"

#include "planner/readers/RandomAccessFile.h"
#include "planner/readers/onnx/OnnxGuards.h"
#include "runtime/contract/Bytes.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <filesystem>
#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/io/zero_copy_stream_impl.h>
#include <optional>
#include <set>
#include <system_error>
#include <unistd.h>

namespace shardscope::planner {

using contract::badInput;
using contract::Result;
using google::protobuf::io::CodedInputStream;
using google::protobuf::io::CodedOutputStream;
namespace fs = std::filesystem;

namespace {

constexpr std::int64_t kMaximumFileBytes = 0x7fffffff; // protobuf's own limit; more goes into external data
constexpr std::uint32_t kLeftOnDisk = 4096;            // larger elements than this are not read
constexpr std::int64_t kMaximumElements = std::int64_t{1} << 50;

// An empty part of two bytes becomes an object of a few hundred, a number of one byte eight.
constexpr std::int64_t kMaximumParts = 1 << 20;
constexpr std::int64_t kMaximumKeptBytes = 32 << 20;

constexpr std::uint32_t kTensorRawData = 9;
constexpr std::uint32_t kTensorFloatData = 4;
constexpr std::uint32_t kTensorDoubleData = 10;

enum class Message { Model, Graph, Initializer, Node, Attribute, Constant, Value, Type, TensorType, Shape };

/// Fields of onnx.proto. Kept are those that readers look at; inside messages that are listed every part is counted.
struct Field {
    Message inside;
    std::uint32_t number;
    std::optional<Message> message; ///< nothing: its content is not looked at
    enum class Use { Keep, Empty, Drop } use = Use::Keep;
};
const std::array kFields{
    Field{Message::Model, 6, {}, Field::Use::Drop},  // doc_string
    Field{Message::Model, 7, Message::Graph},        //
    Field{Message::Model, 14, {}, Field::Use::Drop}, // metadata_props
    Field{Message::Model, 20, {}, Field::Use::Drop}, // training_info
    Field{Message::Model, 25, {}, Field::Use::Drop}, // functions
    Field{Message::Graph, 1, Message::Node},         //
    Field{Message::Graph, 5, Message::Initializer},  //
    Field{Message::Graph, 10, {}, Field::Use::Drop}, // doc_string
    Field{Message::Graph, 11, Message::Value},       // input
    Field{Message::Graph, 12, Message::Value},       // output
    Field{Message::Graph, 13, {}, Field::Use::Drop}, // value_info: shapes are inferred
    Field{Message::Graph, 14, {}, Field::Use::Drop}, // quantization_annotation
    Field{Message::Graph, 16, {}, Field::Use::Drop}, // metadata_props
    Field{Message::Node, 5, Message::Attribute},     //
    Field{Message::Node, 6, {}, Field::Use::Drop},   // doc_string
    Field{Message::Node, 9, {}, Field::Use::Drop},   // metadata_props
    Field{Message::Attribute, 5, Message::Constant}, // t
    // Subgraphs are not looked into, only that there is one.
    Field{Message::Attribute, 6, {}, Field::Use::Empty},  // g
    Field{Message::Attribute, 10, Message::Constant},     // tensors
    Field{Message::Attribute, 11, {}, Field::Use::Empty}, // graphs
    Field{Message::Attribute, 13, {}, Field::Use::Drop},  // doc_string
    Field{Message::Value, 2, Message::Type},              //
    Field{Message::Value, 3, {}, Field::Use::Drop},       // doc_string
    Field{Message::Type, 1, Message::TensorType},         //
    Field{Message::TensorType, 2, Message::Shape},        //
};

/// Copies a serialised graph without what nobody reads and without the elements of its large initialisers, which may be
/// most of the file, and notes where they lie.
class ElementFilter {
public:
    explicit ElementFilter(CodedInputStream& input) : m_input(input) {}

    /// False when the file is not well formed.
    bool filter(Message kind, std::string& out) {
        while (const std::uint32_t tag = m_input.ReadTag()) {
            if (!copyField(kind, tag, out) || isTooLarge())
                return false;
        }
        return m_input.ConsumedEntireMessage();
    }
    bool isTooLarge() const { return m_parts > kMaximumParts || m_kept > kMaximumKeptBytes; }
    /// By the index of the initialiser.
    const std::unordered_map<std::size_t, OnnxData>& left() const { return m_left; }

private:
    static void append(std::string& out, std::uint32_t value) {
        std::uint8_t bytes[5];
        const std::uint8_t* end = CodedOutputStream::WriteVarint32ToArray(value, bytes);
        out.append(reinterpret_cast<const char*>(bytes), static_cast<std::size_t>(end - bytes));
    }

    bool copyField(Message kind, std::uint32_t tag, std::string& out) {
        const std::uint32_t field = tag >> 3;
        m_kept += sizeof tag;
        switch (tag & 7) {
        case 0: {
            std::uint64_t value = 0;
            if (!m_input.ReadVarint64(&value))
                return false;
            std::uint8_t bytes[10];
            const std::uint8_t* end = CodedOutputStream::WriteVarint64ToArray(value, bytes);
            append(out, tag);
            out.append(reinterpret_cast<const char*>(bytes), static_cast<std::size_t>(end - bytes));
            return true;
        }
        case 1:
        case 5: {
            std::string bytes;
            append(out, tag);
            const bool read = m_input.ReadString(&bytes, (tag & 7) == 1 ? 8 : 4);
            out += bytes;
            return read;
        }
        case 2:
            return copyLengthDelimited(kind, tag, field, out);
        default:
            return false; // groups are not used by ONNX
        }
    }

    bool copyLengthDelimited(Message kind, std::uint32_t tag, std::uint32_t field, std::string& out) {
        std::uint32_t length = 0;
        if (!m_input.ReadVarint32(&length) || length > static_cast<std::uint32_t>(kMaximumFileBytes) ||
            static_cast<int>(length) > m_input.BytesUntilTotalBytesLimit())
            return false;
        const auto* known = std::find_if(kFields.begin(), kFields.end(), [&](const Field& entry) {
            return entry.inside == kind && entry.number == field;
        });
        const Field chosen = known != kFields.end() ? *known : Field{kind, field, {}};
        ++m_parts;
        if (chosen.use != Field::Use::Keep) {
            if (chosen.use == Field::Use::Empty) {
                append(out, tag);
                append(out, 0);
            }
            return m_input.Skip(static_cast<int>(length));
        }
        std::string content;
        if (chosen.message) {
            const auto limit = m_input.PushLimit(static_cast<int>(length));
            const bool read = filter(*chosen.message, content) && m_input.BytesUntilLimit() == 0;
            m_input.PopLimit(limit);
            if (!read)
                return false;
            m_initializer += *chosen.message == Message::Initializer ? 1 : 0;
        } else if (kind == Message::Initializer && length > kLeftOnDisk &&
                   (field == kTensorRawData || field == kTensorFloatData || field == kTensorDoubleData)) {
            m_left[m_initializer] = {{}, m_input.CurrentPosition(), length};
            return m_input.Skip(static_cast<int>(length));
        } else {
            m_kept += length;
            if (isTooLarge() || !m_input.ReadString(&content, static_cast<int>(length)))
                return false;
        }
        append(out, tag);
        append(out, static_cast<std::uint32_t>(content.size()));
        out += content;
        return true;
    }

    CodedInputStream& m_input;
    std::int64_t m_parts = 0;
    std::int64_t m_kept = 0;
    std::size_t m_initializer = 0;
    std::unordered_map<std::size_t, OnnxData> m_left;
};

std::optional<std::int64_t> checkedElements(const onnx::TensorProto& tensor) {
    std::optional<std::int64_t> elements = 1;
    for (const std::int64_t extent : tensor.dims())
        elements = elements && extent >= 0 ? contract::checkedMultiply(*elements, extent) : std::nullopt;
    return elements && *elements <= kMaximumElements ? elements : std::nullopt;
}

/// A path beside the graph: it may name folders below, never above.
bool staysInside(const std::string& location) {
    const fs::path path(location);
    if (location.empty() || location.find('\0') != std::string::npos || path.is_absolute() ||
        location.find('\\') != std::string::npos)
        return false;
    for (const fs::path& part : path) {
        if (part == "..")
            return false;
    }
    return true;
}

/// Whether a link on the way leads out of the folder.
bool resolvesInside(const fs::path& folder, const fs::path& file) {
    std::error_code error;
    const fs::path root = fs::weakly_canonical(folder, error);
    const fs::path target = fs::weakly_canonical(file, error);
    const auto [end, rest] = std::mismatch(root.begin(), root.end(), target.begin(), target.end());
    return !error && end == root.end();
}

/// The elements of a tensor of which none is in the file. `bytes`: what shape and type need.
Result<OnnxData> locateExternal(const onnx::TensorProto& tensor, const std::string& path, std::int64_t bytes,
                                std::set<std::string>& absent) {
    OnnxData data{{}, 0, bytes};
    std::string location;
    const auto wrong = [&](const std::string& what) {
        return badInput(fmt::format("{}: {}: external_data {}", path, tensor.name(), what));
    };
    for (const auto& entry : tensor.external_data()) {
        std::int64_t value = -1;
        const std::string& text = entry.value();
        const auto [end, status] = std::from_chars(text.data(), text.data() + text.size(), value);
        const bool isNumber = status == std::errc() && end == text.data() + text.size() && value >= 0;
        if (entry.key() == "location")
            location = text;
        else if ((entry.key() == "offset" || entry.key() == "length") && !isNumber)
            return wrong(fmt::format("{} is \"{}\"; it must be a number of bytes", entry.key(), text.substr(0, 64)));
        else if (entry.key() == "offset")
            data.offset = value;
        else if (entry.key() == "length" && value != bytes)
            return wrong(fmt::format("length is {}; shape and type need {} bytes", value, bytes));
    }
    const fs::path folder = fs::absolute(path).parent_path();
    if (!staysInside(location) || !resolvesInside(folder, folder / location))
        return wrong(
            fmt::format("location \"{}\" must name a file in the folder of the graph", location.substr(0, 256)));
    data.file = (folder / location).string();
    std::error_code error;
    if (!fs::exists(data.file, error)) {
        absent.insert(location);
        return data;
    }
    const auto file = RandomAccessFile::open(data.file);
    if (!file)
        return tl::unexpected(file.error());
    if (data.offset > file->size() || bytes > file->size() - data.offset)
        return wrong(fmt::format("offset {} and {} bytes go beyond the end of {}", data.offset, bytes, location));
    return data;
}

Result<void> locateElements(OnnxFile& file, const ElementFilter& filter) {
    std::set<std::string> absent;
    std::set<std::string> names;
    std::size_t index = 0;
    for (const onnx::TensorProto& tensor : file.proto.graph().initializer()) {
        const auto wrong = [&](const std::string& what) {
            return badInput(fmt::format("{}: initializer {}: {}", file.path, tensor.name(), what));
        };
        const auto left = filter.left().find(index++);
        if (!names.insert(tensor.name()).second)
            return wrong("is there twice");
        const auto elements = checkedElements(tensor);
        if (!elements)
            return wrong("dims make more elements than any file can hold");
        const std::int64_t size = onnxElementBytes(tensor.data_type());
        const std::int64_t bytes = *elements * size;
        if (tensor.data_location() == onnx::TensorProto::EXTERNAL) {
            const auto data = locateExternal(tensor, file.path, bytes, absent);
            if (!data)
                return tl::unexpected(data.error());
            file.data[tensor.name()] = *data;
            continue;
        }
        const std::int64_t inFile =
            left != filter.left().end() ? left->second.bytes : static_cast<std::int64_t>(tensor.raw_data().size());
        if (inFile == 0 && !isComplete(tensor))
            return wrong(fmt::format("has not the {} elements that dims make", *elements));
        if (inFile == 0)
            continue; // in a typed list, or none
        if (inFile != bytes)
            return wrong(fmt::format("has {} bytes of elements, dims and data_type need {}", inFile, bytes));
        file.data[tensor.name()] =
            left != filter.left().end() ? OnnxData{file.path, left->second.offset, bytes} : OnnxData{{}, 0, bytes};
    }
    for (const std::string& location : absent)
        file.notes.push_back(fmt::format("the external data {} is not there; shapes do not need it", location));
    return {};
}

} // namespace

std::int64_t onnxElementBytes(std::int32_t type) {
    switch (type) {
    case onnx::TensorProto::FLOAT:
    case onnx::TensorProto::INT32:
    case onnx::TensorProto::UINT32:
        return 4;
    case onnx::TensorProto::DOUBLE:
    case onnx::TensorProto::INT64:
    case onnx::TensorProto::UINT64:
    case onnx::TensorProto::COMPLEX64:
        return 8;
    case onnx::TensorProto::FLOAT16:
    case onnx::TensorProto::BFLOAT16:
    case onnx::TensorProto::INT16:
    case onnx::TensorProto::UINT16:
        return 2;
    case onnx::TensorProto::INT8:
    case onnx::TensorProto::UINT8:
    case onnx::TensorProto::BOOL:
        return 1;
    case onnx::TensorProto::COMPLEX128:
        return 16;
    default:
        return 0;
    }
}

std::int64_t onnxElements(const onnx::TensorProto& tensor) {
    return checkedElements(tensor).value_or(0);
}

Result<OnnxFile> openOnnxFile(const std::string& path) {
    const auto opened = RandomAccessFile::open(path);
    if (!opened)
        return tl::unexpected(opened.error());
    if (opened->size() > kMaximumFileBytes)
        return badInput(fmt::format("{}: is {} bytes; an ONNX graph of more than {} keeps its weights in external data",
                                    path, opened->size(), kMaximumFileBytes));
    // The file that was looked at, whatever has taken its name since.
    google::protobuf::io::FileInputStream stream(opened->descriptor());
    CodedInputStream input(&stream);
    // One more than there are: at the limit itself the stream does not tell an end from a cut.
    input.SetTotalBytesLimit(static_cast<int>(std::min(opened->size() + 1, kMaximumFileBytes)));
    ElementFilter filter(input);
    std::string text;
    OnnxFile file;
    file.path = path;
    const bool read = filter.filter(Message::Model, text);
    if (filter.isTooLarge())
        return badInput(fmt::format("{}: graph: has more than {} parts, or more than {} bytes beside its initializers",
                                    path, kMaximumParts, kMaximumKeptBytes));
    if (!read || input.CurrentPosition() != opened->size() || !file.proto.ParseFromString(text))
        return badInput(fmt::format("{}: is not an ONNX graph, or is cut off", path));
    if (!file.proto.has_graph() || file.proto.graph().node_size() == 0)
        return badInput(fmt::format("{}: graph: has no nodes", path));
    if (const auto wrong = findWrongName(file.proto.graph()))
        return badInput(fmt::format("{}: graph.{}", path, *wrong));
    if (file.proto.opset_import_size() == 0)
        return badInput(fmt::format("{}: opset_import: is missing, so the file is cut off; every ONNX graph says the "
                                    "version of its operators",
                                    path));
    if (auto located = locateElements(file, filter); !located)
        return tl::unexpected(located.error());
    return file;
}

} // namespace shardscope::planner
