// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "planner/search/Planner.h"

#include <string>
#include <vector>

namespace shardscope::planner {

/// A plan among the best few by the additive cost, played out on two streams.
struct Finalist {
    std::string what; ///< "best", "batch 12", "without coalescing"
    PlanResultPointer plan;
    double simulatedStepSeconds = 0;
    double simulatedSamplesPerSecond = 0;
};

/// The best plan, those at the nearest smaller and larger micro-batches that fit, and the best one that coalesces
/// nothing, in the order of their simulated speed. Each is proven optimal for its restriction or as far as `budget`
/// lets it. What cannot be simulated (a step of too many instructions) is left out. `best` must be feasible.
std::vector<Finalist> scoreFinalists(const PlanResult& best, const SearchBudget& budget = {});

} // namespace shardscope::planner
