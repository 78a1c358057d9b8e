// SPDX-License-Identifier: GPL-3.0-or-later
#include "runtime/contract/BufferTable.h"

#include <fmt/format.h>

#include <algorithm>

namespace shardscope::contract {

namespace {
constexpr std::array<std::string_view, kArenaCount> kArenaNames{
    "parameters", "gradients", "optimizer", "activations", "live", "slots", "logits", "data", "collective"};
constexpr std::array<Category, kArenaCount> kArenaCategory{
    Category::Parameters, Category::Gradients, Category::Optimizer, Category::Activations, Category::Activations,
    Category::Gathered,   Category::Logits,    Category::Data,      Category::Collective};
} // namespace

std::string_view arenaName(Arena arena) {
    return kArenaNames[static_cast<std::size_t>(arena)];
}

std::optional<Arena> arenaFromName(std::string_view name) {
    for (std::size_t i = 0; i < kArenaNames.size(); ++i) {
        if (kArenaNames[i] == name)
            return static_cast<Arena>(i);
    }
    return std::nullopt;
}

std::array<std::int64_t, kArenaCount> BufferTable::arenaBytes() const {
    std::array<std::int64_t, kArenaCount> bytes{};
    for (const Buffer& buffer : buffers) {
        std::int64_t& extent = bytes[static_cast<std::size_t>(buffer.arena)];
        extent = std::max(extent, buffer.offset + buffer.bytes);
    }
    return bytes;
}

std::int64_t BufferTable::totalBytes() const {
    std::int64_t total = 0;
    for (const std::int64_t bytes : arenaBytes())
        total += bytes;
    return total;
}

Ledger BufferTable::ledger() const {
    Ledger ledger;
    const auto extents = arenaBytes();
    for (std::size_t arena = 0; arena < extents.size(); ++arena) {
        if (static_cast<Arena>(arena) != Arena::Slots)
            ledger[kArenaCategory[arena]] += extents[arena];
    }
    for (const Buffer& buffer : buffers) {
        if (buffer.arena == Arena::Slots)
            ledger[buffer.category] += buffer.bytes;
    }
    return ledger;
}

std::int64_t groupSize(const Placement& placement, std::int64_t ranks, std::int64_t devicesPerNode) {
    return placement.group == ShardGroup::Node ? std::min(ranks, devicesPerNode) : ranks;
}

std::vector<CoalescedMember> coalescedMembers(const std::vector<Operator>& operators,
                                              const std::vector<OperatorDecision>& decisions, std::int32_t block,
                                              std::int64_t ranks, std::int64_t devicesPerNode, const Preset& preset) {
    std::vector<CoalescedMember> members;
    std::int64_t offset = 0;
    for (std::size_t op = 0; op < operators.size() && block >= 0; ++op) {
        if (operators[op].block != block || !decisions[op].coalesced)
            continue;
        const Placement& placement = decisions[op].placement;
        const SlotSize size = sizeSlot(operators[op], placement, groupSize(placement, ranks, devicesPerNode), preset);
        members.push_back({static_cast<std::int32_t>(op), offset, size});
        offset += size.total();
    }
    return members;
}

namespace {

class TableBuilder {
public:
    TableBuilder(const SizingInput& input, const StepProgram& program)
        : m_input(input), m_program(program), m_owners(storageOwners(input.operators)),
          m_end(static_cast<std::int32_t>(program.instructions.size()) - 1), m_first(input.operators.size(), -1),
          m_last(input.operators.size(), -1) {}

    BufferTable build() {
        scanProgram();
        for (std::size_t op = 0; op < m_input.operators.size(); ++op)
            addState(op);
        std::vector<bool> recomputed;
        for (std::size_t op = 0; op < m_input.operators.size(); ++op) {
            const Operator& record = m_input.operators[op];
            if (record.block >= 0) {
                recomputed.resize(static_cast<std::size_t>(record.block) + 1, false);
                recomputed.back() = m_input.decisions[op].recompute;
            }
            addKept(op);
        }
        addLive(recomputed);
        addSlots();
        addBase();
        return std::move(m_table);
    }

private:
    void scanProgram() {
        for (std::size_t i = 0; i < m_program.instructions.size(); ++i) {
            const StepInstruction& instruction = m_program.instructions[i];
            const auto index = static_cast<std::int32_t>(i);
            switch (instruction.code) {
            case StepCode::Load:
                m_load = index;
                break;
            case StepCode::Loss:
                m_loss = index;
                break;
            case StepCode::Forward:
                if (std::int32_t& first = m_first[static_cast<std::size_t>(instruction.op)]; first < 0)
                    first = index;
                break;
            case StepCode::Backward:
                m_last[static_cast<std::size_t>(instruction.op)] = index;
                m_lastBackward = index;
                break;
            default:
                break;
            }
        }
    }

    void add(std::string name, Category category, Arena arena, std::int64_t bytes, std::int32_t first,
             std::int32_t last) {
        if (bytes == 0)
            return;
        std::int64_t& offset = m_offset[static_cast<std::size_t>(arena)];
        m_table.buffers.push_back({std::move(name), category, arena, offset, bytes, first, last});
        offset += bytes;
    }

    void addState(std::size_t op) {
        const Operator& record = m_input.operators[op];
        const Placement& placement = m_input.decisions[op].placement;
        const std::int64_t group = groupSize(placement, m_input.ranks, m_input.devicesPerNode);
        for (const StateBuffer& buffer : sizeState(record, placement, group, m_input.preset)) {
            const Arena arena = buffer.category == Category::Parameters  ? Arena::Parameters
                                : buffer.category == Category::Gradients ? Arena::Gradients
                                                                         : Arena::Optimizer;
            add(record.name + "." + buffer.suffix, buffer.category, arena, buffer.bytes, 0, m_end);
        }
    }

    void addKept(std::size_t op) {
        const Operator& record = m_input.operators[op];
        const bool recomputed = m_input.decisions[op].recompute;
        for (const ActivationSpec& spec : record.kept) {
            if (recomputed && !spec.blockInput && record.block >= 0)
                continue;
            // An input is written by the operator before; everything else by the operator itself.
            const std::int32_t written = spec.name == "input" && op > 0 ? m_first[op - 1] : m_first[op];
            add(record.name + "." + spec.name, Category::Activations, Arena::Activations,
                activationBytes(spec, m_input.preset, m_input.training.microBatch), written, m_last[op]);
        }
    }

    void addLive(const std::vector<bool>& recomputed) {
        const std::int64_t samples = m_input.training.microBatch;
        const LiveRegions regions = sizeLive(m_input.operators, m_input.preset, samples, recomputed);
        const auto region = [&](const char* name, std::int64_t bytes, std::int32_t first) {
            add(name, Category::Activations, Arena::Live, bytes, first, m_lastBackward);
        };
        region("live.residual_gradient", regions.residualGradient, m_loss);
        region("live.activation_gradient", regions.activationGradient, m_loss);
        region("live.wide_gradient", regions.wideGradient, 0);
        addRecomputed(recomputed, samples);
    }

    /// Intermediates of recomputed blocks, under names that do not depend on the block. Blocks whose intermediates
    /// differ share the region; the names are those of the largest.
    void addRecomputed(const std::vector<bool>& recomputed, std::int64_t samples) {
        std::int32_t largest = -1;
        std::int64_t largestBytes = 0;
        for (std::size_t block = 0; block < recomputed.size(); ++block) {
            const auto index = static_cast<std::int32_t>(block);
            const std::int64_t bytes =
                recomputed[block] ? recomputeBytes(m_input.operators, index, m_input.preset, samples) : 0;
            if (bytes > largestBytes) {
                largest = index;
                largestBytes = bytes;
            }
        }
        for (const Operator& record : m_input.operators) {
            if (largest < 0 || record.block != largest)
                continue;
            const std::string relative = record.name.substr(record.blockName.size() + 1);
            for (const ActivationSpec& spec : record.kept) {
                if (!spec.blockInput)
                    add("live.recompute." + relative + "." + spec.name, Category::Activations, Arena::Live,
                        activationBytes(spec, m_input.preset, samples), 0, m_lastBackward);
            }
        }
    }

    void addSlots() {
        SlotSize largest;
        SlotSize block; // the sum over the coalesced operators of a block: they share a slot
        for (std::size_t op = 0; op < m_input.operators.size(); ++op) {
            const Placement& placement = m_input.decisions[static_cast<std::size_t>(m_owners[op])].placement;
            const std::int64_t group = groupSize(placement, m_input.ranks, m_input.devicesPerNode);
            const SlotSize own = sizeSlot(m_input.operators[op], placement, group, m_input.preset);
            if (op == 0 || m_input.operators[op].block != m_input.operators[op - 1].block)
                block = {};
            if (m_input.decisions[op].coalesced)
                block = {block.gatheredBytes + own.gatheredBytes, block.unreducedBytes + own.unreducedBytes};
            const SlotSize& size = m_input.decisions[op].coalesced ? block : own;
            if (size.total() > largest.total())
                largest = size;
        }
        for (std::int32_t slot = 0; slot < m_program.slotCount; ++slot) {
            const std::string name = fmt::format("slot.{}.", slot);
            add(name + "gathered", Category::Gathered, Arena::Slots, largest.gatheredBytes, 0, m_lastBackward);
            add(name + "unreduced", Category::Unreduced, Arena::Slots, largest.unreducedBytes, 0, m_lastBackward);
        }
    }

    void addBase() {
        const BaseSize base = sizeBase(m_input.operators, m_input.training.sequence, m_input.training.microBatch,
                                       m_input.training.lossChunks, m_input.ranks, m_input.preset);
        const auto head = static_cast<std::size_t>(m_input.operators.size() - 1);
        add("logits", Category::Logits, Arena::Logits, base.logits, m_first[head], m_last[head]);
        // In chunks, the head's backward goes through the loss again.
        const bool isChunked = m_input.training.lossChunks > 1;
        const std::int32_t lossEnds = isChunked ? m_last[head] : m_loss;
        add("losses", Category::Logits, Arena::Logits, base.losses, isChunked ? m_first[head] : m_loss, lossEnds);
        add("tokens", Category::Data, Arena::Data, base.tokens, m_load, m_lastBackward);
        add("targets", Category::Data, Arena::Data, base.targets, m_load, lossEnds);
        add("collective", Category::Collective, Arena::Collective, base.collective, 0, m_end);
    }

    const SizingInput& m_input;
    const StepProgram& m_program;
    std::vector<std::int32_t> m_owners;
    std::int32_t m_end;
    std::int32_t m_load = 0;
    std::int32_t m_loss = 0;
    std::int32_t m_lastBackward = 0;
    std::vector<std::int32_t> m_first; ///< first forward of each operator
    std::vector<std::int32_t> m_last;  ///< last backward of each operator
    std::array<std::int64_t, kArenaCount> m_offset{};
    BufferTable m_table;
};

} // namespace

BufferTable buildBufferTable(const SizingInput& input, const StepProgram& program) {
    return TableBuilder(input, program).build();
}

} // namespace shardscope::contract
