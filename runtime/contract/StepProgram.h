// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "runtime/contract/Operator.h"
#include "runtime/contract/Placement.h"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace shardscope::contract {

enum class StepCode {
    Load,          ///< fill tokens and targets with the next micro-batch
    Gather,        ///< hand to the communication lane: all-gather a sharded part into its slot
    Forward,       ///< compute a part; waits for its gather
    Loss,          ///< softmax cross-entropy; logits become their gradient
    Recompute,     ///< forward of a part again, inside the backward pass
    Backward,      ///< input and weight gradients of a part; waits for its gather and for its slot's last reduction
    ReduceScatter, ///< communication lane: reduce a part's unreduced gradient from its slot into the stored shard
                   ///< (adding); with slot -1 (a kept operator that holds its gradient): in place in its whole
                   ///< stored gradient, last micro-step only
    AllReduce,     ///< communication lane, last micro-step only: sum the whole parts' gradients over the ranks
    Clip,          ///< wait for all communication, global gradient norm, clip factor
    Update,        ///< optimizer on what this rank owns of one operator
    GatherUpdated, ///< communication lane: all-gather updated weights of a kept operator
    Finish,        ///< wait for all communication
};
std::string_view stepCodeName(StepCode code);

/// One instruction. `part` indexes sliceParts(); `slot` is -1 when no slot is used.
///
/// Gather, ReduceScatter and GatherUpdated with part kWholeBlock speak of all coalesced operators of the block of `op`
/// (its first coalesced one), in one collective; see coalescedMembers().
struct StepInstruction {
    static constexpr std::int32_t kWholeBlock = -1;
    StepCode code = StepCode::Load;
    std::int32_t op = -1;
    std::int32_t part = -1;
    std::int32_t slot = -1;
    bool operator==(const StepInstruction&) const = default;
};

/// The program of one step: [0, microStepEnd) runs `accumulate` times, the rest once. Compute instructions run in order
/// on the compute thread; communication instructions are handed, in order, to one first-in first-out lane. AllReduce
/// inside the micro-step section is executed in the last micro-step only.
///
/// Slots: the uses that need one take slots 0..prefetch round-robin. The gather of use k + prefetch is issued right
/// after the compute and reduction of use k - 1, so it overlaps the compute of uses k .. k + prefetch - 1; since the
/// lane is first-in first-out, waiting for a slot's newest job is enough to own it.
struct StepProgram {
    std::vector<StepInstruction> instructions;
    std::int32_t microStepEnd = 0;
    std::int32_t slotCount = 0; ///< 1 + prefetch depth when any operator needs a slot, else 0
};

struct OperatorDecision {
    Placement placement;
    bool recompute = false; ///< of the operator's block
    /// Gathered and reduced together with the other coalesced operators of its block, in one slot that is held from the
    /// first of them to the last (and from recomputation to backward).
    bool coalesced = false;
};

/// Why these decisions cannot be coalesced as they say, and for which operator. In a block with coalesced operators
/// (sharded in one piece, or kept and not held, all in one group) no other operator may need a slot.
struct CoalescingFault {
    std::int32_t op = -1;
    std::string reason;
};
std::optional<CoalescingFault> findCoalescingFault(const std::vector<Operator>& operators,
                                                   const std::vector<OperatorDecision>& decisions);

/// Operators run forward in order and backward in reverse. In a recomputed block all parts but those of the block's
/// last operator (whose output is not needed) run again just before the block's backward.
StepProgram buildStepProgram(const std::vector<Operator>& operators, const std::vector<OperatorDecision>& decisions,
                             std::int32_t prefetchDepth);

/// The decision that governs an operator's storage: its own, or that of the operator it is tied to.
std::vector<std::int32_t> storageOwners(const std::vector<Operator>& operators);

} // namespace shardscope::contract
