// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "runtime/contract/BufferTable.h"
#include "runtime/contract/Result.h"

#include <array>
#include <cstddef>
#include <cstdint>

namespace shardscope::engine {

/// One mapped piece of memory per arena of a buffer table. Mapped once and zeroed by the kernel; nothing else of a
/// run's size is ever allocated.
class Arenas {
public:
    /// Errors: RunFailed when the memory cannot be mapped.
    static contract::Result<Arenas> map(const contract::BufferTable& table);

    Arenas(Arenas&& other) noexcept;
    Arenas& operator=(Arenas&& other) noexcept;
    Arenas(const Arenas&) = delete;
    Arenas& operator=(const Arenas&) = delete;
    ~Arenas();

    std::byte* base(contract::Arena arena) const { return m_pieces[static_cast<std::size_t>(arena)].base; }
    std::int64_t bytes(contract::Arena arena) const { return m_pieces[static_cast<std::size_t>(arena)].bytes; }
    std::int64_t totalBytes() const;
    /// Writes to every page, so that a machine that is out of memory says so now and not in the middle of a step.
    void touch();

private:
    Arenas() = default;
    struct Piece {
        std::byte* base = nullptr;
        std::int64_t bytes = 0;
    };
    std::array<Piece, contract::kArenaCount> m_pieces;
};

} // namespace shardscope::engine
