// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "runtime/contract/Plan.h"
#include "runtime/contract/StepProgram.h"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace shardscope::engine {

/// What a run takes from a plan, checked and worked out for a number of ranks.
struct PlanSetup {
    contract::Architecture architecture;
    std::string graphSha256;
    std::vector<contract::Operator> operators;
    std::vector<contract::OperatorDecision> decisions;
    contract::Training training; ///< micro-batch and accumulation as they are run
    contract::Preset preset;
    std::int64_t ranks = 1;
    std::int64_t devicesPerNode = 1; ///< consecutive ranks that an operator placed "@node" is sharded over
    std::int32_t prefetchDepth = 1;
    contract::StepProgram program;
    contract::BufferTable table;
    contract::Ledger predicted;
    bool resized = false; ///< for another number of ranks than the plan's

    std::int64_t samplesPerRank() const { return training.microBatch * training.accumulate; }
    std::int64_t tokensPerStep() const { return training.globalBatch * training.sequence; }
};

/// What the ranks of a run compute with.
enum class DeviceKind { Cpu, Cuda };

struct SetupRequest {
    std::optional<std::int64_t> workers; ///< instead of the plan's ranks
    std::optional<double> learningRate;  ///< instead of the plan's
    DeviceKind device = DeviceKind::Cpu;
};

/// Errors: BadInput, naming the field of the plan that this runtime cannot run, or the buffer that is too small.
contract::Result<PlanSetup> preparePlan(const contract::Plan& plan, const SetupRequest& request);

/// The plan's network on one rank, one sequence at a time, with everything in place: to compute with its weights.
/// Errors: BadInput, naming the field of the plan that this runtime cannot run.
contract::Result<PlanSetup> prepareSampling(const contract::Plan& plan);

/// The plan's network, to read what a run has written of it: operators, architecture and preset, of any precision, and
/// nothing to compute with. Errors: BadInput, when it is not a network of this runtime.
contract::Result<PlanSetup> prepareReading(const contract::Plan& plan);

} // namespace shardscope::engine
