// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "runtime/execute/Checkpoint.h"
#include "runtime/execute/InitialWeights.h"
#include "runtime/execute/TrainingListener.h"

#include <atomic>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace shardscope::engine {

struct TrainingRequest {
    std::int64_t steps = 200;
    std::uint64_t seed = 1;
    std::string runDirectory;
    bool resume = false;
    std::optional<FoundCheckpoint> resumeFrom;   ///< nothing: there is none
    const WeightFiles* initialWeights = nullptr; ///< to begin with, unless there is a checkpoint
    std::vector<std::string> passedOver;         ///< why newer checkpoints are not the one to resume from
    std::int64_t checkpointsKept = kCheckpointsKept;
    std::int64_t checkpointEvery = 0; ///< 0: only when the run is stopped or done
    std::int64_t evaluateEvery = 25;
    std::int64_t evaluationSamples = 64;
    std::int64_t residentAtStart = 0; ///< process memory before the arenas were mapped
};

struct TrainingEnd {
    std::int64_t steps = 0; ///< done in all, those before a resumption included
    bool stopped = false;
};

/// Trains one rank to the end: steps, evaluations, checkpoints. `stop` may be set by a signal handler; the step is
/// finished and a checkpoint written.
contract::Result<TrainingEnd> train(Executor& executor, const PlanSetup& setup, const TrainingRequest& request,
                                    const std::atomic<bool>& stop, TrainingListener& listener);

} // namespace shardscope::engine
