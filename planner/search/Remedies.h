// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "planner/search/Planner.h"

#include <cstdint>
#include <string>
#include <vector>

namespace shardscope::planner {

/// A change of the request, or two at once, that make the limit feasible; verified by solving it.
struct Remedy {
    /// "recompute auto", "batch 1", "precision bf16-adam8bit, sequence 2048": options of shardscope-plan, without
    /// dashes
    std::string change;
    PlanRequest request;
    std::int64_t peakBytes = 0;
    double samplesPerSecond = 0;
    bool changesNumerics = false;
    bool isPair = false;
};

/// Changes of an infeasible request that fit `limitBytes`: every single one, and pairs of those that do not suffice
/// alone. Those that keep the numerics come first, then by speed (tokens per second, so that a shorter sequence is
/// compared fairly).
std::vector<Remedy> findRemedies(const PlanRequest& request, std::int64_t limitBytes, const SearchBudget& budget = {});

} // namespace shardscope::planner
