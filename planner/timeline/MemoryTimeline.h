// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "planner/timeline/PlannedStep.h"
#include "runtime/contract/Ledger.h"

#include <cstddef>
#include <cstdint>
#include <vector>

namespace shardscope::planner {

/// Bytes of one category that begin (positive) or cease to be in use.
struct MemoryChange {
    std::int64_t picoseconds = 0;
    contract::Category category = contract::Category::Activations;
    std::int64_t bytes = 0;
};

/// Bytes in use on one device over one step: of what the arenas reserve, what holds data that somebody still needs.
/// State, collective buffers and the cluster's reserve are constant; kept activations grow in forward and fall in
/// backward; a slot holds gathered weights from the start of their gather to the end of their use, and an unreduced
/// gradient from its backward to the end of its reduction.
struct MemoryTimeline {
    contract::Ledger constant;         ///< in use all the time
    std::vector<MemoryChange> changes; ///< in the order of time; empty unless recorded
    std::int64_t reservedBytes = 0;    ///< what the arenas take, and the cluster's reserve; never exceeded

    // Peaks of bytes in use. The arenas are taken whole before the first step, so optimizer state exists in it already
    // and a resumed run peaks where a fresh one does.
    contract::Peaks peaks;
    std::int64_t peakBytes = 0; ///< the largest of them
    std::int64_t peakPicoseconds = 0;
    std::int32_t peakInstruction = -1; ///< of the step program
    contract::Ledger atPeak;
};

/// The largest total in use in a window of time, with its ledger.
struct MemorySample {
    std::int64_t picoseconds = 0; ///< when that largest total is reached
    contract::Ledger bytes;
};
/// At most `windows` samples over a step of `stepPicoseconds`, one per window: what a chart of that width can show
/// without missing a peak. Needs recorded changes.
std::vector<MemorySample> sampleMemory(const MemoryTimeline& memory, std::int64_t stepPicoseconds, std::size_t windows);

/// The memory that a cluster's plans cannot use, by category.
contract::Ledger reserveLedger(const contract::Cluster& cluster);

/// Follows a step as it is simulated. Calls come in the order of time.
class MemoryTracker {
public:
    MemoryTracker(const PlannedStep& step, bool record);

    /// An instruction of the compute thread (or the handing over of a communication job) begins or ends.
    void instructionBegins(std::int32_t index, std::int64_t now);
    void instructionEnds(std::int32_t index, std::int64_t now);
    /// A job of the communication lane begins or ends.
    void jobBegins(const contract::StepInstruction& job, std::int64_t now);
    void jobEnds(const contract::StepInstruction& job, std::int64_t now);
    /// All micro-steps are done and the lane is empty: what follows is the optimizer step.
    void optimizerBegins(std::int64_t now);

    MemoryTimeline finish();

private:
    struct Slot {
        contract::SlotSize inUse;
        bool wholeBlock = false; ///< weights of all operators of a block, needed until the slot is written again
    };
    void change(contract::Category category, std::int64_t bytes, std::int64_t now);
    void releaseSlot(Slot& slot, std::int64_t now);
    void notePeak(std::int64_t now);
    contract::SlotSize slotSize(const contract::StepInstruction& instruction) const;

    const PlannedStep& m_step;
    bool m_record;
    std::vector<std::int32_t> m_owners;
    std::vector<std::vector<const contract::Buffer*>> m_begins; ///< per instruction of a micro-step
    std::vector<std::vector<const contract::Buffer*>> m_ends;
    std::vector<Slot> m_slots;
    contract::Ledger m_inUse;
    std::int64_t m_total = 0;
    std::int32_t m_current = -1;
    bool m_optimizing = false;
    MemoryTimeline m_memory;
};

} // namespace shardscope::planner
