// SPDX-License-Identifier: GPL-3.0-or-later
#include "runtime/execute/Communication.h"

#include <algorithm>
#include <cstring>
#include <utility>

namespace shardscope::engine {

using contract::StepCode;
using contract::StepInstruction;

contract::Result<std::unique_ptr<Communication>>
Communication::create(const PlanSetup& setup, const StateLayout& layout, Group& group, BufferPool& pool) {
    std::unique_ptr<Communication> communication(new Communication(setup, layout, group));
    // Every rank has the same table, so its arenas are laid out alike: what the ring asks for.
    std::vector<MemoryRegion> regions;
    for (const contract::Arena arena :
         {contract::Arena::Parameters, contract::Arena::Gradients, contract::Arena::Slots})
        if (pool.arenas().bytes(arena) > 0)
            regions.push_back({pool.arenas().base(arena), pool.arenas().bytes(arena)});
    MemoryRegion scratch;
    if (const BufferId id = pool.find("collective"); id != kNoBuffer)
        scratch = {reinterpret_cast<std::byte*>(pool.take(id)), pool.bytes(id)};
    const auto connect = [&](std::unique_ptr<Ring>& ring, RingMembers members) -> contract::Result<void> {
        auto connected = Ring::create(group, std::move(members), regions, scratch);
        if (!connected)
            return tl::unexpected(connected.error());
        ring = std::move(*connected);
        return {};
    };
    if (auto all = connect(communication->m_ring, RingMembers::everybody(group)); !all)
        return tl::unexpected(all.error());
    bool usesNodes = false;
    for (std::int32_t op = 0; op < layout.count(); ++op)
        usesNodes = usesNodes || communication->hasCopiesOnOtherNodes(op);
    if (usesNodes) {
        const auto devices = static_cast<int>(setup.devicesPerNode);
        if (auto inside = connect(communication->m_inside, RingMembers::inside(group, devices)); !inside)
            return tl::unexpected(inside.error());
        if (auto across = connect(communication->m_across, RingMembers::across(group, devices)); !across)
            return tl::unexpected(across.error());
    }
    std::size_t tensors = 0; // of all operators: more than any block has
    for (const contract::Operator& op : setup.operators)
        tensors += op.tensors.size();
    communication->m_tensors.reserve(tensors);
    return communication;
}

bool Communication::hasCopiesOnOtherNodes(std::int32_t op) const {
    const OperatorState& state = m_layout.of(op);
    return state.kind != contract::PlacementKind::Replicate &&
           state.parts.front().tensors.front().group < m_setup.ranks;
}

template<typename Visit> void Communication::forEachPart(const StepInstruction& instruction, Visit visit) const {
    if (instruction.part != StepInstruction::kWholeBlock) {
        visit(m_layout.of(instruction.op).parts[static_cast<std::size_t>(instruction.part)]);
        return;
    }
    const std::int32_t block = m_setup.operators[static_cast<std::size_t>(instruction.op)].block;
    for (std::int32_t op = instruction.op;
         op < m_layout.count() && m_setup.operators[static_cast<std::size_t>(op)].block == block; ++op)
        if (m_setup.decisions[static_cast<std::size_t>(op)].coalesced)
            visit(m_layout.of(op).parts.front());
}

contract::Result<void> Communication::run(const StepInstruction& instruction, const std::vector<float*>& slots) {
    float* const slot = instruction.slot >= 0 ? slots[static_cast<std::size_t>(instruction.slot)] : nullptr;
    m_tensors.clear();
    switch (instruction.code) {
    case StepCode::Gather:
        return gather(instruction, slot);
    case StepCode::ReduceScatter:
        return slot != nullptr ? reduceScatter(instruction, slot) : reduceScatterInPlace(instruction);
    case StepCode::AllReduce:
        return allReduce(instruction);
    case StepCode::GatherUpdated:
        forEachPart(instruction, [&](const PartState& part) {
            for (const TensorState& tensor : part.tensors)
                if (!tensor.weightSharded) // sharded members of a coalesced block are gathered before their use
                    m_tensors.push_back({tensor.weight, {tensor.elements, tensor.shard}});
        });
        return shardRing(instruction.op).allGather(m_tensors);
    default:
        return {};
    }
}

contract::Result<void> Communication::gather(const StepInstruction& instruction, float* slot) {
    Ring& ring = shardRing(instruction.op);
    forEachPart(instruction, [&](const PartState& part) {
        for (const TensorState& tensor : part.tensors) {
            if (!tensor.weightSharded) // a kept member of a coalesced block
                continue;
            float* const whole = slot + tensor.gatheredOffset;
            std::memcpy(whole + ring.rank() * tensor.shard, tensor.weight,
                        static_cast<std::size_t>(tensor.shard) * sizeof(float));
            m_tensors.push_back({whole, {tensor.paddedElements, tensor.shard}});
        }
    });
    return ring.allGather(m_tensors);
}

contract::Result<void> Communication::reduceScatter(const StepInstruction& instruction, float* slot) {
    Ring& ring = shardRing(instruction.op);
    forEachPart(instruction, [&](const PartState& part) {
        for (const TensorState& tensor : part.tensors)
            m_tensors.push_back({slot + tensor.unreducedOffset, {tensor.paddedElements, tensor.shard}});
    });
    if (auto done = ring.reduceScatter(m_tensors); !done)
        return done;
    forEachPart(instruction, [&](const PartState& part) {
        for (const TensorState& tensor : part.tensors) {
            const float* const sum = slot + tensor.unreducedOffset + ring.rank() * tensor.shard;
            for (std::int64_t i = 0; i < tensor.shard; ++i)
                tensor.gradient[i] += sum[i];
        }
    });
    return {};
}

/// A kept operator that holds its gradient: what is outside this rank's chunk is used up, and not needed any more.
contract::Result<void> Communication::reduceScatterInPlace(const StepInstruction& instruction) {
    forEachPart(instruction, [&](const PartState& part) {
        for (const TensorState& tensor : part.tensors)
            m_tensors.push_back({tensor.gradient, {tensor.elements, tensor.shard}});
    });
    return shardRing(instruction.op).reduceScatter(m_tensors);
}

contract::Result<void> Communication::allReduce(const StepInstruction& instruction) {
    bool overNodes = false;
    forEachPart(instruction, [&](const PartState& part) {
        for (const TensorState& tensor : part.tensors) {
            overNodes = tensor.updateSharded;
            const TensorState::Owned owned = tensor.owned(m_group.rank());
            const Ring& ring = overNodes ? *m_across : *m_ring;
            m_tensors.push_back({owned.gradient, ring.evenChunks(owned.count)});
        }
    });
    return (overNodes ? *m_across : *m_ring).allReduce(m_tensors);
}

} // namespace shardscope::engine
