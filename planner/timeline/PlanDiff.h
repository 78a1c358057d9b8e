// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "planner/timeline/PlannedStep.h"
#include "planner/timeline/Waterfall.h"

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace shardscope::planner {

/// The additive step time of a plan, operator by operator: what the search minimises.
struct AdditiveTime {
    std::vector<Waterfall> operators; ///< per operator, in forward order; each sums to what the search counts
    Waterfall total;
    std::int64_t collectives = 0; ///< of a step
};
/// Exposed seconds of an operator are divided into those of bytes and the fixed cost of its collectives as its gathers
/// (its reductions) are as a whole. Errors: BadInput when the step is too long to hold.
contract::Result<AdditiveTime> additiveTime(const PlannedStep& step);

/// One operator in one of two plans.
struct OperatorSide {
    contract::Placement placement;
    bool recompute = false;
    bool coalesced = false;
    Waterfall time; ///< additive, of a step
};

struct OperatorDifference {
    std::string name;
    std::string blockName;            ///< empty outside blocks
    std::optional<OperatorSide> a, b; ///< nothing where a plan's graph does not have the operator

    /// Placement, slices, group, coalescing or recomputation differ.
    bool differs() const;
};

/// What one of two plans takes as a whole.
struct PlanSide {
    Waterfall time; ///< additive, of a step
    std::int64_t collectives = 0;
    std::int64_t microBatch = 0;
    std::int64_t accumulate = 0;
    std::int64_t globalBatch = 0;
    std::int64_t peakBytes = 0; ///< predicted

    /// Seconds of a sample of the global batch, by cause.
    std::array<double, kCauseCount> secondsPerSample() const;
};

/// Two plans side by side. Positive differences mean that B takes more.
struct PlanDiff {
    std::vector<OperatorDifference> operators; ///< in A's forward order, then what only B has
    PlanSide a, b;

    /// B minus A by cause; its parts sum to the difference of the step times exactly.
    Waterfall difference() const { return b.time - a.time; }
    /// Steps of different global batches do different work: compare secondsPerSample() then.
    bool sameBatch() const { return a.globalBatch == b.globalBatch; }
    std::int64_t differingOperators() const;
};

/// Errors: BadInput when a step is too long to hold.
contract::Result<PlanDiff> comparePlans(const PlannedStep& a, const PlannedStep& b);

} // namespace shardscope::planner
