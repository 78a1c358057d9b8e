// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "runtime/contract/Ledger.h"
#include "runtime/contract/Sizing.h"
#include "runtime/contract/StepProgram.h"
#include "runtime/contract/Training.h"

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace shardscope::contract {

/// One contiguous piece of memory each; a run allocates these and nothing else.
enum class Arena { Parameters, Gradients, Optimizer, Activations, Live, Slots, Logits, Data, Collective };
inline constexpr int kArenaCount = 9;
std::string_view arenaName(Arena arena);
std::optional<Arena> arenaFromName(std::string_view name);

/// One row of a plan's buffer table. `first` and `last` are indices of the step program between which it holds data
/// that somebody needs (state lives through the whole program).
struct Buffer {
    std::string
        name; ///< "h.0.attn.c_attn.weight", "h.0.ln_1.input", "slot.0.gathered", "live.residual_gradient", "tokens"
    Category category = Category::Parameters;
    Arena arena = Arena::Parameters;
    std::int64_t offset = 0;
    std::int64_t bytes = 0;
    std::int32_t first = 0;
    std::int32_t last = 0;
    bool operator==(const Buffer&) const = default;
};

struct BufferTable {
    std::vector<Buffer> buffers;

    /// Highest offset + bytes of an arena: what it reserves.
    std::array<std::int64_t, kArenaCount> arenaBytes() const;
    std::int64_t totalBytes() const;
    /// Reserved bytes by category. Arenas hold one category each, but for the slots (gathered, unreduced).
    Ledger ledger() const;
    bool operator==(const BufferTable&) const = default;
};

/// Everything that determines the memory of a native plan on one rank.
struct SizingInput {
    const std::vector<Operator>& operators;
    const std::vector<OperatorDecision>& decisions;
    std::int64_t ranks;
    std::int64_t devicesPerNode; ///< shard group size of "@node"
    const Preset& preset;
    const Training& training;
    std::int32_t prefetchDepth;
};

/// The size of the group over which an operator is sharded.
std::int64_t groupSize(const Placement& placement, std::int64_t ranks, std::int64_t devicesPerNode);

/// A coalesced operator of a block and where its part of the block's slot begins: gathered weights (of a sharded one),
/// then unreduced gradients, as sizeSlotOfPart() says.
struct CoalescedMember {
    std::int32_t op = -1;
    std::int64_t offset = 0; ///< bytes
    SlotSize size;
};
/// The coalesced operators of a block, in order; empty when it has none. `ranks` as in groupSize().
std::vector<CoalescedMember> coalescedMembers(const std::vector<Operator>& operators,
                                              const std::vector<OperatorDecision>& decisions, std::int32_t block,
                                              std::int64_t ranks, std::int64_t devicesPerNode, const Preset& preset);

/// Lays out every buffer. Total = base + sum state + sum kept + slots x max slot + live, as the planner adds it up.
BufferTable buildBufferTable(const SizingInput& input, const StepProgram& program);

} // namespace shardscope::contract
