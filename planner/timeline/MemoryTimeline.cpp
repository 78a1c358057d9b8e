// SPDX-License-Identifier: GPL-3.0-or-later
#include "planner/timeline/MemoryTimeline.h"

#include "runtime/contract/Sizing.h"

#include <algorithm>

namespace shardscope::planner {

using contract::Category;
using contract::Ledger;
using contract::StepCode;
using contract::StepInstruction;

Ledger reserveLedger(const contract::Cluster& cluster) {
    Ledger ledger;
    for (const contract::ReserveLine& line : cluster.reserve) {
        const Category category = line.what.find("collective") != std::string::npos ? Category::Collective
                                  : line.what.find("slack") != std::string::npos    ? Category::Slack
                                                                                    : Category::Context;
        ledger[category] += line.bytes;
    }
    return ledger;
}

std::vector<MemorySample> sampleMemory(const MemoryTimeline& memory, std::int64_t stepPicoseconds,
                                       std::size_t windows) {
    std::vector<MemorySample> samples;
    if (windows == 0)
        return samples;
    Ledger inUse = memory.constant;
    std::int64_t total = inUse.total();
    auto change = memory.changes.begin();
    for (std::size_t i = 0; i < windows; ++i) {
        // The last window is closed, so that what happens at the very end is in it.
        const double share = static_cast<double>(i + 1) / static_cast<double>(windows);
        const auto end = i + 1 == windows ? stepPicoseconds + 1
                                          : static_cast<std::int64_t>(static_cast<double>(stepPicoseconds) * share);
        MemorySample sample{static_cast<std::int64_t>(static_cast<double>(stepPicoseconds) * static_cast<double>(i) /
                                                      static_cast<double>(windows)),
                            inUse};
        std::int64_t largest = total;
        for (; change != memory.changes.end() && change->picoseconds < end; ++change) {
            inUse[change->category] += change->bytes;
            total += change->bytes;
            if (total > largest) {
                largest = total;
                sample = {change->picoseconds, inUse};
            }
        }
        samples.push_back(sample);
    }
    return samples;
}

MemoryTracker::MemoryTracker(const PlannedStep& step, bool record)
    : m_step(step), m_record(record), m_owners(contract::storageOwners(step.operators())),
      m_begins(static_cast<std::size_t>(step.program.microStepEnd)), m_ends(m_begins.size()),
      m_slots(static_cast<std::size_t>(step.program.slotCount)) {
    m_memory.constant = reserveLedger(step.request.cluster);
    m_memory.reservedBytes = step.buffers.totalBytes() + m_memory.constant.total();
    for (const contract::Buffer& buffer : step.buffers.buffers) {
        if (buffer.arena == contract::Arena::Slots)
            continue; // in use when a job or an instruction uses them
        if (buffer.last >= step.program.microStepEnd) {
            m_memory.constant[buffer.category] += buffer.bytes;
            continue;
        }
        m_begins[static_cast<std::size_t>(buffer.first)].push_back(&buffer);
        m_ends[static_cast<std::size_t>(buffer.last)].push_back(&buffer);
    }
    m_inUse = m_memory.constant;
    m_total = m_inUse.total();
    notePeak(0);
}

contract::SlotSize MemoryTracker::slotSize(const StepInstruction& instruction) const {
    contract::SlotSize sum;
    const auto& operators = m_step.operators();
    const auto addPart = [&](std::size_t op, std::int32_t part) {
        const contract::Placement& placement = m_step.decisions[static_cast<std::size_t>(m_owners[op])].placement;
        const contract::Cluster& cluster = m_step.request.cluster;
        const contract::SlotSize size = contract::sizeSlotOfPart(
            operators[op], placement, part, contract::groupSize(placement, cluster.devices(), cluster.devicesPerNode),
            m_step.preset);
        sum.gatheredBytes += size.gatheredBytes;
        sum.unreducedBytes += size.unreducedBytes;
    };
    const auto first = static_cast<std::size_t>(instruction.op);
    if (instruction.part >= 0) {
        addPart(first, instruction.part);
        return sum;
    }
    for (std::size_t op = first; op < operators.size() && operators[op].block == operators[first].block; ++op) {
        const contract::Placement& placement = m_step.decisions[static_cast<std::size_t>(m_owners[op])].placement;
        const std::vector<contract::SlicePart> parts = contract::sliceParts(operators[op], placement);
        for (std::size_t part = 0; part < parts.size(); ++part)
            if (parts[part].sharded)
                addPart(op, static_cast<std::int32_t>(part));
    }
    return sum;
}

void MemoryTracker::notePeak(std::int64_t now) {
    std::int64_t& peak = m_optimizing ? m_memory.peaks.optimizerStep : m_memory.peaks.firstStep;
    peak = std::max(peak, m_total);
    if (m_total <= m_memory.peakBytes)
        return;
    m_memory.peakBytes = m_total;
    m_memory.peakPicoseconds = now;
    m_memory.peakInstruction = m_current;
    m_memory.atPeak = m_inUse;
}

void MemoryTracker::change(Category category, std::int64_t bytes, std::int64_t now) {
    if (bytes == 0)
        return;
    m_inUse[category] += bytes;
    m_total += bytes;
    if (m_record)
        m_memory.changes.push_back({now, category, bytes});
    if (bytes > 0)
        notePeak(now);
}

void MemoryTracker::releaseSlot(Slot& slot, std::int64_t now) {
    change(Category::Gathered, -slot.inUse.gatheredBytes, now);
    change(Category::Unreduced, -slot.inUse.unreducedBytes, now);
    slot = {};
}

void MemoryTracker::instructionBegins(std::int32_t index, std::int64_t now) {
    m_current = index;
    if (index >= m_step.program.microStepEnd)
        return;
    for (const contract::Buffer* buffer : m_begins[static_cast<std::size_t>(index)])
        change(buffer->category, buffer->bytes, now);
    const StepInstruction& instruction = m_step.program.instructions[static_cast<std::size_t>(index)];
    if (instruction.code == StepCode::Backward && instruction.slot >= 0) {
        const std::int64_t bytes = slotSize(instruction).unreducedBytes;
        m_slots[static_cast<std::size_t>(instruction.slot)].inUse.unreducedBytes += bytes;
        change(Category::Unreduced, bytes, now);
    }
}

void MemoryTracker::instructionEnds(std::int32_t index, std::int64_t now) {
    if (index >= m_step.program.microStepEnd)
        return;
    for (const contract::Buffer* buffer : m_ends[static_cast<std::size_t>(index)])
        change(buffer->category, -buffer->bytes, now);
    const StepInstruction& instruction = m_step.program.instructions[static_cast<std::size_t>(index)];
    const bool computes = instruction.code == StepCode::Forward || instruction.code == StepCode::Recompute ||
                          instruction.code == StepCode::Backward;
    if (!computes || instruction.slot < 0)
        return;
    Slot& slot = m_slots[static_cast<std::size_t>(instruction.slot)];
    if (slot.wholeBlock)
        return;
    change(Category::Gathered, -slot.inUse.gatheredBytes, now);
    slot.inUse.gatheredBytes = 0;
}

void MemoryTracker::jobBegins(const StepInstruction& job, std::int64_t now) {
    if (job.code != StepCode::Gather)
        return;
    Slot& slot = m_slots[static_cast<std::size_t>(job.slot)];
    releaseSlot(slot, now);
    slot.inUse.gatheredBytes = slotSize(job).gatheredBytes;
    slot.wholeBlock = job.part < 0;
    change(Category::Gathered, slot.inUse.gatheredBytes, now);
}

void MemoryTracker::jobEnds(const StepInstruction& job, std::int64_t now) {
    if (job.code == StepCode::ReduceScatter && job.slot >= 0)
        releaseSlot(m_slots[static_cast<std::size_t>(job.slot)], now);
}

void MemoryTracker::optimizerBegins(std::int64_t now) {
    for (Slot& slot : m_slots)
        releaseSlot(slot, now);
    m_optimizing = true;
    notePeak(now);
}

MemoryTimeline MemoryTracker::finish() {
    m_memory.peaks.resume = m_memory.peaks.firstStep;
    return std::move(m_memory);
}

} // namespace shardscope::planner
