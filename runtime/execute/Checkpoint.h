// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "runtime/execute/Executor.h"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace shardscope::engine {

/// What a checkpoint says besides its tensors: where in the data the run is.
struct CheckpointState {
    std::int64_t step = 0; ///< optimizer steps done
    std::uint64_t seed = 0;
};

struct FoundCheckpoint {
    std::string path;
    CheckpointState state;
};

inline constexpr std::int64_t kCheckpointsKept = 2;

/// Writes RUN_DIR/checkpoints/step-NNNNNNNN with model.safetensors (Hugging Face tensor names), optimizer.safetensors,
/// config.json and state.json (which holds the checksums of the others), whole or not at all, and removes all but the
/// newest `kept` of this step and before. All ranks call it; rank 0 writes what the others send piece by piece.
/// Independent of placements and ranks. Returns the folder.
contract::Result<std::string> saveCheckpoint(Executor& executor, const PlanSetup& setup,
                                             const std::string& runDirectory, CheckpointState state,
                                             std::int64_t kept = kCheckpointsKept);

/// The newest checkpoint that is complete, undamaged and belongs to this plan's network. `skipped` receives the reasons
/// for those passed over.
std::optional<FoundCheckpoint> findCheckpoint(const PlanSetup& setup, const std::string& runDirectory,
                                              std::vector<std::string>& skipped);
/// Fills this rank's weights and moments. Errors: BadInput.
contract::Result<void> loadCheckpoint(Executor& executor, const PlanSetup& setup, const FoundCheckpoint& found);

} // namespace shardscope::engine
