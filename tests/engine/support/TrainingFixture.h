// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "runtime/contract/Plan.h"
#include "runtime/execute/Executor.h"

namespace shardscope::testing {

/// A GPT-2 whose dimensions divide by nothing.
contract::Architecture oddGpt2();

struct PlanRecipe {
    contract::Architecture architecture = oddGpt2();
    std::int64_t ranks = 1;
    std::int64_t sequence = 22;
    std::int64_t microBatch = 1;
    std::int64_t accumulate = 1;
    std::int32_t prefetch = 1;
    bool recompute = false;
    /// Placement of an operator by its index and name; replicate when empty.
    std::function<std::string(int, const std::string&)> placement;
};

/// A plan as the planner would write it, made with the contract's functions alone.
contract::Plan makePlan(const PlanRecipe& recipe);

/// Called on each rank's thread with its executor; returns what the rank has to say.
using RankBody = std::function<contract::Result<void>(engine::Executor&, const engine::PlanSetup&)>;
/// Runs the ranks of a plan as threads of this process, connected as in a real run. Returns the first failure.
contract::Result<void> runRanks(const contract::Plan& plan, std::uint64_t seed, const RankBody& body);

/// Losses of `steps` steps on builtin:addition, as seen by rank 0.
std::vector<double> trainLosses(const contract::Plan& plan, std::int64_t steps, std::uint64_t seed = 7);

} // namespace shardscope::testing
