// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "planner/search/PlanSearch.h"

namespace shardscope::planner {

/// Turns a search's outcome into the immutable answer: decisions, bytes and seconds of every operator, the ledger of a
/// device, peaks, counts and the certificate. Infeasible outcomes say what binds.
PlanResultPointer assemblePlan(const PlanSearch& search, std::int64_t limitBytes, const SearchOutcome& outcome,
                               double solveMilliseconds);

} // namespace shardscope::planner
