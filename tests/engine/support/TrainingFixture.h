// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "runtime/execute/Executor.h"
#include "support/PlanRecipe.h"

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace shardscope::testing {

/// Called on each rank's thread with its executor; returns what the rank has to say.
using RankBody = std::function<contract::Result<void>(engine::Executor&, const engine::PlanSetup&)>;
/// Makes what a rank computes with, where that is not a CPU.
using DeviceMaker = std::function<std::unique_ptr<engine::Device>()>;
/// Runs the ranks of a plan as threads of this process, connected as in a real run, on builtin:addition unless there is
/// other `data`. Returns the first failure.
contract::Result<void> runRanks(const contract::Plan& plan, std::uint64_t seed, const RankBody& body,
                                const engine::Dataset* data = nullptr, const DeviceMaker& makeDevice = {});

/// Outcomes of `steps` steps on builtin:addition, as seen by rank 0.
std::vector<engine::StepOutcome> trainOutcomes(const contract::Plan& plan, std::int64_t steps, std::uint64_t seed = 7,
                                               const DeviceMaker& makeDevice = {});
/// A network's weights by their Hugging Face names.
using WeightMap = std::map<std::string, std::vector<float>>;
/// The same, and the whole weights after the last step.
std::vector<engine::StepOutcome> trainOutcomes(const contract::Plan& plan, std::int64_t steps, std::uint64_t seed,
                                               WeightMap& weights);
/// Losses of `steps` steps on builtin:addition, as seen by rank 0.
std::vector<double> trainLosses(const contract::Plan& plan, std::int64_t steps, std::uint64_t seed = 7);

} // namespace shardscope::testing
