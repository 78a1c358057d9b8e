// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "runtime/contract/Ledger.h"
#include "runtime/contract/Operator.h"
#include "runtime/contract/Placement.h"
#include "runtime/contract/Preset.h"
#include "runtime/contract/Training.h"

#include <cstdint>
#include <string>
#include <vector>

namespace shardscope::contract {

/// A run of consecutive output rows of an operator that is gathered, computed and reduced as one.
struct RowRange {
    std::int64_t begin = 0;
    std::int64_t end = 0;
    std::int64_t rows() const { return end - begin; }
};

/// One use of an operator: a sharded slice, or the part that is whole on every rank.
struct SlicePart {
    RowRange rows; ///< in units of the operator's split axis (maximumSlices() rows in all)
    bool sharded = false;
};

/// The parts of an operator under a placement, in the order they are used: the sharded slices, then the whole rest.
/// Slice t of s holds rows floor(t R / s) .. floor((t + 1) R / s) - 1. Operators with vectors only have one part.
std::vector<SlicePart> sliceParts(const Operator& op, const Placement& placement);

/// Elements of `tensor` inside `part` (its rows scaled to the tensor's own rows; a vector-only operator has one part).
std::int64_t partElements(const Operator& op, const TensorSpec& tensor, const SlicePart& part);
/// Elements one of `ranks` ranks stores of a flat tensor of n elements: ceil(n / ranks), zero-padded at the end.
constexpr std::int64_t shardElements(std::int64_t elements, std::int64_t ranks) {
    return (elements + ranks - 1) / ranks;
}

enum class BufferKind {
    Weight,   ///< stored weight (whole, or this rank's shard)
    Gradient, ///< stored gradient (whole, or this rank's shard)
    FirstMoment,
    SecondMoment,
    Master, ///< fp32 copy where weights are stored in less
};

/// Whether a kept operator's gradient is whole in its state, not in a slot.
bool holdsGradient(const Operator& op, const Placement& placement);

/// One state buffer of an operator.
struct StateBuffer {
    std::string suffix; ///< "weight", "weight.0" (slice 0), "bias.gradient", "weight.0.moment1"
    BufferKind kind = BufferKind::Weight;
    std::int32_t tensor = 0; ///< index into Operator::tensors
    std::int32_t part = 0;   ///< index into sliceParts()
    std::int64_t elements = 0;
    std::int64_t bytes = 0; ///< rounded up to kBufferAlignment
    std::int64_t bytesPerElement = 0;
    Category category = Category::Parameters;
};

/// The state of one operator on one rank, `ranks` being the size of its shard group. Tied operators own none. A kept
/// operator that is held, or whose storage is shared, keeps its gradient whole: over the micro-steps, or from its first
/// to its last use in the backward pass. Formula: cost-model "Placements of an operator".
std::vector<StateBuffer> sizeState(const Operator& op, const Placement& placement, std::int64_t ranks,
                                   const Preset& preset);

/// Bytes of one slot while this operator uses it (the largest of its parts), each tensor rounded up.
struct SlotSize {
    std::int64_t gatheredBytes = 0;
    std::int64_t unreducedBytes = 0;
    bool operator==(const SlotSize&) const = default;
    std::int64_t total() const { return gatheredBytes + unreducedBytes; }
};
SlotSize sizeSlot(const Operator& op, const Placement& placement, std::int64_t ranks, const Preset& preset);
/// The same for one part: where its tensors start inside the slot is the running sum in tensor order, weights first.
SlotSize sizeSlotOfPart(const Operator& op, const Placement& placement, std::int32_t part, std::int64_t ranks,
                        const Preset& preset);

/// Totals of sizeState by category, without building the list.
struct StateSize {
    std::int64_t parameters = 0;
    std::int64_t gradients = 0;
    std::int64_t optimizer = 0;
    std::int64_t total() const { return parameters + gradients + optimizer; }
};
StateSize sumState(const Operator& op, const Placement& placement, std::int64_t ranks, const Preset& preset);

/// Bytes of one activation for `samples` samples, rounded up.
std::int64_t activationBytes(const ActivationSpec& spec, const Preset& preset, std::int64_t samples);
/// Kept bytes of an operator; with `recomputed` only what survives (block inputs).
std::int64_t keptBytes(const Operator& op, const Preset& preset, std::int64_t samples, bool recomputed);

/// The live arena is cut into fixed regions used by every operator in turn.
struct LiveRegions {
    std::int64_t residualGradient = 0;   ///< (B, S, H) gradient of the residual stream
    std::int64_t activationGradient = 0; ///< gradient of an operator's input
    std::int64_t wideGradient = 0;       ///< gradient of its output, and scratch
    std::int64_t recompute = 0;          ///< intermediates of the largest recomputed block
    std::int64_t total() const { return residualGradient + activationGradient + wideGradient + recompute; }
};
/// `recomputedBlocks[b]` says whether block b is recomputed; may be shorter than the number of blocks (then false).
LiveRegions sizeLive(const std::vector<Operator>& operators, const Preset& preset, std::int64_t samples,
                     const std::vector<bool>& recomputedBlocks);
/// Intermediates that a block needs in the live arena when it is recomputed.
std::int64_t recomputeBytes(const std::vector<Operator>& operators, std::int32_t block, const Preset& preset,
                            std::int64_t samples);

/// Buffers that do not depend on placements.
struct BaseSize {
    std::int64_t tokens = 0;     ///< int32 (B, S)
    std::int64_t targets = 0;    ///< int32 (B, S)
    std::int64_t logits = 0;     ///< (ceil(B S / chunks), V) in compute precision, overwritten by its gradient
    std::int64_t losses = 0;     ///< fp32 (B, S); with chunks (3, B, S): log-sum-exp, target's logit, largest logit
    std::int64_t collective = 0; ///< scratch of the ring collectives; 0 for one rank
    std::int64_t total() const { return tokens + targets + logits + losses + collective; }
};
inline constexpr std::int64_t kCollectiveScratchBytes = 1 << 20;
BaseSize sizeBase(const std::vector<Operator>& operators, std::int64_t sequence, std::int64_t samples,
                  std::int64_t lossChunks, std::int64_t ranks, const Preset& preset);

} // namespace shardscope::contract
