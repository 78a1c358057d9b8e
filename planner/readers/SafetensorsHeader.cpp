// SPDX-License-Identifier: GPL-3.0-or-later
#include "planner/readers/SafetensorsHeader.h"

#include "planner/readers/RandomAccessFile.h"
#include "runtime/contract/Bytes.h"
#include "runtime/contract/Json.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>
#include <cstring>
#include <optional>
#include <unordered_set>

namespace shardscope::planner {

using contract::badInput;
using contract::Result;

namespace {

constexpr std::int64_t kLengthBytes = 8;
constexpr std::int64_t kMaximumHeaderBytes = 100'000'000; // the format's own limit
constexpr std::size_t kMaximumRank = 16;
constexpr std::size_t kMaximumNameLength = 1024;
constexpr std::int64_t kMaximumElements = std::int64_t{1} << 50;

struct Dtype {
    std::string_view name;
    int bits;
    bool isInteger;
};
constexpr std::array kDtypes{
    Dtype{"F64", 64, false},    Dtype{"F32", 32, false},    Dtype{"F16", 16, false},    Dtype{"BF16", 16, false},
    Dtype{"F8_E5M2", 8, false}, Dtype{"F8_E4M3", 8, false}, Dtype{"F8_E8M0", 8, false}, Dtype{"F4", 4, false},
    Dtype{"F6_E2M3", 6, false}, Dtype{"F6_E3M2", 6, false}, Dtype{"C64", 64, false},    Dtype{"I64", 64, true},
    Dtype{"I32", 32, true},     Dtype{"I16", 16, true},     Dtype{"I8", 8, true},       Dtype{"U64", 64, true},
    Dtype{"U32", 32, true},     Dtype{"U16", 16, true},     Dtype{"U8", 8, true},       Dtype{"BOOL", 8, true},
};

const Dtype* findDtype(std::string_view name) {
    for (const Dtype& dtype : kDtypes) {
        if (dtype.name == name)
            return &dtype;
    }
    return nullptr;
}

/// Reads a header event by event, so that memory stays in proportion to what a right header holds: the first thing out
/// of place ends the reading.
class HeaderHandler : public nlohmann::json_sax<contract::Json> {
public:
    bool null() override { return unexpected("null"); }
    bool boolean(bool) override { return unexpected("a truth value"); }
    bool number_float(number_float_t, const string_t& text) override { return unexpected(text.c_str()); }
    bool binary(binary_t&) override { return unexpected("binary data"); }
    bool number_integer(number_integer_t value) override {
        return unexpected(std::to_string(value).c_str()); // only negative ones come here
    }
    bool number_unsigned(number_unsigned_t value) override {
        if (value > static_cast<std::uint64_t>(kMaximumElements))
            return fail(fmt::format("{}: {} has {}, more than any tensor here", m_tensor.name, m_key, value));
        if (m_depth != 3)
            return unexpected("a number");
        std::vector<std::int64_t>& list = m_key == "shape" ? m_tensor.shape : m_offsets;
        if (list.size() >= (m_key == "shape" ? kMaximumRank : 2))
            return fail(fmt::format("{}: {} has more than {} numbers", m_tensor.name, m_key, list.size()));
        list.push_back(static_cast<std::int64_t>(value));
        return true;
    }
    bool string(string_t& value) override {
        if (m_depth != 2 || (!m_inMetadata && m_key != "dtype"))
            return unexpected("text");
        if (!m_inMetadata)
            m_tensor.dtype = value.substr(0, 32);
        return true;
    }
    bool start_object(std::size_t) override {
        if (m_depth > 1)
            return unexpected("an object");
        ++m_depth;
        m_seen = 0;
        return true;
    }
    bool key(string_t& key) override {
        if (m_depth == 1) {
            if (key.size() > kMaximumNameLength)
                return fail(fmt::format("has a name of {} characters", key.size()));
            m_inMetadata = key == "__metadata__";
            m_tensor = {};
            m_offsets.clear();
            m_tensor.name = key;
            return m_names.insert(key).second || fail(fmt::format("has \"{}\" twice", key));
        }
        if (m_inMetadata)
            return true;
        m_key = key;
        const int bit = key == "dtype" ? 1 : key == "shape" ? 2 : key == "data_offsets" ? 4 : 0;
        if (bit == 0)
            return fail(fmt::format("{}: has \"{}\"; a tensor has dtype, shape and data_offsets", m_tensor.name,
                                    key.substr(0, 64)));
        if ((m_seen & bit) != 0)
            return fail(fmt::format("{}: has {} twice", m_tensor.name, key));
        m_seen |= bit;
        return true;
    }
    bool end_object() override {
        --m_depth;
        if (m_depth != 1 || m_inMetadata)
            return true;
        if (m_seen != 7 || m_offsets.size() != 2)
            return fail(fmt::format("{}: {} is missing or not complete", m_tensor.name,
                                    (m_seen & 1) == 0   ? "dtype"
                                    : (m_seen & 2) == 0 ? "shape"
                                                        : "data_offsets"));
        m_tensor.begin = m_offsets[0];
        m_tensor.end = m_offsets[1];
        m_tensors.push_back(std::move(m_tensor));
        return true;
    }
    bool start_array(std::size_t) override {
        if (m_depth != 2 || m_inMetadata || m_key == "dtype")
            return unexpected("an array");
        ++m_depth;
        return true;
    }
    bool end_array() override {
        --m_depth;
        return true;
    }
    bool parse_error(std::size_t position, const std::string&, const nlohmann::detail::exception&) override {
        return fail(fmt::format("the header is not valid JSON at byte {}", position));
    }

    const std::string& message() const { return m_message; }
    std::vector<StoredTensor> take() { return std::move(m_tensors); }

private:
    bool fail(std::string message) {
        if (m_message.empty())
            m_message = std::move(message);
        return false;
    }
    bool unexpected(const char* what) {
        const std::string place = m_depth == 0 ? "the header" : m_tensor.name + (m_depth > 1 ? ": " + m_key : "");
        return fail(fmt::format("{}: {} is out of place", place.substr(0, 256), what));
    }

    int m_depth = 0; ///< 1 in the header, 2 in a tensor, 3 in one of its lists
    bool m_inMetadata = false;
    int m_seen = 0;
    std::string m_key;
    StoredTensor m_tensor;
    std::vector<std::int64_t> m_offsets;
    std::unordered_set<std::string> m_names;
    std::vector<StoredTensor> m_tensors;
    std::string m_message;
};

/// Elements and bytes of a tensor against its offsets; what is wrong, or nothing.
std::optional<std::string> checkTensor(StoredTensor& tensor, std::int64_t dataBytes) {
    const Dtype* dtype = findDtype(tensor.dtype);
    if (!dtype)
        return fmt::format("dtype is \"{}\", which this version does not know", tensor.dtype);
    std::optional<std::int64_t> elements = 1;
    for (const std::int64_t extent : tensor.shape)
        elements = elements ? contract::checkedMultiply(*elements, extent) : std::nullopt;
    const auto bits = elements ? contract::checkedMultiply(*elements, dtype->bits) : std::nullopt;
    if (!bits || *elements > kMaximumElements)
        return "shape has more elements than any file can hold";
    if (tensor.begin > tensor.end || tensor.end > dataBytes)
        return fmt::format("data_offsets {} to {} are outside the {} bytes of data", tensor.begin, tensor.end,
                           dataBytes);
    if (contract::ceilDivide(*bits, 8) != tensor.end - tensor.begin)
        return fmt::format("data_offsets hold {} bytes, shape and dtype need {}", tensor.end - tensor.begin,
                           contract::ceilDivide(*bits, 8));
    tensor.elements = *elements;
    return std::nullopt;
}

} // namespace

int dtypeBits(std::string_view dtype) {
    const Dtype* known = findDtype(dtype);
    return known ? known->bits : 0;
}

bool isIntegerDtype(std::string_view dtype) {
    const Dtype* known = findDtype(dtype);
    return known && known->isInteger;
}

Result<std::vector<StoredTensor>> parseSafetensorsHeader(std::string_view header, std::int64_t dataBytes,
                                                         const std::string& file) {
    HeaderHandler handler;
    if (header.empty() || header.front() != '{')
        return badInput(fmt::format("{}: the header must begin with {{, as safetensors headers do", file));
    const bool parsed = contract::Json::sax_parse(header, &handler);
    if (!parsed || !handler.message().empty())
        return badInput(fmt::format("{}: {}", file, handler.message()));
    std::vector<StoredTensor> tensors = handler.take();
    std::sort(tensors.begin(), tensors.end(), [](const StoredTensor& a, const StoredTensor& b) {
        return std::pair(a.begin, a.end) < std::pair(b.begin, b.end);
    });
    std::int64_t end = 0;
    for (StoredTensor& tensor : tensors) {
        if (const auto wrong = checkTensor(tensor, dataBytes))
            return badInput(fmt::format("{}: {}: {}", file, tensor.name, *wrong));
        if (tensor.begin != end)
            return badInput(fmt::format(
                "{}: {}: data_offsets begin at {}, {} {}", file, tensor.name, tensor.begin,
                tensor.begin < end ? "inside the tensor before, which ends at" : "after a hole that begins at", end));
        end = tensor.end;
    }
    if (end != dataBytes)
        return badInput(fmt::format("{}: its tensors end at byte {} of {} bytes of data", file, end, dataBytes));
    return tensors;
}

Result<std::vector<StoredTensor>> readSafetensorsHeader(const std::string& path) {
    const auto file = RandomAccessFile::open(path);
    if (!file)
        return tl::unexpected(file.error());
    std::array<char, kLengthBytes> lengthBytes{};
    if (file->size() < kLengthBytes || !file->read(0, lengthBytes.data(), lengthBytes.size()))
        return badInput(fmt::format("{}: is too short for a safetensors file, which begins with the length of its "
                                    "header",
                                    path));
    std::uint64_t length = 0;
    for (std::size_t i = lengthBytes.size(); i-- > 0;)
        length = length << 8 | static_cast<unsigned char>(lengthBytes[i]);
    if (length > static_cast<std::uint64_t>(kMaximumHeaderBytes))
        return badInput(fmt::format("{}: says that its header has {} bytes, more than the {} of the format", path,
                                    length, kMaximumHeaderBytes));
    const auto headerBytes = static_cast<std::int64_t>(length);
    if (headerBytes > file->size() - kLengthBytes)
        return badInput(fmt::format("{}: says that its header has {} bytes, but the file ends after {}", path,
                                    headerBytes, file->size() - kLengthBytes));
    std::string header(static_cast<std::size_t>(headerBytes), '\0');
    if (!file->read(kLengthBytes, header.data(), header.size()))
        return badInput(fmt::format("{}: its header cannot be read", path));
    const std::int64_t dataStart = kLengthBytes + headerBytes;
    auto tensors = parseSafetensorsHeader(header, file->size() - dataStart, path);
    if (tensors) {
        for (StoredTensor& tensor : *tensors) {
            tensor.begin += dataStart;
            tensor.end += dataStart;
        }
    }
    return tensors;
}

} // namespace shardscope::planner
