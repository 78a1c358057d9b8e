// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "planner/search/Planner.h"

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace shardscope::app {

/// Everything a person chooses: what to train, on what, how, and within which memory. Undo goes over these.
/// Zero and empty mean automatic.
struct Choices {
    planner::GraphPointer graph; ///< lowered for its default sequence
    std::string graphArgument;   ///< what opens it again: a path or a bundled name
    contract::Cluster cluster;
    std::string clusterArgument;
    std::string devices; ///< as given to --devices

    std::int64_t sequence = 0;
    std::string precision;
    std::int64_t microBatch = 0;
    std::int64_t accumulate = 1;
    std::int64_t globalBatch = 0;
    contract::RecomputePolicy recompute = contract::RecomputePolicy::Auto;
    std::optional<contract::AttentionKernel> attention; ///< none: as the graph has it
    std::int32_t slicesUpTo = 16;
    std::int64_t lossChunks = 1;
    std::int32_t prefetchDepth = 1;
    planner::Granularity granularity = planner::Granularity::Operator;
    bool allowReplicate = true;
    bool allowKeep = true;
    bool allowShard = true;
    std::vector<planner::Pin> pins;
    std::vector<planner::RecomputePin> recomputePins;
    std::int64_t budgetBytes = 0; ///< 0: the whole card
    /// What a run or an out-of-memory message taught about the devices; already part of `cluster`.
    std::int64_t extraReserveBytes = 0;
    std::int64_t deviceBytes = 0; ///< 0: as the cluster says

    /// Puts the two above into a cluster as it was opened.
    void teachCluster();

    bool isComplete() const { return graph != nullptr && cluster.devices() > 0; }
    std::int64_t cardBytes() const { return cluster.device.memoryBytes; }
    std::int64_t budget() const { return budgetBytes > 0 ? budgetBytes : cardBytes(); }

    /// The planner's question, without the budget. Errors: BadInput for a sequence beyond the context.
    contract::Result<planner::PlanRequest> request() const;
    /// The same apart from the budget, so that the same planner answers.
    bool asksTheSame(const Choices& other) const;
};
using ChoicesPointer = std::shared_ptr<const Choices>;

/// A plan kept to look at beside others, as a session remembers it: what answers it again.
struct KeptPlan {
    std::string name;
    ChoicesPointer choices;
    double measuredSeconds = 0;     ///< of a step, measured elsewhere; 0: not said
    std::int64_t measuredBytes = 0; ///< peak of a device, measured elsewhere; 0: not said
};

/// The undo history: states between which steps lead.
struct History {
    std::vector<ChoicesPointer> states; ///< one more than steps
    std::vector<std::string> steps;     ///< what each is called
    std::size_t current = 0;            ///< index of the state that is shown
};

} // namespace shardscope::app
