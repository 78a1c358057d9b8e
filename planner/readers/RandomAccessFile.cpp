// SPDX-License-Identifier: GPL-3.0-or-later
#include "planner/readers/RandomAccessFile.h"

#include <fmt/format.h>

#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <utility>

namespace shardscope::planner {

contract::Result<RandomAccessFile> RandomAccessFile::open(const std::string& path) {
    RandomAccessFile file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK), 0);
    if (file.m_descriptor < 0)
        return contract::badInput(fmt::format("{}: cannot be opened: {}", path, std::strerror(errno)));
    struct stat status {};
    if (::fstat(file.m_descriptor, &status) != 0 || !S_ISREG(status.st_mode))
        return contract::badInput(fmt::format(
            "{}: is {}", path, S_ISDIR(status.st_mode) ? "a folder, not a regular file" : "not a regular file"));
    file.m_size = status.st_size;
    return file;
}

RandomAccessFile::RandomAccessFile(RandomAccessFile&& other) noexcept
    : m_descriptor(std::exchange(other.m_descriptor, -1)), m_size(other.m_size) {}

RandomAccessFile::~RandomAccessFile() {
    if (m_descriptor >= 0)
        ::close(m_descriptor);
}

bool RandomAccessFile::read(std::int64_t offset, char* bytes, std::size_t count) const {
    std::size_t done = 0;
    while (done < count) {
        const ssize_t got = ::pread(m_descriptor, bytes + done, count - done, offset + static_cast<std::int64_t>(done));
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            return false;
        done += static_cast<std::size_t>(got);
    }
    return true;
}

} // namespace shardscope::planner
