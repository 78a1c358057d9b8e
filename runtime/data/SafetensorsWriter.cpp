// SPDX-License-Identifier: GPL-3.0-or-later
#include "runtime/data/SafetensorsWriter.h"

#include "runtime/ops/shared/Portable.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <unistd.h>

namespace shardscope::engine {

namespace {

constexpr std::int64_t kPiece = 1 << 18; ///< elements that are converted and written at a time

class Output {
public:
    explicit Output(std::string path) : m_path(std::move(path)) {
        m_descriptor = ::open(m_path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    }
    ~Output() {
        if (m_descriptor >= 0)
            ::close(m_descriptor);
    }
    Output(const Output&) = delete;
    Output& operator=(const Output&) = delete;

    bool isOpen() const { return m_descriptor >= 0; }
    contract::Result<void> fail(const char* what) const {
        return contract::runFailed(fmt::format("{}: {}: {}", m_path, what, std::strerror(errno)));
    }
    contract::Result<void> write(const void* bytes, std::size_t count) {
        const auto* at = static_cast<const char*>(bytes);
        while (count > 0) {
            const ssize_t done = ::write(m_descriptor, at, count);
            if (done < 0 && errno == EINTR)
                continue;
            if (done < 0)
                return fail("cannot be written");
            at += done;
            count -= static_cast<std::size_t>(done);
        }
        return {};
    }
    contract::Result<void> finish() {
        if (::fsync(m_descriptor) != 0)
            return fail("cannot be flushed to disk");
        const int descriptor = m_descriptor;
        m_descriptor = -1;
        return ::close(descriptor) == 0 ? contract::Result<void>() : fail("cannot be closed");
    }

private:
    std::string m_path;
    int m_descriptor = -1;
};

} // namespace

contract::Result<void> writeSafetensors(const std::string& path, const std::vector<TensorShape>& tensors,
                                        StoredType type,
                                        const std::function<const float*(const std::string& tensor)>& valuesOf,
                                        const std::function<bool()>& isStopped) {
    const bool isHalf = type == StoredType::BFloat16;
    const std::string header = safetensorsHeader(tensors, isHalf ? "BF16" : "F32", isHalf ? 2 : 4);
    Output output(path);
    if (!output.isOpen())
        return output.fail("cannot be created");
    const auto length = static_cast<std::uint64_t>(header.size());
    if (auto written = output.write(&length, sizeof length); !written)
        return written;
    if (auto written = output.write(header.data(), header.size()); !written)
        return written;
    std::vector<shared::BFloat16> rounded;
    for (const TensorShape& tensor : tensors) {
        const float* const values = valuesOf(tensor.name);
        for (std::int64_t at = 0; at < tensor.elements(); at += kPiece) {
            if (isStopped())
                return contract::failure(contract::ErrorKind::Interrupted, path + ": stopped while it was written");
            const std::int64_t count = std::min(kPiece, tensor.elements() - at);
            const void* bytes = values + at;
            if (isHalf) {
                rounded.resize(static_cast<std::size_t>(count));
                std::transform(values + at, values + at + count, rounded.begin(), shared::roundToNearest);
                bytes = rounded.data();
            }
            if (auto written = output.write(bytes, static_cast<std::size_t>(count * (isHalf ? 2 : 4))); !written)
                return written;
        }
    }
    return output.finish();
}

} // namespace shardscope::engine
