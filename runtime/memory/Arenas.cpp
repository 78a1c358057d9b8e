// SPDX-License-Identifier: GPL-3.0-or-later
#include "runtime/memory/Arenas.h"

#include "runtime/contract/Bytes.h"

#include <cerrno>
#include <cstring>
#include <string>
#include <sys/mman.h>
#include <unistd.h>
#include <utility>

namespace shardscope::engine {

contract::Result<Arenas> Arenas::map(const contract::BufferTable& table) {
    Arenas arenas;
    const auto extents = table.arenaBytes();
    for (std::size_t i = 0; i < extents.size(); ++i) {
        if (extents[i] == 0)
            continue;
        void* const base = mmap(nullptr, static_cast<std::size_t>(extents[i]), PROT_READ | PROT_WRITE,
                                MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (base == MAP_FAILED)
            return contract::runFailed("cannot map " + contract::describeBytes(extents[i]) + " for the arena \"" +
                                       std::string(contract::arenaName(static_cast<contract::Arena>(i))) +
                                       "\": " + std::strerror(errno));
        arenas.m_pieces[i] = {static_cast<std::byte*>(base), extents[i]};
    }
    return arenas;
}

Arenas::Arenas(Arenas&& other) noexcept : m_pieces(std::exchange(other.m_pieces, {})) {}

Arenas& Arenas::operator=(Arenas&& other) noexcept {
    std::swap(m_pieces, other.m_pieces);
    return *this;
}

Arenas::~Arenas() {
    for (const Piece& piece : m_pieces)
        if (piece.base != nullptr)
            munmap(piece.base, static_cast<std::size_t>(piece.bytes));
}

std::int64_t Arenas::totalBytes() const {
    std::int64_t total = 0;
    for (const Piece& piece : m_pieces)
        total += piece.bytes;
    return total;
}

void Arenas::touch() {
    const auto page = static_cast<std::int64_t>(sysconf(_SC_PAGESIZE));
    for (const Piece& piece : m_pieces)
        for (std::int64_t at = 0; at < piece.bytes; at += page)
            *reinterpret_cast<volatile std::byte*>(piece.base + at) = std::byte{0};
}

} // namespace shardscope::engine
