// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "runtime/data/Safetensors.h"
#include "runtime/execute/Executor.h"

#include <cstdint>
#include <memory>
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

/// Writes checkpoints of a run while it goes on: training stands still only until rank 0 has what the others send, then
/// a thread of rank 0 waits for the disk. A checkpoint is RUN_DIR/checkpoints/step-NNNNNNNN with model.safetensors
/// (Hugging Face tensor names), optimizer.safetensors, config.json and state.json (which holds the checksums of the
/// others), whole or not at all, independent of placements and ranks; all but the newest `kept` of its step and before
/// are removed.
class CheckpointWriter {
public:
    CheckpointWriter(Executor& executor, const PlanSetup& setup, std::string runDirectory,
                     std::int64_t kept = kCheckpointsKept);
    /// Waits for the disk.
    ~CheckpointWriter();
    CheckpointWriter(const CheckpointWriter&) = delete;
    CheckpointWriter& operator=(const CheckpointWriter&) = delete;

    /// All ranks call it; waits for the checkpoint before. Errors: RunFailed, on every rank.
    contract::Result<void> begin(CheckpointState state);
    /// All ranks call it: waits for the checkpoint that was begun last. Errors: RunFailed on rank 0.
    contract::Result<void> finish();

    struct Written {
        std::int64_t step = 0;
        std::string path;
    };
    /// What was written and not yet returned, on rank 0; none when there is nothing more. Errors: RunFailed, when it
    /// could not be.
    contract::Result<std::optional<Written>> poll();

private:
    struct Files;
    struct Task;
    contract::Result<void> awaitDisk();
    void collect();

    Executor& m_executor;
    const PlanSetup& m_setup;
    std::string m_runDirectory;
    std::int64_t m_kept;
    std::unique_ptr<Task> m_task;   ///< on rank 0, on its way to the disk
    std::vector<Written> m_written; ///< and not yet returned by poll(), the oldest first
    std::optional<contract::Error> m_failure;
};

/// Writes one checkpoint and waits for it; returns its folder. All ranks call it.
contract::Result<std::string> saveCheckpoint(Executor& executor, const PlanSetup& setup,
                                             const std::string& runDirectory, CheckpointState state,
                                             std::int64_t kept = kCheckpointsKept);

/// The newest checkpoint that is complete, undamaged and belongs to this plan's network; only that of `step`, if given.
/// `skipped` receives the reasons for those passed over.
std::optional<FoundCheckpoint> findCheckpoint(const PlanSetup& setup, const std::string& runDirectory,
                                              std::vector<std::string>& skipped,
                                              std::optional<std::int64_t> step = std::nullopt);
/// The steps of the checkpoints in a run's folder, in order, whole or not.
std::vector<std::int64_t> checkpointSteps(const std::string& runDirectory);
/// The tensors of a checkpoint's weights, float32, in the order of its file.
std::vector<TensorShape> weightShapes(const PlanSetup& setup);
/// The weights of a checkpoint that was found. Errors: BadInput.
contract::Result<std::unique_ptr<SafetensorsFile>> openWeights(const PlanSetup& setup, const FoundCheckpoint& found);
/// Fills this rank's weights and moments. Errors: BadInput.
contract::Result<void> loadCheckpoint(Executor& executor, const PlanSetup& setup, const FoundCheckpoint& found);

} // namespace shardscope::engine
