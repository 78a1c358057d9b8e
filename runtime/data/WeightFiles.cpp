// SPDX-License-Identifier: GPL-3.0-or-later
#include "runtime/data/WeightFiles.h"

#include "runtime/contract/Json.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <bit>
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <set>
#include <string_view>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

namespace shardscope::engine {

namespace fs = std::filesystem;

/// A file in memory for as long as somebody reads from it.
class WeightFiles::Mapping {
public:
    static contract::Result<std::shared_ptr<Mapping>> open(const std::string& path) {
        auto mapping = std::make_shared<Mapping>();
        const int descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
        struct stat status {};
        if (descriptor < 0 || fstat(descriptor, &status) != 0 || !S_ISREG(status.st_mode)) {
            const std::string reason = descriptor < 0 ? std::strerror(errno) : "is not a regular file";
            if (descriptor >= 0)
                close(descriptor);
            return contract::badInput(fmt::format("{}: {}", path, reason));
        }
        mapping->m_bytes = static_cast<std::size_t>(status.st_size);
        void* const base =
            mapping->m_bytes > 0 ? mmap(nullptr, mapping->m_bytes, PROT_READ, MAP_SHARED, descriptor, 0) : MAP_FAILED;
        close(descriptor);
        if (base == MAP_FAILED)
            return contract::badInput(fmt::format("{}: is empty or cannot be mapped", path));
        mapping->m_base = static_cast<const std::byte*>(base);
        return mapping;
    }
    Mapping() = default;
    Mapping(const Mapping&) = delete;
    Mapping& operator=(const Mapping&) = delete;
    ~Mapping() {
        if (m_base != nullptr)
            munmap(const_cast<std::byte*>(m_base), m_bytes); // munmap's signature
    }
    const std::byte* base() const { return m_base; }
    std::uint64_t bytes() const { return m_bytes; }

private:
    const std::byte* m_base = nullptr;
    std::size_t m_bytes = 0;
};

namespace {

constexpr std::uint64_t kLengthBytes = 8;
constexpr std::uint64_t kMaximumHeaderBytes = 100'000'000; // as the format's reference implementation
constexpr std::size_t kMaximumAxes = 8;
constexpr std::int64_t kMaximumElements = std::int64_t{1} << 44;

float halfValue(std::uint16_t bits) {
    const std::uint32_t sign = static_cast<std::uint32_t>(bits & 0x8000U) << 16;
    std::uint32_t exponent = bits >> 10 & 0x1FU;
    std::uint32_t fraction = bits & 0x3FFU;
    if (exponent == 0x1F)
        return std::bit_cast<float>(sign | 0x7F800000U | fraction << 13);
    if (exponent == 0) {
        if (fraction == 0)
            return std::bit_cast<float>(sign);
        exponent = 1;
        while ((fraction & 0x400U) == 0) {
            fraction <<= 1;
            --exponent; // wraps below zero, and back when the bias is added
        }
        fraction &= 0x3FFU;
    }
    return std::bit_cast<float>(sign | (exponent + 112) << 23 | fraction << 13);
}

std::string shapeText(const std::vector<std::int64_t>& shape) {
    std::string text = "[";
    for (const std::int64_t extent : shape)
        text += (text.size() > 1 ? ", " : "") + std::to_string(extent);
    return text + "]";
}

} // namespace

contract::Result<void> WeightFiles::add(const std::string& file) {
    auto mapped = Mapping::open(file);
    if (!mapped)
        return tl::unexpected(mapped.error());
    const std::byte* const base = (*mapped)->base();
    const std::uint64_t bytes = (*mapped)->bytes();
    std::uint64_t length = 0;
    if (bytes >= kLengthBytes)
        std::memcpy(&length, base, sizeof length);
    if (bytes < kLengthBytes || length > kMaximumHeaderBytes || length > bytes - kLengthBytes)
        return contract::badInput(fmt::format("{}: is not a safetensors file: its header does not fit", file));
    const auto header = contract::parseJson(
        {reinterpret_cast<const char*>(base) + kLengthBytes, static_cast<std::size_t>(length)}, file);
    if (!header)
        return tl::unexpected(header.error());
    const contract::JsonCursor root(*header, file);
    if (!root.isObject())
        return contract::badInput(fmt::format("{}: the header is not an object", file));
    const std::uint64_t room = bytes - kLengthBytes - length;
    for (const auto& [name, value] : header->items()) {
        if (name == "__metadata__")
            continue;
        const contract::JsonCursor entry = root.at(name);
        Tensor tensor;
        tensor.file = file;
        tensor.type = entry.at("dtype").choice<Type>({{"F32", Type::F32}, {"F16", Type::F16}, {"BF16", Type::BF16}});
        const contract::JsonCursor shape = entry.at("shape");
        std::int64_t elements = 1;
        const std::size_t axes = shape.arraySize(kMaximumAxes);
        for (std::size_t axis = 0; axis < axes && !root.failed(); ++axis) {
            tensor.shape.push_back(shape.element(axis).integer(0, kMaximumElements));
            if (tensor.shape.back() > 0 && elements > kMaximumElements / tensor.shape.back())
                shape.fail("is too large");
            else
                elements *= tensor.shape.back();
        }
        const contract::JsonCursor offsets = entry.at("data_offsets");
        if (offsets.arraySize(2) != 2)
            offsets.fail("must be two numbers");
        if (root.failed())
            return root.error();
        const std::int64_t begin = offsets.element(0).integer();
        const std::int64_t end = offsets.element(1).integer();
        const std::int64_t size = elements * (tensor.type == Type::F32 ? 4 : 2);
        if (!root.failed() && (end < begin || end - begin != size || static_cast<std::uint64_t>(end) > room))
            offsets.fail(
                fmt::format("is [{}, {}]; {} bytes inside the {} of the file are needed", begin, end, size, room));
        if (root.failed())
            return root.error();
        tensor.data = base + kLengthBytes + length + static_cast<std::uint64_t>(begin);
        m_tensors.insert_or_assign(name, std::move(tensor));
    }
    m_mappings.push_back(std::move(*mapped));
    return {};
}

contract::Result<WeightFiles> WeightFiles::open(const std::string& path) {
    WeightFiles files;
    files.m_path = path;
    std::error_code error;
    std::string single = path;
    std::string index;
    if (fs::is_directory(path, error)) {
        single = (fs::path(path) / "model.safetensors").string();
        index = (fs::path(path) / "model.safetensors.index.json").string();
        if (!fs::exists(single, error) && !fs::exists(index, error))
            return contract::badInput(
                fmt::format("{}: holds neither model.safetensors nor model.safetensors.index.json", path));
    }
    if (index.empty() || fs::exists(single, error)) {
        if (auto added = files.add(single); !added)
            return tl::unexpected(added.error());
        return files;
    }
    const auto document = contract::readJsonFile(index);
    if (!document)
        return tl::unexpected(document.error());
    const contract::JsonCursor root(*document, index);
    const contract::JsonCursor map = root.at("weight_map");
    if (!root.failed() && !map.isObject())
        map.fail("must be an object of tensor and file names");
    if (root.failed())
        return root.error();
    std::set<std::string> names;
    for (const auto& [tensor, value] : map.raw().items()) {
        const std::string name = map.at(tensor).text();
        if (!root.failed() && (name.empty() || fs::path(name).filename() != name || name.starts_with('.')))
            map.at(tensor).fail(fmt::format("is \"{}\"; it must be a file in the same folder", name));
        if (root.failed())
            return root.error();
        names.insert(name);
    }
    for (const std::string& name : names)
        if (auto added = files.add((fs::path(path) / name).string()); !added)
            return tl::unexpected(added.error());
    return files;
}

std::vector<std::string> WeightFiles::names() const {
    std::vector<std::string> names;
    for (const auto& [name, tensor] : m_tensors)
        names.push_back(name);
    return names;
}

contract::Result<void> WeightFiles::check(const std::string& name, const std::vector<std::int64_t>& shape) const {
    const auto found = m_tensors.find(name);
    if (found == m_tensors.end())
        return contract::badInput(fmt::format("{}: there is no tensor \"{}\"", m_path, name));
    if (found->second.shape != shape)
        return contract::badInput(fmt::format("{}: \"{}\" has the shape {}; the plan's network has {}",
                                              found->second.file, name, shapeText(found->second.shape),
                                              shapeText(shape)));
    return {};
}

float WeightFiles::valueAt(const Tensor& tensor, std::int64_t element) {
    if (tensor.type == Type::F32) {
        float value = 0;
        std::memcpy(&value, tensor.data + element * 4, sizeof value); // files need not be aligned
        return value;
    }
    std::uint16_t bits = 0;
    std::memcpy(&bits, tensor.data + element * 2, sizeof bits);
    return tensor.type == Type::BF16 ? std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16) : halfValue(bits);
}

} // namespace shardscope::engine
