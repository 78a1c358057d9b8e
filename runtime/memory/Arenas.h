// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "runtime/contract/BufferTable.h"
#include "runtime/contract/Result.h"
#include "runtime/device/Device.h"

#include <array>
#include <cstddef>
#include <cstdint>

namespace shardscope::engine {

/// One piece of a device's memory per arena of a buffer table, zeroed. Allocated once; nothing else of a run's size is
/// ever allocated. Memory that is the host's is mapped arena by arena, so that running out of one never touches
/// another; a GPU's is one allocation that the arenas share.
class Arenas {
public:
    /// `device` outlives the arenas. Errors: RunFailed when the memory cannot be had.
    static contract::Result<Arenas> map(const contract::BufferTable& table, Device& device);

    Arenas(Arenas&& other) noexcept;
    Arenas& operator=(Arenas&& other) noexcept;
    Arenas(const Arenas&) = delete;
    Arenas& operator=(const Arenas&) = delete;
    ~Arenas();

    std::byte* base(contract::Arena arena) const { return m_pieces[static_cast<std::size_t>(arena)].base; }
    std::int64_t bytes(contract::Arena arena) const { return m_pieces[static_cast<std::size_t>(arena)].bytes; }
    std::int64_t totalBytes() const;

private:
    Arenas() = default;
    struct Piece {
        std::byte* base = nullptr;
        std::int64_t bytes = 0;
    };
    Device* m_device = nullptr;
    std::array<Piece, contract::kArenaCount> m_pieces;
    Piece m_shared; ///< the one allocation of a GPU
};

} // namespace shardscope::engine
