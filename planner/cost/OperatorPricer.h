// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

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

    const LinkCost& links() const { return m_links; }
    /// Share of its latency that an all-reduce of this many bytes pays, since it is fused with others into a bucket.
    double bucketShare(double bytes) const;
    /// Share of communication that compute beside it hides, 0..1; 0 in paper mode and without prefetch.
    double overlapEfficiency() const { return m_overlapEfficiency; }

private:
    OperatorCost priceCommunication(const contract::Operator& op, const contract::Placement& placement,
                                    const Situation& situation) const;
    OperatorCost priceCommunicationPaper(const contract::Operator& op, const contract::Placement& placement,
                                         bool recompute) const;
    double optimizerSeconds(const contract::Operator& op, const contract::Placement& placement) const;

    contract::Preset m_preset;
    LinkCost m_links;
    bool m_paperMode;
    bool m_isCpu;
    double m_flops;
    double m_memoryBandwidth;
    double m_overlapEfficiency;
};

} // namespace shardscope::planner
