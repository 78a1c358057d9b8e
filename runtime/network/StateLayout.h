// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "runtime/contract/Sizing.h"
#include "runtime/contract/StepProgram.h"
#include "runtime/device/Elements.h"
#include "runtime/memory/BufferPool.h"

#include <algorithm>
#include <cstdint>
#include <vector>

namespace shardscope::engine {

/// The state of one tensor inside one part of an operator, on one rank.
struct TensorState {
    std::int64_t firstRow = 0; ///< of the whole tensor
    std::int64_t rows = 0;     ///< of this part
    std::int64_t columns = 0;
    std::int64_t elements = 0; ///< rows * columns
    std::int64_t shard = 0;    ///< elements of a shard, padding included
    bool weightSharded = false;
    bool gradientSharded = false;
    bool updateSharded = false; ///< this rank updates its shard only (moments are shards)
    bool decayed = false;       ///< weight decay applies
    Elements weight;
    Elements gradient;
    Elements master; ///< float32 weights where `weight` is less; none where it is the only copy
    Elements firstMoment;
    Elements secondMoment;
    ElementType gatheredType = ElementType::Float32;
    std::int64_t gatheredOffset = 0;  ///< bytes from the start of a slot
    std::int64_t unreducedOffset = 0; ///< bytes from the start of a slot
    std::int64_t group = 1;           ///< ranks that share the shards, all or those of a node; consecutive
    std::int64_t paddedElements = 0;  ///< shard * group

    std::int64_t shardBegin(std::int64_t rank) const { return std::min(elements, rank % group * shard); }
    std::int64_t shardCount(std::int64_t rank) const {
        return std::min(elements, (rank % group + 1) * shard) - shardBegin(rank);
    }

    /// What one rank updates: equally long stretches of weight, gradient, master and moments.
    struct Owned {
        std::int64_t begin = 0; ///< index into the part's elements
        std::int64_t count = 0;
        Elements weight;
        Elements gradient;
        Elements master;
        Elements firstMoment;
        Elements secondMoment;
    };
    Owned owned(std::int64_t rank) const;

    /// This tensor in a slot: whole weights, and room for whole gradients, padding included.
    Elements gatheredIn(std::byte* slot) const { return {slot + gatheredOffset, gatheredType}; }
    Elements unreducedIn(std::byte* slot) const { return {slot + unreducedOffset, gradient.type}; }
    /// The weights in their best precision, and whether they are a shard.
    Elements exactWeight() const { return master ? master : weight; }
    bool exactWeightSharded() const { return master ? updateSharded : weightSharded; }
};

struct PartState {
    contract::SlicePart slice;
    std::vector<TensorState> tensors; ///< in the order of Operator::tensors
};

struct OperatorState {
    std::vector<PartState> parts;
    contract::PlacementKind kind = contract::PlacementKind::Replicate;
};

/// Where every weight, gradient and moment of this rank lies. A tied operator has the entries of its owner.
class StateLayout {
public:
    StateLayout(const std::vector<contract::Operator>& operators,
                const std::vector<contract::OperatorDecision>& decisions, std::int64_t ranks,
                std::int64_t devicesPerNode, const contract::Preset& preset, BufferPool& pool);

    const OperatorState& of(std::int32_t op) const { return m_operators[static_cast<std::size_t>(op)]; }
    const TensorState& tensor(std::int32_t op, std::int32_t part, std::size_t index) const {
        return of(op).parts[static_cast<std::size_t>(part)].tensors[index];
    }
    std::int32_t count() const { return static_cast<std::int32_t>(m_operators.size()); }

private:
    void place(OperatorState& state, const contract::Operator& op, const contract::Placement& placement,
               std::int64_t group, std::int64_t slotOffset, const contract::Preset& preset);
    std::vector<OperatorState> m_operators;
};

} // namespace shardscope::engine
