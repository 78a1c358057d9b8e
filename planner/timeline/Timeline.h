// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "planner/timeline/MemoryTimeline.h"
#include "planner/timeline/PlannedStep.h"
#include "planner/timeline/Waterfall.h"
#include "runtime/contract/StepProgram.h"

#include <cstdint>
#include <vector>

namespace shardscope::planner {

/// What runs side by side on one device. The runtime has one first-in first-out lane for gathers and reductions alike.
enum class Stream { Compute, Communication };

/// Something that ran on a stream. Instructions that take no time in the cost formulas leave none.
struct Interval {
    Stream stream = Stream::Compute;
    contract::StepCode phase = contract::StepCode::Forward;
    std::int32_t op = -1; ///< index into the graph's operators; -1: of all
    std::int32_t part = -1;
    std::int32_t microStep = 0;
    std::int64_t begin = 0; ///< picoseconds since the step began
    std::int64_t end = 0;
    std::int64_t bytes = 0; ///< of a collective: the whole gathered or unreduced message
};

/// One simulated training step.
struct Timeline {
    std::int64_t stepPicoseconds = 0;
    Waterfall waterfall;                       ///< sums to stepPicoseconds
    std::int64_t computePicoseconds = 0;       ///< the compute stream was busy
    std::int64_t communicationPicoseconds = 0; ///< all collectives, as if nothing were beside them
    std::int64_t exposedPicoseconds = 0;       ///< the compute stream waited
    std::int64_t fixedPicoseconds = 0;         ///< of all collectives, exposed or not
    std::int64_t collectives = 0;              ///< how many
    std::int64_t globalBatch = 0;
    MemoryTimeline memory;
    std::vector<Interval> intervals; ///< in the order of their end, by stream; empty unless recorded

    double stepSeconds() const { return toSeconds(stepPicoseconds); }
    double samplesPerSecond() const { return static_cast<double>(globalBatch) / stepSeconds(); }
};

/// When the updated weights of kept operators are gathered.
enum class UpdatedGather {
    EndOfStep,      ///< where the step program has them, awaited by its last instruction: what the runtime does
    BeforeFirstUse, ///< of the step before, each handed over one operator ahead of its first forward: what the additive
                    ///< cost assumes
};

struct SimulationOptions {
    UpdatedGather updatedGather = UpdatedGather::EndOfStep;
    bool record = true; ///< keep intervals and memory changes; without, only totals and peaks
};

/// Runs a plan's step program on two streams as the runtime would: compute in program order; collectives on one lane in
/// the order in which they are handed over; a slot's user waits for the slot's newest job, and a gather is handed over
/// when the slot's user before it is done. Deterministic. Errors: BadInput when the step is too long to hold.
contract::Result<Timeline> simulate(const PlannedStep& step, const SimulationOptions& options = {});

/// planStep + simulate. Errors: BadInput, also for infeasible results.
contract::Result<Timeline> simulate(const PlanResult& result, const SimulationOptions& options = {});

} // namespace shardscope::planner
