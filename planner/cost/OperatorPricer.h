// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "planner/cost/ComputeModel.h"
#include "planner/cost/LinkCost.h"
#include "planner/search/Planner.h"
#include "runtime/contract/Preset.h"
#include "runtime/contract/Sizing.h"

#include <cstdint>
#include <vector>

namespace shardscope::planner {

/// Replicated gradients of GPU runs are fused into buckets of this size (the default of PyTorch's DDP); our CPU runtime
/// reduces operator by operator.
inline constexpr double kBucketBytes = 25.0 * 1024 * 1024;

/// Bytes of one operator under one placement that do not depend on the batch.
struct PlacementBytes {
    contract::StateSize state;
    contract::SlotSize slot;
};

/// Seconds of the collectives of one operator, or of a coalesced block, before overlap. Independent of the batch.
struct Exchange {
    double gather = 0;     ///< one gather of everything sharded: once in forward, once or twice in backward
    double reduce = 0;     ///< per micro-step: reduce-scatters
    double gatherOnce = 0; ///< per step, before the first forward: updated weights
    double reduceOnce = 0; ///< per step, in the last backward
    double gatherSent = 0; ///< bytes sent by one device per gather
    double reduceSent = 0; ///< per micro-step
    double onceSent = 0;   ///< per step
};

/// What is known of an operator under one placement before a batch is chosen.
struct PlacementFacts {
    PlacementBytes bytes;
    Exchange exchange;
    double optimizerSeconds = 0;
    bool headAgain = false; ///< see OperatorPricer::computesHeadAgain()
};

/// Bytes and seconds of one operator under one placement: cost-model "Placements of an operator", "Compute and
/// optimizer time", "Overlap". Sizes come from contract's sizing (paper mode: the paper's plain formulas, no rounding
/// of buffers).
class OperatorPricer {
public:
    OperatorPricer(const PlanRequest& request, const contract::Preset& preset);

    PlacementBytes bytes(const contract::Operator& op, const contract::Placement& placement) const;
    std::int64_t keptBytes(const contract::Operator& op, std::int64_t samples, bool recomputed) const;

    /// Seconds of one forward of `samples` samples.
    double forwardSeconds(const contract::Operator& op, std::int64_t samples) const;

    /// What hides this operator's communication: the compute of the operator before it in forward, and after it in
    /// forward order (so before it in time) in backward.
    struct Neighbours {
        double forwardSeconds = 0;
        double backwardSeconds = 0;
    };
    struct Situation {
        std::int64_t samples = 1;
        std::int64_t accumulate = 1;
        bool recompute = false;
        bool endsBlock = false; ///< the last operator of a recomputed block does not run again
        Neighbours neighbours;
    };
    /// Everything but OperatorCost::memory.
    OperatorCost price(const contract::Operator& op, const contract::Placement& placement,
                       const Situation& situation) const;
    /// The same from facts known already. `forwardSeconds`: the operator's own, of the situation's samples.
    OperatorCost price(const PlacementFacts& facts, double forwardSeconds, const Situation& situation) const;

    /// price().stepSeconds() but for the last bit, without the parts: for tables of every placement at every batch.
    double stepSeconds(const PlacementFacts& facts, double forwardSeconds, const Situation& situation) const;

    /// Whether the backward pass makes the logits again: our runtime does so for a loss in chunks where the head is cut
    /// into parts, since a softmax needs those of all parts.
    bool computesHeadAgain(const contract::Operator& op, const contract::Placement& placement) const;
    /// Whether all of the head's work is done in its backward pass, chunk by chunk: a loss in chunks, a head in one
    /// part.
    bool computesHeadLate(const contract::Operator& op, const contract::Placement& placement) const;

    PlacementFacts facts(const contract::Operator& op, const contract::Placement& placement) const;
    /// The collectives of operators that are gathered together and reduced together: latency is paid once each.
    /// All are sharded in one slice or kept, in the same group.
    struct Member {
        const contract::Operator& op;
        contract::Placement placement;
    };
    Exchange coalesce(const std::vector<Member>& members) const;
    /// Only the communication of a coalesced block, whose weights are held from recomputation to backward.
    /// `neighbours`: the compute of the blocks (or single operators) beside it.
    OperatorCost priceCoalesced(const Exchange& exchange, std::int64_t accumulate, const Neighbours& neighbours) const;

    const LinkCost& links() const { return m_links; }
    /// Share of its latency that an all-reduce of this many bytes pays, since it is fused with others into a bucket.
    double bucketShare(double bytes) const;
    /// Share of communication that compute beside it hides, 0..1; 0 in paper mode and without prefetch.
    double overlapEfficiency() const { return m_overlapEfficiency; }

private:
    struct Exposed {
        double forward = 0, backward = 0; ///< seconds of a step
    };
    Exposed expose(const Exchange& exchange, std::int64_t accumulate, bool gathersAgain,
                   const Neighbours& neighbours) const;
    OperatorCost priceExchange(const Exchange& exchange, std::int64_t accumulate, bool gathersAgain,
                               const Neighbours& neighbours) const;
    Exchange exchange(const contract::Operator& op, const contract::Placement& placement) const;
    Exchange paperExchange(const contract::Operator& op, const contract::Placement& placement) const;
    double optimizerSeconds(const contract::Operator& op, const contract::Placement& placement) const;

    contract::Preset m_preset;
    LinkCost m_links;
    bool m_paperMode;
    bool m_isCpu;
    bool m_lossInChunks;
    ComputeModel m_compute;
    double m_overlapEfficiency;
};

} // namespace shardscope::planner
