// SPDX-License-Identifier: GPL-3.0-or-later
#include "planner/timeline/InstructionPricer.h"

#include "planner/timeline/Waterfall.h"
#include "runtime/contract/Sizing.h"

#include <fmt/format.h>

#include <cmath>

namespace shardscope::planner {

using contract::PlacementKind;
using contract::StepCode;
using contract::StepInstruction;

namespace {

constexpr double kMaximumStepSeconds = 1e6;
/// Loss, tokens, squared norm and stop request of a rank are summed in one collective of doubles before the update.
constexpr double kScalarBytes = 4 * 8;

InstructionPrice collective(const CollectiveCost& cost, double bytes) {
    return {cost.total(), cost.fixedSeconds, std::llround(bytes), true};
}

} // namespace

InstructionPricer::InstructionPricer(const PlannedStep& step)
    : m_step(step), m_pricer(step.request, step.preset), m_owners(contract::storageOwners(step.operators())),
      m_weightBytes(static_cast<double>(step.preset.gatheredBytes)) {
    // The paper's formulas reduce gradients in the precision of the weights.
    m_gradientBytes =
        step.request.mode == CostMode::Paper ? m_weightBytes : static_cast<double>(step.preset.gradientBytes);
}

const contract::Placement& InstructionPricer::placementOf(std::int32_t op) const {
    return m_step.decisions[static_cast<std::size_t>(m_owners[static_cast<std::size_t>(op)])].placement;
}

InstructionPrice InstructionPricer::price(const StepInstruction& instruction, bool lastMicroStep) const {
    switch (instruction.code) {
    case StepCode::Forward:
        if (m_pricer.computesHeadLate(at(instruction.op), placementOf(instruction.op)))
            return {};
        return {.seconds = partOfForward(instruction)};
    case StepCode::Recompute:
        return {.seconds = partOfForward(instruction)};
    case StepCode::Backward: {
        const contract::Operator& op = at(instruction.op);
        const contract::Placement& placement = placementOf(instruction.op);
        const bool forwardToo = m_pricer.computesHeadAgain(op, placement) || m_pricer.computesHeadLate(op, placement);
        return {.seconds = (forwardToo ? 3 : 2) * partOfForward(instruction)};
    }
    case StepCode::Update:
        return {.seconds = m_pricer.price(at(instruction.op), placementOf(instruction.op), {}).optimizerSeconds};
    case StepCode::Gather:
    case StepCode::GatherUpdated: {
        const double bytes = elements(instruction) * m_weightBytes;
        return collective(m_pricer.links().phase(bytes, placementOf(instruction.op).group), bytes);
    }
    case StepCode::ReduceScatter:
        return reduceScatter(instruction, lastMicroStep);
    case StepCode::AllReduce: {
        const double bytes = elements(instruction) * m_gradientBytes;
        CollectiveCost cost = m_pricer.links().allReduce(bytes);
        cost.fixedSeconds *= m_pricer.bucketShare(bytes);
        return collective(cost, bytes);
    }
    case StepCode::Clip:
        if (m_step.request.mode == CostMode::Paper) // the paper has no optimizer time
            return {};
        return collective(m_pricer.links().allReduce(kScalarBytes), kScalarBytes);
    case StepCode::Load:
    case StepCode::Loss:
    case StepCode::Finish:
        return {};
    }
    return {};
}

double InstructionPricer::elements(const StepInstruction& instruction) const {
    const auto ofPart = [&](std::int32_t op, const contract::SlicePart& part) {
        std::int64_t sum = 0;
        for (const contract::TensorSpec& tensor : at(op).tensors)
            sum += contract::partElements(at(op), tensor, part);
        return static_cast<double>(sum);
    };
    if (instruction.part >= 0)
        return ofPart(instruction.op, contract::sliceParts(at(instruction.op), placementOf(instruction.op))
                                          .at(static_cast<std::size_t>(instruction.part)));
    double sum = 0;
    const auto count = static_cast<std::int32_t>(m_step.operators().size());
    for (std::int32_t op = 0; op < count; ++op) {
        if (at(op).block != at(instruction.op).block || !m_step.decisions[static_cast<std::size_t>(op)].coalesced)
            continue;
        // Sharded ones are gathered, kept ones after their update; the gradients of both are reduced.
        const bool sharded = placementOf(op).isSharded();
        if (instruction.code == StepCode::ReduceScatter || sharded == (instruction.code == StepCode::Gather))
            sum += static_cast<double>(at(op).tensorElements());
    }
    return sum;
}

double InstructionPricer::partOfForward(const StepInstruction& instruction) const {
    const contract::Operator& op = at(instruction.op);
    const double seconds = m_pricer.forwardSeconds(op, m_step.training.microBatch);
    const std::vector<contract::SlicePart> parts = contract::sliceParts(op, placementOf(instruction.op));
    if (parts.size() < 2)
        return seconds;
    const contract::RowRange rows = parts.at(static_cast<std::size_t>(instruction.part)).rows;
    return seconds * static_cast<double>(rows.rows()) / static_cast<double>(op.maximumSlices());
}

InstructionPrice InstructionPricer::reduceScatter(const StepInstruction& instruction, bool lastMicroStep) const {
    const contract::Placement& placement = placementOf(instruction.op);
    const double bytes = elements(instruction) * m_gradientBytes;
    InstructionPrice price = collective(m_pricer.links().phase(bytes, placement.group), bytes);
    const bool acrossNodes = placement.group == contract::ShardGroup::Node && m_step.request.cluster.nodes > 1;
    if (!acrossNodes || !lastMicroStep || at(instruction.op).isTied())
        return price;
    // One all-reduce across nodes per operator and step, with the last of its sharded parts; by the owner of the
    // storage, which is the last to add to the gradient.
    const bool lastPart = instruction.part < 0 || placement.kind == PlacementKind::Keep ||
                          instruction.part + 1 == placement.shardedSlices;
    if (!lastPart)
        return price;
    StepInstruction part = instruction;
    double all = 0;
    if (instruction.part >= 0)
        for (part.part = 0; part.part <= instruction.part; ++part.part)
            all += elements(part);
    else
        all = elements(instruction);
    const CollectiveCost across = m_pricer.links().allReduceAcrossNodes(
        all * m_gradientBytes / static_cast<double>(m_pricer.links().groupRanks(placement.group)));
    price.seconds += across.total();
    price.fixedSeconds += across.fixedSeconds;
    return price;
}

bool runsInMicroStep(const StepInstruction& instruction, bool lastMicroStep) {
    const bool inPlace = instruction.code == StepCode::AllReduce ||
                         (instruction.code == StepCode::ReduceScatter && instruction.slot < 0);
    return lastMicroStep || !inPlace;
}

contract::Result<TimedProgram> timeProgram(const PlannedStep& step) {
    const InstructionPricer pricer(step);
    TimedProgram timed;
    timed.overlapMillionths = static_cast<std::int32_t>(std::lround(pricer.overlapEfficiency() * 1e6));
    const auto rounded = [](const InstructionPrice& price) {
        return TimedInstruction{toPicoseconds(price.seconds), toPicoseconds(price.fixedSeconds), price.bytes,
                                price.isCollective};
    };
    double total = 0;
    for (std::size_t i = 0; i < step.program.instructions.size(); ++i) {
        const StepInstruction& instruction = step.program.instructions[i];
        const bool inMicroStep = i < static_cast<std::size_t>(step.program.microStepEnd);
        const InstructionPrice last = pricer.price(instruction, true);
        const bool differs = inMicroStep && instruction.code == StepCode::ReduceScatter;
        const InstructionPrice each = differs ? pricer.price(instruction, false) : last;
        total += inMicroStep ? static_cast<double>(step.training.accumulate) * last.seconds : last.seconds;
        if (!(total <= kMaximumStepSeconds)) // also when it is not a number
            return contract::badInput(
                fmt::format("{}: a step takes more than {} s on \"{}\", longer than a timeline can hold",
                            step.request.graph->name, kMaximumStepSeconds, step.request.cluster.name));
        timed.each.push_back(rounded(each));
        timed.last.push_back(rounded(last));
    }
    return timed;
}

} // namespace shardscope::planner
