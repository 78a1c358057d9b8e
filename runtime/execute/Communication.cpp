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
    std::unique_ptr<Communication> communication(new Communication(setup, layout));
    // Every rank has the same table, so its arenas are laid out alike: what the ring asks for.
    std::vector<MemoryRegion> regions;
    for (const contract::Arena arena :
         {contract::Arena::Parameters, contract::Arena::Gradients, contract::Arena::Slots})
        if (pool.arenas().bytes(arena) > 0)
            regions.push_back({pool.arenas().base(arena), pool.arenas().bytes(arena)});
    MemoryRegion scratch;
    if (const BufferId id = pool.find("collective"); id != kNoBuffer)
        scratch = {reinterpret_cast<std::byte*>(pool.take(id)), pool.bytes(id)};
    auto ring = Ring::create(group, std::move(regions), scratch);
    if (!ring)
        return tl::unexpected(ring.error());
    communication->m_ring = std::move(*ring);
    std::size_t tensors = 0; // of all operators: more than any block has
    for (const contract::Operator& op : setup.operators)
        tensors += op.tensors.size();
    communication->m_tensors.reserve(tensors);
    return communication;
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
        forEachPart(instruction, [&](const PartState& part) {
            for (const TensorState& tensor : part.tensors)
                m_tensors.push_back({tensor.gradient, m_ring->evenChunks(tensor.elements)});
        });
        return m_ring->allReduce(m_tensors);
    case StepCode::GatherUpdated:
        forEachPart(instruction, [&](const PartState& part) {
            for (const TensorState& tensor : part.tensors)
                if (!tensor.weightSharded) // sharded members of a coalesced block are gathered before their use
                    m_tensors.push_back({tensor.weight, {tensor.elements, tensor.shard}});
        });
        return m_ring->allGather(m_tensors);
    default:
        return {};
    }
}

contract::Result<void> Communication::gather(const StepInstruction& instruction, float* slot) {
    forEachPart(instruction, [&](const PartState& part) {
        for (const TensorState& tensor : part.tensors) {
            if (!tensor.weightSharded) // a kept member of a coalesced block
                continue;
            float* const whole = slot + tensor.gatheredOffset;
            std::memcpy(whole + m_ring->rank() * tensor.shard, tensor.weight,
                        static_cast<std::size_t>(tensor.shard) * sizeof(float));
            m_tensors.push_back({whole, {tensor.paddedElements, tensor.shard}});
        }
    });
    return m_ring->allGather(m_tensors);
}

contract::Result<void> Communication::reduceScatter(const StepInstruction& instruction, float* slot) {
    forEachPart(instruction, [&](const PartState& part) {
        for (const TensorState& tensor : part.tensors)
            m_tensors.push_back({slot + tensor.unreducedOffset, {tensor.paddedElements, tensor.shard}});
    });
    if (auto done = m_ring->reduceScatter(m_tensors); !done)
        return done;
    forEachPart(instruction, [&](const PartState& part) {
        for (const TensorState& tensor : part.tensors) {
            const float* const sum = slot + tensor.unreducedOffset + m_ring->rank() * tensor.shard;
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
    return m_ring->reduceScatter(m_tensors);
}

} // namespace shardscope::engine
