// SPDX-License-Identifier: GPL-3.0-or-later
#include "planner/timeline/PlanDiff.h"

#include "planner/timeline/InstructionPricer.h"

#include <algorithm>
#include <tuple>
#include <unordered_map>

namespace shardscope::planner {

using contract::StepCode;

namespace {

/// Lane time of one operator's gathers or reductions over a step.
struct LaneTime {
    double picoseconds = 0;
    double fixedPicoseconds = 0;
    double fixedShare() const { return picoseconds > 0 ? fixedPicoseconds / picoseconds : 0; }
};

struct OperatorLanes {
    LaneTime gather;
    LaneTime reduce;
};

struct StepLanes {
    std::vector<OperatorLanes> operators;
    std::int64_t collectives = 0;
};

StepLanes sumLanes(const PlannedStep& step, const TimedProgram& timed) {
    StepLanes lanes;
    lanes.operators.resize(step.operators().size());
    const auto add = [&](std::size_t i, const TimedInstruction& time, std::int64_t times) {
        const contract::StepInstruction& instruction = step.program.instructions[i];
        if (!time.isCollective || time.picoseconds == 0 || times == 0)
            return;
        // The additive cost leaves out the scalar all-reduce of clipping.
        if (instruction.code == StepCode::Clip)
            return;
        lanes.collectives += times;
        const bool gathers = instruction.code == StepCode::Gather || instruction.code == StepCode::GatherUpdated;
        OperatorLanes& op = lanes.operators[static_cast<std::size_t>(instruction.op)];
        LaneTime& lane = gathers ? op.gather : op.reduce;
        lane.picoseconds += static_cast<double>(times) * static_cast<double>(time.picoseconds);
        lane.fixedPicoseconds += static_cast<double>(times) * static_cast<double>(time.fixedPicoseconds);
    };
    for (std::size_t i = 0; i < step.program.instructions.size(); ++i) {
        const bool inMicroStep = i < static_cast<std::size_t>(step.program.microStepEnd);
        if (inMicroStep && runsInMicroStep(step.program.instructions[i], false))
            add(i, timed.each[i], step.training.accumulate - 1);
        add(i, timed.last[i], 1);
    }
    return lanes;
}

/// Rounds running sums, so that the parts sum to the rounded whole.
class RoundedParts {
public:
    std::int64_t next(double seconds) {
        m_seconds += seconds;
        const std::int64_t sum = toPicoseconds(m_seconds);
        const std::int64_t part = sum - m_sum;
        m_sum = sum;
        return part;
    }

private:
    double m_seconds = 0;
    std::int64_t m_sum = 0;
};

Waterfall waterfallOf(const OperatorCost& cost, const OperatorLanes& lanes) {
    const std::int64_t whole = toPicoseconds(cost.stepSeconds());
    const double gatherFixed = cost.exposedGatherSeconds * lanes.gather.fixedShare();
    const double reduceFixed = cost.exposedReduceSeconds * lanes.reduce.fixedShare();
    RoundedParts parts;
    Waterfall waterfall;
    waterfall[Cause::Compute] = parts.next(cost.computeSeconds);
    waterfall[Cause::Recomputation] = parts.next(cost.recomputeSeconds);
    waterfall[Cause::ExposedGather] = parts.next(cost.exposedGatherSeconds - gatherFixed);
    waterfall[Cause::ExposedReduce] = parts.next(cost.exposedReduceSeconds - reduceFixed);
    waterfall[Cause::Optimizer] = parts.next(cost.optimizerSeconds);
    waterfall[Cause::Fixed] = parts.next(gatherFixed + reduceFixed);
    // The order of the sum may have moved the last digit; the largest part can spare it.
    const auto largest = std::max_element(waterfall.picoseconds.begin(), waterfall.picoseconds.end());
    *largest += whole - waterfall.total();
    return waterfall;
}

PlanSide sideOf(const PlannedStep& step, const AdditiveTime& time) {
    return {time.total,
            time.collectives,
            step.training.microBatch,
            step.training.accumulate,
            step.training.globalBatch,
            step.predictedPeakBytes};
}

OperatorSide sideOf(const PlannedStep& step, const AdditiveTime& time, std::size_t op) {
    return {step.decisions[op].placement, step.decisions[op].recompute, step.decisions[op].coalesced,
            time.operators[op]};
}

} // namespace

contract::Result<AdditiveTime> additiveTime(const PlannedStep& step) {
    const auto timed = timeProgram(step);
    if (!timed)
        return tl::unexpected(timed.error());
    const StepLanes lanes = sumLanes(step, *timed);
    const std::vector<OperatorCost> costs = priceOperators(step);
    AdditiveTime time;
    time.collectives = lanes.collectives;
    for (std::size_t i = 0; i < costs.size(); ++i) {
        time.operators.push_back(waterfallOf(costs[i], lanes.operators[i]));
        time.total += time.operators.back();
    }
    return time;
}

bool OperatorDifference::differs() const {
    if (!a || !b)
        return true;
    // What a placement's slices are only means something where it is sharded.
    const auto decision = [](const OperatorSide& side) {
        contract::Placement placement = side.placement;
        if (!placement.isSharded())
            placement.slices = placement.shardedSlices = 1;
        return std::tuple(placement, side.recompute, side.coalesced);
    };
    return decision(*a) != decision(*b);
}

std::array<double, kCauseCount> PlanSide::secondsPerSample() const {
    std::array<double, kCauseCount> seconds{};
    for (std::size_t i = 0; i < seconds.size(); ++i)
        seconds[i] = toSeconds(time.picoseconds[i]) / static_cast<double>(globalBatch);
    return seconds;
}

std::int64_t PlanDiff::differingOperators() const {
    return std::count_if(operators.begin(), operators.end(),
                         [](const OperatorDifference& entry) { return entry.differs(); });
}

contract::Result<PlanDiff> comparePlans(const PlannedStep& a, const PlannedStep& b) {
    const auto timeA = additiveTime(a);
    if (!timeA)
        return tl::unexpected(timeA.error());
    const auto timeB = additiveTime(b);
    if (!timeB)
        return tl::unexpected(timeB.error());
    PlanDiff diff;
    diff.a = sideOf(a, *timeA);
    diff.b = sideOf(b, *timeB);
    std::unordered_map<std::string_view, std::size_t> rows;
    for (std::size_t i = 0; i < a.operators().size(); ++i) {
        const contract::Operator& op = a.operators()[i];
        rows.emplace(op.name, diff.operators.size());
        diff.operators.push_back({op.name, op.blockName, sideOf(a, *timeA, i), std::nullopt});
    }
    for (std::size_t i = 0; i < b.operators().size(); ++i) {
        const contract::Operator& op = b.operators()[i];
        if (const auto row = rows.find(op.name); row != rows.end())
            diff.operators[row->second].b = sideOf(b, *timeB, i);
        else
            diff.operators.push_back({op.name, op.blockName, std::nullopt, sideOf(b, *timeB, i)});
    }
    return diff;
}

} // namespace shardscope::planner
