// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "runtime/contract/BufferTable.h"
#include "runtime/contract/Result.h"
#include "runtime/memory/Arenas.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace shardscope::engine {

/// Index of a row of the buffer table.
using BufferId = std::int32_t;
inline constexpr BufferId kNoBuffer = -1;

/// Hands out the buffers of a table and takes them back, and keeps account of what is out: the allocated bytes that
/// telemetry reports are sums over this account, not a copy of the prediction.
class BufferPool {
public:
    BufferPool(const contract::BufferTable& table, Arenas arenas);

    /// kNoBuffer when the table has no such row.
    BufferId find(std::string_view name) const;

    /// Hands a buffer out; taking one that is already out changes nothing.
    std::byte* take(BufferId buffer);
    void giveBack(BufferId buffer);
    bool isTaken(BufferId buffer) const { return m_taken[static_cast<std::size_t>(buffer)]; }
    /// Where a buffer lies, without an entry in the account.
    std::byte* address(BufferId buffer) const;
    std::int64_t bytes(BufferId buffer) const { return m_rows[static_cast<std::size_t>(buffer)].bytes; }
    const std::string& name(BufferId buffer) const { return m_rows[static_cast<std::size_t>(buffer)].name; }

    /// Highest sum of bytes of an arena that were out at the same time: what the arena had to hold.
    const std::array<std::int64_t, contract::kArenaCount>& arenaHighWater() const { return m_arenaHighWater; }
    /// The same by category, added up over the arenas (arenas do not lend each other memory).
    contract::Ledger highWater() const;
    std::int64_t totalHighWater() const;
    const Arenas& arenas() const { return m_arenas; }
    Arenas& arenas() { return m_arenas; }

private:
    std::vector<contract::Buffer> m_rows;
    std::unordered_map<std::string, BufferId> m_byName;
    Arenas m_arenas;
    std::vector<bool> m_taken;
    std::array<contract::Ledger, contract::kArenaCount> m_current{};
    std::array<contract::Ledger, contract::kArenaCount> m_highWater{};
    std::array<std::int64_t, contract::kArenaCount> m_arenaCurrent{};
    std::array<std::int64_t, contract::kArenaCount> m_arenaHighWater{};
};

/// Whether `actual`, the table of a plan from elsewhere, serves where `expected` is needed: every buffer present, in
/// its arena, aligned and large enough, and none overlapping another. Errors: BadInput, naming the buffer.
contract::Result<void> checkBufferTable(const contract::BufferTable& actual, const contract::BufferTable& expected);

} // namespace shardscope::engine
