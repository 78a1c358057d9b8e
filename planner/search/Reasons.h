// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "planner/search/PlanSearch.h"

namespace shardscope::planner {

/// The cheapest change of one operator to each other kind of placement, at the plan's batch and recomputation, cheapest
/// first; the first reason carries the next budget above the plan's at which the operator's placement differs, found by
/// solving budgets upwards to `largestBudget` and bisecting.
std::vector<Reason> explainOperator(const Planner& planner, const PlanSearch& search, const PlanResult& plan,
                                    std::int32_t op, std::int64_t largestBudget, const SearchBudget& budget);

} // namespace shardscope::planner
