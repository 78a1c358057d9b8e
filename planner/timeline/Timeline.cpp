// SPDX-License-Identifier: GPL-3.0-or-later
#include "planner/timeline/Timeline.h"

#include "planner/timeline/InstructionPricer.h"
#include "planner/timeline/StreamPair.h"

#include <algorithm>
#include <cmath>

namespace shardscope::planner {

using contract::StepCode;
using contract::StepInstruction;

namespace {

bool isCompute(StepCode code) {
    return code == StepCode::Forward || code == StepCode::Recompute || code == StepCode::Backward;
}

class StepSimulation final : public StreamPair::Observer {
public:
    StepSimulation(const PlannedStep& step, const TimedProgram& timed, const SimulationOptions& options)
        : m_step(step), m_timed(timed), m_options(options), m_streams(timed.overlapMillionths, *this),
          m_memory(step, options.record), m_slotNewest(static_cast<std::size_t>(step.program.slotCount), 0),
          m_updated(step.operators().size(), 0) {}

    Timeline run() {
        const std::int32_t microStepEnd = m_step.program.microStepEnd;
        const auto end = static_cast<std::int32_t>(m_step.program.instructions.size());
        if (m_options.updatedGather == UpdatedGather::BeforeFirstUse)
            moveUpdatedGathers();
        const auto steps = static_cast<std::int32_t>(m_step.training.accumulate);
        for (m_microStep = 0; m_microStep < steps; ++m_microStep) {
            m_lastMicroStep = m_microStep + 1 == steps;
            for (std::int32_t i = 0; i < microStepEnd; ++i) {
                if (m_microStep == 0 && !m_early.empty())
                    for (const std::int32_t gather : m_early[static_cast<std::size_t>(i)])
                        post(gather);
                execute(i);
            }
        }
        m_microStep = steps - 1;
        for (std::int32_t i = microStepEnd; i < end; ++i)
            if (!m_moved || m_step.program.instructions[static_cast<std::size_t>(i)].code != StepCode::GatherUpdated)
                execute(i);
        m_streams.drain(); // programs end with Finish, which waits; what a shorter one leaves counts all the same
        m_timeline.stepPicoseconds = m_streams.now();
        m_timeline.globalBatch = m_step.training.globalBatch;
        m_timeline.memory = m_memory.finish();
        return std::move(m_timeline);
    }

    void jobBegan(const StreamPair::Job& job, std::int64_t at) override { m_memory.jobBegins(job.instruction, at); }

    void jobEnded(const StreamPair::Job& job, std::int64_t began, std::int64_t at) override {
        m_memory.jobEnds(job.instruction, at);
        record(Stream::Communication, job.instruction, job.microStep, began, at, job.bytes);
    }

    void jobExposed(const StreamPair::Job& job, std::int64_t picoseconds) override {
        // A collective's fixed cost is spread over its ring steps, so any piece of it holds the same share.
        const double share = job.work > 0 ? static_cast<double>(job.fixedWork) / static_cast<double>(job.work) : 0;
        const std::int64_t fixed =
            std::min<std::int64_t>(picoseconds, std::llround(static_cast<double>(picoseconds) * share));
        const bool gathers =
            job.instruction.code == StepCode::Gather || job.instruction.code == StepCode::GatherUpdated;
        m_timeline.waterfall[gathers ? Cause::ExposedGather : Cause::ExposedReduce] += picoseconds - fixed;
        m_timeline.waterfall[Cause::Fixed] += fixed;
        m_timeline.exposedPicoseconds += picoseconds;
    }

private:
    const TimedInstruction& timeOf(std::int32_t index) const {
        return (m_lastMicroStep ? m_timed.last : m_timed.each)[static_cast<std::size_t>(index)];
    }

    /// Assigns each GatherUpdated to the first forward of the operator before its own.
    void moveUpdatedGathers() {
        const auto& instructions = m_step.program.instructions;
        std::vector<std::int32_t> firstForward(m_step.operators().size(), -1);
        for (std::int32_t i = m_step.program.microStepEnd - 1; i >= 0; --i)
            if (instructions[static_cast<std::size_t>(i)].code == StepCode::Forward)
                firstForward[static_cast<std::size_t>(instructions[static_cast<std::size_t>(i)].op)] = i;
        m_moved = true;
        m_early.resize(static_cast<std::size_t>(m_step.program.microStepEnd));
        for (std::size_t i = static_cast<std::size_t>(m_step.program.microStepEnd); i < instructions.size(); ++i)
            if (instructions[i].code == StepCode::GatherUpdated) {
                const std::int32_t op = instructions[i].op;
                const std::int32_t at = op > 0 ? firstForward[static_cast<std::size_t>(op - 1)] : 0;
                m_early[static_cast<std::size_t>(std::max(at, 0))].push_back(static_cast<std::int32_t>(i));
            }
    }

    void execute(std::int32_t index) {
        const StepInstruction& instruction = m_step.program.instructions[static_cast<std::size_t>(index)];
        // It begins when its slot is its own: what the slot held before is no longer in use.
        if (instruction.code == StepCode::Forward)
            m_streams.wait(m_updated[static_cast<std::size_t>(instruction.op)]);
        if (isCompute(instruction.code) && instruction.slot >= 0)
            m_streams.wait(m_slotNewest[static_cast<std::size_t>(instruction.slot)]);
        m_memory.instructionBegins(index, m_streams.now());
        switch (instruction.code) {
        case StepCode::Gather:
        case StepCode::ReduceScatter:
        case StepCode::AllReduce:
        case StepCode::GatherUpdated:
            if (index >= m_step.program.microStepEnd || runsInMicroStep(instruction, m_lastMicroStep))
                post(index);
            break;
        case StepCode::Forward:
        case StepCode::Recompute:
        case StepCode::Backward:
            compute(index, instruction.code == StepCode::Recompute ? Cause::Recomputation : Cause::Compute);
            break;
        case StepCode::Update:
            compute(index, Cause::Optimizer);
            break;
        case StepCode::Clip:
            m_streams.drain();
            m_memory.optimizerBegins(m_streams.now());
            post(index);
            m_streams.drain();
            break;
        case StepCode::Finish:
            m_streams.drain();
            break;
        case StepCode::Load:
        case StepCode::Loss:
            compute(index, Cause::Compute);
            break;
        }
        m_memory.instructionEnds(index, m_streams.now());
    }

    void compute(std::int32_t index, Cause cause) {
        const std::int64_t picoseconds = timeOf(index).picoseconds;
        const std::int64_t begin = m_streams.now();
        m_streams.compute(picoseconds);
        m_timeline.waterfall[cause] += picoseconds;
        m_timeline.computePicoseconds += picoseconds;
        record(Stream::Compute, m_step.program.instructions[static_cast<std::size_t>(index)], m_microStep, begin,
               m_streams.now(), 0);
    }

    void post(std::int32_t index) {
        const TimedInstruction& time = timeOf(index);
        if (!time.isCollective)
            return;
        const StepInstruction& instruction = m_step.program.instructions[static_cast<std::size_t>(index)];
        const StreamPair::Ticket ticket =
            m_streams.post({instruction, m_microStep, time.picoseconds, time.fixedPicoseconds, time.bytes});
        if (instruction.slot >= 0)
            m_slotNewest[static_cast<std::size_t>(instruction.slot)] = ticket;
        if (instruction.code == StepCode::GatherUpdated)
            m_updated[static_cast<std::size_t>(instruction.op)] = ticket;
        m_timeline.communicationPicoseconds += time.picoseconds;
        m_timeline.fixedPicoseconds += time.fixedPicoseconds;
        // On a single device nothing is sent.
        m_timeline.collectives += time.picoseconds > 0 ? 1 : 0;
    }

    void record(Stream stream, const StepInstruction& instruction, std::int32_t microStep, std::int64_t begin,
                std::int64_t end, std::int64_t bytes) {
        if (m_options.record && end > begin)
            m_timeline.intervals.push_back(
                {stream, instruction.code, instruction.op, instruction.part, microStep, begin, end, bytes});
    }

    const PlannedStep& m_step;
    const TimedProgram& m_timed;
    SimulationOptions m_options;
    StreamPair m_streams;
    MemoryTracker m_memory;
    std::vector<StreamPair::Ticket> m_slotNewest;
    std::vector<StreamPair::Ticket> m_updated; ///< per operator, the gather of its updated weights
    std::vector<std::vector<std::int32_t>>
        m_early; ///< per instruction of the first micro-step, gathers moved before it
    bool m_moved = false;
    std::int32_t m_microStep = 0;
    bool m_lastMicroStep = true;
    Timeline m_timeline;
};

} // namespace

contract::Result<Timeline> simulate(const PlannedStep& step, const SimulationOptions& options) {
    const auto timed = timeProgram(step);
    if (!timed)
        return tl::unexpected(timed.error());
    return StepSimulation(step, *timed, options).run();
}

contract::Result<Timeline> simulate(const PlanResult& result, const SimulationOptions& options) {
    return planStep(result).and_then([&](const PlannedStep& step) { return simulate(step, options); });
}

} // namespace shardscope::planner
