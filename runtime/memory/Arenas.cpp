// SPDX-License-Identifier: GPL-3.0-or-later
#include "runtime/memory/Arenas.h"

#include "runtime/contract/Bytes.h"

#include <fmt/format.h>

#include <utility>

namespace shardscope::engine {

contract::Result<Arenas> Arenas::map(const contract::BufferTable& table, Device& device) {
    Arenas arenas;
    arenas.m_device = &device;
    const auto extents = table.arenaBytes();
    std::int64_t offset = 0;
    if (!device.isHostMemory()) {
        std::int64_t total = 0;
        for (const std::int64_t bytes : extents)
            total += contract::alignUp(bytes);
        const auto memory = device.allocate(total, "the arenas of the plan");
        if (!memory)
            return tl::unexpected(memory.error());
        arenas.m_shared = {*memory, total};
    }
    for (std::size_t i = 0; i < extents.size(); ++i) {
        if (extents[i] == 0)
            continue;
        if (arenas.m_shared.base != nullptr) {
            arenas.m_pieces[i] = {arenas.m_shared.base + offset, extents[i]};
            offset += contract::alignUp(extents[i]);
            continue;
        }
        const auto memory = device.allocate(
            extents[i], fmt::format("the arena \"{}\"", contract::arenaName(static_cast<contract::Arena>(i))));
        if (!memory)
            return tl::unexpected(memory.error());
        arenas.m_pieces[i] = {*memory, extents[i]};
    }
    return arenas;
}

Arenas::Arenas(Arenas&& other) noexcept
    : m_device(other.m_device), m_pieces(std::exchange(other.m_pieces, {})),
      m_shared(std::exchange(other.m_shared, {})) {}

Arenas& Arenas::operator=(Arenas&& other) noexcept {
    std::swap(m_device, other.m_device);
    std::swap(m_pieces, other.m_pieces);
    std::swap(m_shared, other.m_shared);
    return *this;
}

Arenas::~Arenas() {
    if (m_shared.base != nullptr) {
        m_device->release(m_shared.base, m_shared.bytes);
        return;
    }
    for (const Piece& piece : m_pieces)
        if (piece.base != nullptr)
            m_device->release(piece.base, piece.bytes);
}

std::int64_t Arenas::totalBytes() const {
    std::int64_t total = 0;
    for (const Piece& piece : m_pieces)
        total += piece.bytes;
    return total;
}

} // namespace shardscope::engine
