// SPDX-License-Identifier: GPL-3.0-or-later
#include "runtime/memory/BufferPool.h"

#include "runtime/contract/Bytes.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <utility>

namespace shardscope::engine {

BufferPool::BufferPool(const contract::BufferTable& table, Arenas arenas)
    : m_rows(table.buffers), m_arenas(std::move(arenas)), m_taken(table.buffers.size(), false) {
    for (std::size_t i = 0; i < m_rows.size(); ++i)
        m_byName.emplace(m_rows[i].name, static_cast<BufferId>(i));
}

BufferId BufferPool::find(std::string_view name) const {
    const auto found = m_byName.find(std::string(name));
    return found == m_byName.end() ? kNoBuffer : found->second;
}

std::byte* BufferPool::address(BufferId buffer) const {
    const contract::Buffer& row = m_rows[static_cast<std::size_t>(buffer)];
    return m_arenas.base(row.arena) + row.offset;
}

std::byte* BufferPool::take(BufferId buffer) {
    const auto index = static_cast<std::size_t>(buffer);
    if (!m_taken[index]) {
        const contract::Buffer& row = m_rows[index];
        const auto arena = static_cast<std::size_t>(row.arena);
        m_taken[index] = true;
        const std::int64_t current = m_current[arena][row.category] += row.bytes;
        m_highWater[arena][row.category] = std::max(m_highWater[arena][row.category], current);
        m_arenaCurrent[arena] += row.bytes;
        m_arenaHighWater[arena] = std::max(m_arenaHighWater[arena], m_arenaCurrent[arena]);
    }
    return address(buffer);
}

void BufferPool::giveBack(BufferId buffer) {
    const auto index = static_cast<std::size_t>(buffer);
    if (!m_taken[index])
        return;
    const contract::Buffer& row = m_rows[index];
    const auto arena = static_cast<std::size_t>(row.arena);
    m_taken[index] = false;
    m_current[arena][row.category] -= row.bytes;
    m_arenaCurrent[arena] -= row.bytes;
}

contract::Ledger BufferPool::highWater() const {
    contract::Ledger sum;
    for (const contract::Ledger& arena : m_highWater)
        sum += arena;
    return sum;
}

std::int64_t BufferPool::totalHighWater() const {
    return std::accumulate(m_arenaHighWater.begin(), m_arenaHighWater.end(), std::int64_t{0});
}

namespace {

/// The first pair of buffers of one arena that share bytes while both hold data.
contract::Result<void> checkOverlaps(const contract::BufferTable& table) {
    std::vector<const contract::Buffer*> rows;
    for (const contract::Buffer& buffer : table.buffers)
        rows.push_back(&buffer);
    std::sort(rows.begin(), rows.end(), [](const contract::Buffer* a, const contract::Buffer* b) {
        return std::pair(a->arena, a->offset) < std::pair(b->arena, b->offset);
    });
    for (std::size_t i = 1; i < rows.size(); ++i) {
        const contract::Buffer& before = *rows[i - 1];
        const contract::Buffer& after = *rows[i];
        if (before.arena == after.arena && before.offset + before.bytes > after.offset)
            return contract::badInput(fmt::format(
                "plan: buffers: \"{}\" overlaps \"{}\" in the arena \"{}\" (ends at byte {}, the other starts at {})",
                before.name, after.name, contract::arenaName(after.arena), before.offset + before.bytes, after.offset));
    }
    return {};
}

/// A slot is one piece of memory: whoever uses it cuts it as it needs.
contract::Result<void> checkSlots(const contract::BufferTable& table) {
    std::unordered_map<std::string_view, const contract::Buffer*> byName;
    for (const contract::Buffer& buffer : table.buffers)
        byName.emplace(buffer.name, &buffer);
    for (int slot = 0;; ++slot) {
        const std::string base = fmt::format("slot.{}.", slot);
        const auto gathered = byName.find(base + "gathered");
        const auto unreduced = byName.find(base + "unreduced");
        if (gathered == byName.end() && unreduced == byName.end())
            return {};
        if (gathered == byName.end() || unreduced == byName.end())
            continue;
        const std::int64_t end = gathered->second->offset + gathered->second->bytes;
        if (unreduced->second->offset != end)
            return contract::badInput(
                fmt::format("plan: buffers: \"{}\" starts at byte {}; \"{}\" ends at {}, where it must start",
                            unreduced->first, unreduced->second->offset, gathered->first, end));
    }
}

} // namespace

contract::Result<void> checkBufferTable(const contract::BufferTable& actual, const contract::BufferTable& expected) {
    std::unordered_map<std::string_view, const contract::Buffer*> byName;
    for (const contract::Buffer& buffer : actual.buffers) {
        if (!byName.emplace(buffer.name, &buffer).second)
            return contract::badInput(fmt::format("plan: buffers: \"{}\" appears twice", buffer.name));
        if (buffer.offset < 0 || buffer.bytes <= 0 || buffer.offset > (std::int64_t{1} << 52) ||
            buffer.bytes > (std::int64_t{1} << 52))
            return contract::badInput(
                fmt::format("plan: buffers: \"{}\" has an impossible offset or size", buffer.name));
    }
    for (const contract::Buffer& needed : expected.buffers) {
        const auto found = byName.find(needed.name);
        if (found == byName.end())
            return contract::badInput(
                fmt::format("plan: buffers: \"{}\" is missing; {} bytes are needed in the arena \"{}\"", needed.name,
                            needed.bytes, contract::arenaName(needed.arena)));
        const contract::Buffer& given = *found->second;
        if (given.bytes < needed.bytes)
            return contract::badInput(fmt::format("plan: buffers: \"{}\" has {} bytes; {} are needed", needed.name,
                                                  given.bytes, needed.bytes));
        if (given.arena != needed.arena || given.category != needed.category)
            return contract::badInput(fmt::format("plan: buffers: \"{}\" is in the arena \"{}\"; \"{}\" is right",
                                                  needed.name, contract::arenaName(given.arena),
                                                  contract::arenaName(needed.arena)));
        if (given.offset % contract::kBufferAlignment != 0)
            return contract::badInput(fmt::format("plan: buffers: \"{}\" starts at byte {}, which is no multiple of {}",
                                                  needed.name, given.offset, contract::kBufferAlignment));
    }
    if (actual.buffers.size() > expected.buffers.size())
        for (const contract::Buffer& given : actual.buffers)
            if (std::none_of(expected.buffers.begin(), expected.buffers.end(),
                             [&](const contract::Buffer& needed) { return needed.name == given.name; }))
                return contract::badInput(fmt::format("plan: buffers: \"{}\" is not used by this plan", given.name));
    if (auto slots = checkSlots(actual); !slots)
        return slots;
    return checkOverlaps(actual);
}

} // namespace shardscope::engine
