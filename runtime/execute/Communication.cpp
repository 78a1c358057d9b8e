// SPDX-License-Identifier: GPL-3.0-or-later
#include "runtime/execute/Communication.h"

#include <algorithm>
#include <utility>

namespace shardscope::engine {

using contract::StepCode;
using contract::StepInstruction;

Communication::~Communication() = default;

contract::Result<void> Communication::connect(Ranks& ranks, Group& group, const RingMembers& members,
                                              const std::vector<MemoryRegion>& regions, MemoryRegion scratch) {
    auto ring = Ring::create(group, members, regions, scratch);
    if (!ring)
        return tl::unexpected(ring.error());
    ranks.ring = std::move(*ring);
    if (m_device.isHostMemory()) {
        ranks.collectives = std::make_unique<RingCollectives>(*ranks.ring);
        return {};
    }
    if (members.ranks.size() > 1) {
        auto own = m_device.connect(group, members, m_whyNotOwn);
        if (!own)
            return tl::unexpected(own.error());
        ranks.collectives = std::move(*own);
    }
    if (!ranks.collectives) // a ring of one does nothing, and has no staging memory
        ranks.collectives = std::make_unique<StagedCollectives>(m_device, *ranks.ring,
                                                                regions.empty() ? MemoryRegion{} : regions.front());
    return {};
}

contract::Result<std::unique_ptr<Communication>> Communication::create(const PlanSetup& setup,
                                                                       const StateLayout& layout, Group& group,
                                                                       BufferPool& pool, Device& device) {
    std::unique_ptr<Communication> communication(new Communication(setup, layout, group, device));
    std::vector<MemoryRegion> regions;
    MemoryRegion scratch;
    const BufferId scratchBuffer = pool.find("collective");
    if (device.isHostMemory()) {
        // Every rank has the same table, so its arenas are laid out alike: what the ring asks for.
        for (const contract::Arena arena :
             {contract::Arena::Parameters, contract::Arena::Gradients, contract::Arena::Slots})
            if (pool.arenas().bytes(arena) > 0)
                regions.push_back({pool.arenas().base(arena), pool.arenas().bytes(arena)});
        if (scratchBuffer != kNoBuffer)
            scratch = {pool.take(scratchBuffer), pool.bytes(scratchBuffer)};
    } else if (group.size() > 1) {
        const std::int64_t scratchBytes = contract::kCollectiveScratchBytes;
        communication->m_staging.resize(static_cast<std::size_t>(StagedCollectives::kStagingBytes + scratchBytes));
        regions = {{communication->m_staging.data(), StagedCollectives::kStagingBytes}};
        scratch = {communication->m_staging.data() + StagedCollectives::kStagingBytes, scratchBytes};
        pool.take(scratchBuffer); // the plan sets it aside for whatever the collectives of the device need
    }
    const auto connect = [&](Ranks& ranks, const RingMembers& members) {
        return communication->connect(ranks, group, members, regions, scratch);
    };
    if (auto all = connect(communication->m_all, RingMembers::everybody(group)); !all)
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

contract::Result<void> Communication::run(const StepInstruction& instruction, const std::vector<std::byte*>& slots) {
    std::byte* const slot = instruction.slot >= 0 ? slots[static_cast<std::size_t>(instruction.slot)] : nullptr;
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
        return shardRanks(instruction.op).collectives->allGather(m_tensors);
    default:
        return {};
    }
}

contract::Result<void> Communication::gather(const StepInstruction& instruction, std::byte* slot) {
    const Ranks& ranks = shardRanks(instruction.op);
    forEachPart(instruction, [&](const PartState& part) {
        for (const TensorState& tensor : part.tensors) {
            if (!tensor.weightSharded) // a kept member of a coalesced block
                continue;
            const Elements whole = tensor.gatheredIn(slot);
            m_device.copyOnLane(whole + ranks.rank() * tensor.shard, tensor.weight, tensor.shard);
            m_tensors.push_back({whole, {tensor.paddedElements, tensor.shard}});
        }
    });
    return ranks.collectives->allGather(m_tensors);
}

contract::Result<void> Communication::reduceScatter(const StepInstruction& instruction, std::byte* slot) {
    const Ranks& ranks = shardRanks(instruction.op);
    forEachPart(instruction, [&](const PartState& part) {
        for (const TensorState& tensor : part.tensors)
            m_tensors.push_back({tensor.unreducedIn(slot), {tensor.paddedElements, tensor.shard}});
    });
    if (auto done = ranks.collectives->reduceScatter(m_tensors); !done)
        return done;
    forEachPart(instruction, [&](const PartState& part) {
        for (const TensorState& tensor : part.tensors)
            m_device.addOnLane(tensor.gradient, tensor.unreducedIn(slot) + ranks.rank() * tensor.shard, tensor.shard);
    });
    return {};
}

/// A kept operator that holds its gradient: what is outside this rank's chunk is used up, and not needed any more.
contract::Result<void> Communication::reduceScatterInPlace(const StepInstruction& instruction) {
    forEachPart(instruction, [&](const PartState& part) {
        for (const TensorState& tensor : part.tensors)
            m_tensors.push_back({tensor.gradient, {tensor.elements, tensor.shard}});
    });
    return shardRanks(instruction.op).collectives->reduceScatter(m_tensors);
}

contract::Result<void> Communication::allReduce(const StepInstruction& instruction) {
    bool overNodes = false;
    forEachPart(instruction, [&](const PartState& part) {
        for (const TensorState& tensor : part.tensors) {
            overNodes = tensor.updateSharded;
            const TensorState::Owned owned = tensor.owned(m_group.rank());
            const Ring& ring = *(overNodes ? m_across : m_all).ring;
            m_tensors.push_back({owned.gradient, ring.evenChunks(owned.count)});
        }
    });
    return (overNodes ? m_across : m_all).collectives->allReduce(m_tensors);
}

} // namespace shardscope::engine
