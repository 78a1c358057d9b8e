// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "planner/search/Planner.h"
#include "runtime/contract/BufferTable.h"
#include "runtime/contract/Plan.h"
#include "runtime/contract/Preset.h"
#include "runtime/contract/StepProgram.h"

#include <cstdint>
#include <vector>

namespace shardscope::planner {

/// Everything that one training step of a plan depends on, checked: what the timeline is simulated from and what two
/// plans are compared by.
struct PlannedStep {
    PlanRequest request; ///< the graph, the cluster, the cost formulas, the prefetch depth
    contract::Preset preset;
    contract::Training training;
    std::vector<contract::OperatorDecision> decisions; ///< one per operator, in forward order
    contract::StepProgram program;
    contract::BufferTable buffers;
    /// What the planner expects of the plan. A file's may have come from other cost formulas.
    double predictedStepSeconds = 0;
    std::int64_t predictedPeakBytes = 0;
    contract::Peaks predictedPeaks;

    const std::vector<contract::Operator>& operators() const { return request.graph->operators; }
    /// Instructions of a whole step, micro-steps included.
    std::int64_t executedInstructions() const;
};

/// A timeline holds at most this many instructions.
inline constexpr std::int64_t kMaximumExecutedInstructions = std::int64_t{1} << 23;

/// Errors: BadInput when the result is infeasible or its step has too many instructions.
contract::Result<PlannedStep> planStep(const PlanResult& result);

/// The step of a plan file, checked and not trusted: the operators come from its architecture; without one, `graph`
/// (the bundled graph of the plan's name, lowered for its sequence) must have the plan's sha256. The buffer table must
/// be the one that the decisions need. `file` stands in messages. Errors: BadInput.
contract::Result<PlannedStep> planStep(const contract::Plan& plan, const std::string& file,
                                       const GraphPointer& graph = nullptr);

/// The additive cost of each operator, priced as the search prices it (all but OperatorCost::memory).
std::vector<OperatorCost> priceOperators(const PlannedStep& step);

} // namespace shardscope::planner
