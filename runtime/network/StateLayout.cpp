// SPDX-License-Identifier: GPL-3.0-or-later
#include "runtime/network/StateLayout.h"

#include "runtime/contract/Bytes.h"

namespace shardscope::engine {

using contract::BufferKind;

TensorState::Owned TensorState::owned(std::int64_t rank) const {
    if (!updateSharded)
        return {0, elements, weight, gradient, master, firstMoment, secondMoment};
    const std::int64_t begin = shardBegin(rank);
    return {begin,
            shardCount(rank),
            weightSharded ? weight : weight + begin,
            gradientSharded ? gradient : gradient + begin,
            master,
            firstMoment,
            secondMoment};
}

namespace {

/// Where each operator's tensors begin inside a slot, in bytes: behind those of the coalesced operators before it.
std::vector<std::int64_t> coalescedOffsets(const std::vector<contract::Operator>& operators,
                                           const std::vector<contract::OperatorDecision>& decisions, std::int64_t ranks,
                                           std::int64_t devicesPerNode, const contract::Preset& preset) {
    std::vector<std::int64_t> offsets(operators.size(), 0);
    std::int32_t block = -1;
    for (const contract::Operator& op : operators) {
        if (op.block <= block)
            continue;
        block = op.block;
        for (const contract::CoalescedMember& member :
             contract::coalescedMembers(operators, decisions, block, ranks, devicesPerNode, preset))
            offsets[static_cast<std::size_t>(member.op)] = member.offset;
    }
    return offsets;
}

} // namespace

StateLayout::StateLayout(const std::vector<contract::Operator>& operators,
                         const std::vector<contract::OperatorDecision>& decisions, std::int64_t ranks,
                         std::int64_t devicesPerNode, const contract::Preset& preset, BufferPool& pool) {
    const std::vector<std::int32_t> owners = contract::storageOwners(operators);
    m_operators.resize(operators.size());
    const std::vector<std::int64_t> slotOffsets = coalescedOffsets(operators, decisions, ranks, devicesPerNode, preset);
    for (std::size_t i = 0; i < operators.size(); ++i) {
        const auto owner = static_cast<std::size_t>(owners[i]);
        const contract::Placement& placement = decisions[owner].placement;
        OperatorState& state = m_operators[i];
        const std::int64_t group = contract::groupSize(placement, ranks, devicesPerNode);
        place(state, operators[i], placement, group, slotOffsets[i], preset);
        for (const contract::StateBuffer& buffer : contract::sizeState(operators[owner], placement, group, preset)) {
            TensorState& tensor =
                state.parts[static_cast<std::size_t>(buffer.part)].tensors[static_cast<std::size_t>(buffer.tensor)];
            const Elements memory{pool.take(pool.find(operators[owner].name + "." + buffer.suffix)),
                                  elementType(buffer.bytesPerElement)};
            switch (buffer.kind) {
            case BufferKind::Weight:
                tensor.weight = memory;
                tensor.weightSharded = state.parts[static_cast<std::size_t>(buffer.part)].slice.sharded;
                break;
            case BufferKind::Gradient:
                tensor.gradient = memory;
                tensor.gradientSharded =
                    tensor.weightSharded || (state.kind == contract::PlacementKind::Keep &&
                                             !contract::holdsGradient(operators[owner], placement));
                break;
            case BufferKind::FirstMoment:
                tensor.firstMoment = memory;
                break;
            case BufferKind::SecondMoment:
                tensor.secondMoment = memory;
                break;
            case BufferKind::Master:
                tensor.master = memory;
                break;
            }
            tensor.updateSharded = tensor.weightSharded || state.kind == contract::PlacementKind::Keep;
        }
    }
}

void StateLayout::place(OperatorState& state, const contract::Operator& op, const contract::Placement& placement,
                        std::int64_t group, std::int64_t slotOffset, const contract::Preset& preset) {
    state.kind = placement.kind;
    for (const contract::SlicePart& slice : contract::sliceParts(op, placement)) {
        PartState part{slice, {}};
        for (const contract::TensorSpec& spec : op.tensors) {
            TensorState tensor;
            tensor.elements = contract::partElements(op, spec, slice);
            tensor.columns = spec.columns;
            tensor.rows = tensor.elements / spec.columns;
            tensor.firstRow = tensor.rows == spec.rows ? 0 : slice.rows.begin;
            tensor.shard = contract::shardElements(tensor.elements, group);
            tensor.group = group;
            tensor.paddedElements = tensor.shard * group;
            tensor.decayed = spec.columns > 1 && op.role != contract::OperatorRole::PositionEmbedding;
            part.tensors.push_back(tensor);
        }
        // Inside a slot: the gathered tensors, then their unreduced gradients, each rounded up.
        std::int64_t offset = slotOffset;
        const auto bytes = [](const TensorState& tensor, std::int64_t bytesPerElement) {
            return contract::alignUp(tensor.paddedElements * bytesPerElement);
        };
        for (TensorState& tensor : part.tensors) {
            tensor.gatheredOffset = offset;
            tensor.gatheredType = elementType(preset.gatheredBytes);
            offset += slice.sharded ? bytes(tensor, preset.gatheredBytes) : 0;
        }
        for (TensorState& tensor : part.tensors) {
            tensor.unreducedOffset = offset;
            offset += bytes(tensor, preset.gradientBytes);
        }
        state.parts.push_back(std::move(part));
    }
}

} // namespace shardscope::engine
