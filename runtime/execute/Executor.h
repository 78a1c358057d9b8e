// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "runtime/collective/Lane.h"
#include "runtime/data/Dataset.h"
#include "runtime/device/Device.h"
#include "runtime/execute/Communication.h"
#include "runtime/execute/PlanSetup.h"
#include "runtime/network/Decoder.h"
#include "runtime/network/StateLayout.h"

#include <array>
#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace shardscope::engine {

struct StepOutcome {
    double loss = 0; ///< mean over the counted tokens of the global batch
    double learningRate = 0;
    double gradientNorm = 0; ///< before clipping
    double seconds = 0;
    double exposedSeconds = 0;  ///< of them the compute thread waited for communication
    bool stopRequested = false; ///< by any rank; all ranks see the same
};

struct Evaluation {
    double loss = 0;
    AnswerCount answers;
};

/// An instruction as it ran, in seconds since the step began.
struct TracedInstruction {
    contract::StepInstruction instruction;
    bool communication = false;
    double start = 0;
    double end = 0;
};

/// Runs step programs on one rank: compute instructions on the calling thread, communication on a lane of its own.
/// After the first step nothing is allocated on either thread.
class Executor {
public:
    /// Maps the arenas and connects the rings; on CPU cores unless there is another device. Errors: RunFailed.
    static contract::Result<std::unique_ptr<Executor>> create(const PlanSetup& setup, Group& group, const Dataset& data,
                                                              std::unique_ptr<Device> device = nullptr);
    ~Executor();

    /// Fills the weights from the seed.
    void initialize(std::uint64_t seed);
    /// One optimizer step; `step` counts from 1. `traced`: fills trace().
    contract::Result<StepOutcome> runStep(std::int64_t step, std::int64_t steps, bool stopRequested, bool traced);
    /// Loss and exact matches over the first `samples` held-out samples.
    contract::Result<Evaluation> evaluate(std::int64_t samples);
    /// The logits (V) that follow token `position` of the first held-out sample.
    contract::Result<std::vector<float>> predict(std::int64_t position);
    /// Runs something on the communication thread and waits for it.
    contract::Result<void> onLane(std::function<contract::Result<void>(Ring&)> errand);
    /// Waits until the communication thread has done everything.
    contract::Result<void> awaitLane();

    const StateLayout& layout() const { return m_layout; }
    const BufferPool& pool() const { return m_pool; }
    const std::vector<TracedInstruction>& trace() const { return m_trace; }
    Device& device() const { return *m_device; }
    const Communication& communication() const { return *m_communication; }
    int rank() const { return m_group.rank(); }
    std::int64_t currentStep() const { return m_step; }
    /// What was going on when the latest step failed: "forward h.3.mlp.c_fc", or what was begun outside of a step.
    std::string phase() const;
    /// Names what the rank does outside of steps ("checkpoint"); an empty name ends it.
    void beginPhase(std::string name) { m_phase = std::move(name); }
    /// "forward h.3.mlp.c_fc"
    std::string describe(const contract::StepInstruction& instruction) const;

    /// A sign of life, for another thread.
    struct Pulse {
        std::uint64_t instructions = 0; ///< begun so far
        bool computing = false;         ///< inside an instruction, and not waiting for communication
        contract::StepInstruction instruction;
    };
    Pulse pulse() const;
    /// 0 before the first step is done.
    double longestStepSeconds() const { return m_longestStep; }

private:
    Executor(const PlanSetup& setup, Group& group, const Dataset& data, std::unique_ptr<Device> device, Arenas arenas);
    contract::Result<void> connect();
    contract::Result<void> handle(const Lane::Job& job);

    bool run(std::size_t instruction, std::int64_t microStep);
    /// The program up to its loss, on what the caller put into tokens and targets.
    contract::Result<void> runForward();
    bool runCompute(std::size_t instruction);
    void load(std::int64_t microStep);
    bool clip();
    contract::Result<void> checkFinite(double wholeSquares);
    void update(std::int32_t op);
    void post(const contract::StepInstruction& instruction);
    /// Hands a job to the communication thread, and waits for one, with the device's streams in the same order.
    Lane::Ticket hand(const contract::StepInstruction& job);
    bool await(Lane::Ticket ticket);
    bool drain() { return await(m_handed); }
    bool fail(contract::Error error);
    void findSlotReleases();
    void takeSlot(std::int32_t slot);
    void giveBackSlot(std::int32_t slot);
    void clearPadding(const contract::StepInstruction& instruction);
    void note(const contract::StepInstruction& instruction, bool communication, double start);
    double now() const;
    void begin(std::size_t instruction);
    contract::Error failure() const;

    struct Slot {
        BufferId gathered = kNoBuffer;
        BufferId unreduced = kNoBuffer;
        Lane::Ticket newest = 0;
    };

    const PlanSetup& m_setup;
    Group& m_group;
    const Dataset& m_data;
    std::unique_ptr<Device> m_device; ///< outlives what lies in its memory
    BufferPool m_pool;
    StateLayout m_layout;
    std::unique_ptr<Decoder> m_decoder;
    std::vector<Slot> m_slots;
    std::vector<std::byte*> m_slotBases;
    std::vector<bool> m_releasesSlot; ///< by instruction
    std::unique_ptr<Communication> m_communication;
    std::function<contract::Result<void>(Ring&)> m_errand;
    Lane::Ticket m_handed = 0;  ///< by the compute thread
    Lane::Ticket m_handled = 0; ///< by the communication thread
    std::string m_phase;
    std::optional<contract::Error> m_failure; ///< of the compute thread
    static constexpr std::int32_t kIdle = -1;
    std::atomic<std::int32_t> m_current{kIdle}; ///< the instruction being run
    std::int32_t m_latest = kIdle;              ///< the instruction that was run last
    std::atomic<std::uint64_t> m_begun{0};
    std::atomic<double> m_longestStep{0};

    // The step being run.
    std::atomic<std::int64_t> m_step{0};
    std::int64_t m_steps = 0;
    bool m_stopRequested = false;
    StepSums m_sums;
    enum Scalar { kLoss, kTokens, kSquares, kStop, kBrokenLosses, kBrokenRanks, kScalarCount };
    std::array<double, kScalarCount> m_scalars{};
    StepOutcome m_outcome;
    double m_gradientScale = 1;
    bool m_traced = false;
    double m_stepStart = 0;
    std::vector<TracedInstruction> m_trace;
    std::vector<TracedInstruction> m_laneTrace;

    std::unique_ptr<Lane> m_lane; ///< last, so that it ends first
};

} // namespace shardscope::engine
