// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "runtime/contract/Result.h"

#include <cstddef>
#include <cstdint>
#include <string>

namespace shardscope::planner {

/// A regular file of which only parts are read.
class RandomAccessFile {
public:
    /// Errors: BadInput when it is missing, not a regular file, or unreadable.
    static contract::Result<RandomAccessFile> open(const std::string& path);
    RandomAccessFile(RandomAccessFile&& other) noexcept;
    RandomAccessFile& operator=(RandomAccessFile&&) = delete;
    ~RandomAccessFile();

    /// For libraries that read by themselves; it stays ours.
    int descriptor() const { return m_descriptor; }
    std::int64_t size() const { return m_size; }
    /// False when the file ends before, or cannot be read.
    bool read(std::int64_t offset, char* bytes, std::size_t count) const;

private:
    RandomAccessFile(int descriptor, std::int64_t size) : m_descriptor(descriptor), m_size(size) {}
    int m_descriptor;
    std::int64_t m_size;
};

} // namespace shardscope::planner
