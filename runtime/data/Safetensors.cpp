// SPDX-License-Identifier: GPL-3.0-or-later
#include "runtime/data/Safetensors.h"

#include "runtime/contract/Json.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

namespace shardscope::engine {

namespace {

constexpr std::int64_t kLengthBytes = 8;

contract::Error systemError(const std::string& path, const char* what) {
    return {contract::ErrorKind::RunFailed, fmt::format("{}: cannot {}: {}", path, what, std::strerror(errno))};
}

std::string headerOf(const std::vector<TensorShape>& tensors) {
    return safetensorsHeader(tensors, "F32", 4);
}

} // namespace

std::string safetensorsHeader(const std::vector<TensorShape>& tensors, const char* dtype, std::int64_t elementBytes) {
    contract::OrderedJson header;
    header["__metadata__"] = {{"format", "pt"}};
    std::int64_t offset = 0;
    for (const TensorShape& tensor : tensors) {
        const std::int64_t end = offset + tensor.elements() * elementBytes;
        header[tensor.name] = {{"dtype", dtype}, {"shape", tensor.shape}, {"data_offsets", {offset, end}}};
        offset = end;
    }
    std::string text = header.dump();
    text.resize((text.size() + 7) / 8 * 8, ' '); // the tensors start aligned
    return text;
}

std::int64_t TensorShape::elements() const {
    std::int64_t product = 1;
    for (const std::int64_t extent : shape)
        product *= extent;
    return product;
}

contract::Result<std::unique_ptr<SafetensorsFile>> SafetensorsFile::create(const std::string& path,
                                                                           const std::vector<TensorShape>& tensors) {
    std::unique_ptr<SafetensorsFile> file(new SafetensorsFile);
    const std::string header = headerOf(tensors);
    std::int64_t offset = kLengthBytes + static_cast<std::int64_t>(header.size());
    for (const TensorShape& tensor : tensors) {
        file->m_offsets[tensor.name] = offset;
        offset += tensor.elements() * 4;
    }
    file->m_path = path;
    file->m_bytes = offset;
    file->m_descriptor = ::open(path.c_str(), O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    if (file->m_descriptor < 0)
        return tl::unexpected(systemError(path, "create"));
    // Blocks are taken now: writing into a mapped file on a full disk would end the process by a signal.
    if (const int code = posix_fallocate(file->m_descriptor, 0, file->m_bytes); code != 0) {
        errno = code;
        return tl::unexpected(systemError(path, "reserve its bytes"));
    }
    void* const base = mmap(nullptr, static_cast<std::size_t>(file->m_bytes), PROT_READ | PROT_WRITE, MAP_SHARED,
                            file->m_descriptor, 0);
    if (base == MAP_FAILED)
        return tl::unexpected(systemError(path, "map"));
    file->m_base = static_cast<std::byte*>(base);
    const auto length = static_cast<std::uint64_t>(header.size());
    std::memcpy(file->m_base, &length, sizeof length);
    std::memcpy(file->m_base + kLengthBytes, header.data(), header.size());
    return file;
}

contract::Result<std::unique_ptr<SafetensorsFile>> SafetensorsFile::open(const std::string& path,
                                                                         const std::vector<TensorShape>& tensors) {
    std::unique_ptr<SafetensorsFile> file(new SafetensorsFile);
    const std::string expected = headerOf(tensors);
    std::int64_t offset = kLengthBytes + static_cast<std::int64_t>(expected.size());
    for (const TensorShape& tensor : tensors) {
        file->m_offsets[tensor.name] = offset;
        offset += tensor.elements() * 4;
    }
    file->m_path = path;
    file->m_descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
    struct stat status {};
    if (file->m_descriptor < 0 || fstat(file->m_descriptor, &status) != 0)
        return contract::badInput(fmt::format("{}: {}", path, std::strerror(errno)));
    if (status.st_size != offset)
        return contract::badInput(fmt::format("{}: has {} bytes; a checkpoint of this plan has {}", path,
                                              static_cast<std::int64_t>(status.st_size), offset));
    void* const base = mmap(nullptr, static_cast<std::size_t>(offset), PROT_READ, MAP_SHARED, file->m_descriptor, 0);
    if (base == MAP_FAILED)
        return contract::badInput(fmt::format("{}: cannot be mapped: {}", path, std::strerror(errno)));
    file->m_base = static_cast<std::byte*>(base);
    file->m_bytes = offset;
    std::uint64_t length = 0;
    std::memcpy(&length, file->m_base, sizeof length);
    // We read what we write: the header of a checkpoint is a function of its tensors.
    if (length != expected.size() || std::memcmp(file->m_base + kLengthBytes, expected.data(), expected.size()) != 0)
        return contract::badInput(fmt::format("{}: its tensors are not those of this plan", path));
    return file;
}

SafetensorsFile::~SafetensorsFile() {
    if (m_base != nullptr)
        munmap(m_base, static_cast<std::size_t>(m_bytes));
    if (m_descriptor >= 0)
        close(m_descriptor);
}

float* SafetensorsFile::tensor(const std::string& name) const {
    const auto found = m_offsets.find(name);
    return found == m_offsets.end() ? nullptr : reinterpret_cast<float*>(m_base + found->second);
}

contract::Result<void> SafetensorsFile::sync() {
    if (msync(m_base, static_cast<std::size_t>(m_bytes), MS_SYNC) != 0 || fsync(m_descriptor) != 0)
        return tl::unexpected(systemError(m_path, "write"));
    return {};
}

} // namespace shardscope::engine
