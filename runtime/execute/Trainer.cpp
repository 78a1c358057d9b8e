// SPDX-License-Identifier: GPL-3.0-or-later
#include "runtime/execute/Trainer.h"

#include "runtime/device/HostMemory.h"

#include <fmt/format.h>

#include <algorithm>

namespace shardscope::engine {

namespace {

class Training {
public:
    Training(Executor& executor, const PlanSetup& setup, const TrainingRequest& request, TrainingListener& listener)
        : m_executor(executor), m_setup(setup), m_request(request), m_listener(listener), m_seed(request.seed),
          m_writer(executor, setup, request.runDirectory, request.checkpointsKept) {}

    contract::Result<TrainingEnd> run(const std::atomic<bool>& stop) {
        if (auto started = start(); !started)
            return tl::unexpected(started.error());
        const std::int64_t first = m_done + 1;
        bool stopped = false;
        bool memoryReported = false;
        while (m_done < m_request.steps && !stopped) {
            const std::int64_t step = m_done + 1;
            // A trace costs a little time: early once everything is warm, then now and then.
            const bool traced = step == first + 2 || step % kTraceEvery == 0;
            const auto outcome = m_executor.runStep(step, m_request.steps, stop, traced);
            if (!outcome)
                return tl::unexpected(outcome.error());
            m_done = step;
            stopped = outcome->stopRequested && m_done < m_request.steps; // a stop at the last step changes nothing
            report(step, *outcome, traced);
            if (!memoryReported)
                reportMemory();
            memoryReported = true;
            const bool last = m_done == m_request.steps;
            if ((last || step % m_request.evaluateEvery == 0) && !stopped)
                if (auto evaluated = evaluate(); !evaluated)
                    return tl::unexpected(evaluated.error());
            const bool due = m_request.checkpointEvery > 0 && step % m_request.checkpointEvery == 0;
            if (due || last || stopped)
                if (auto begun = checkpoint(); !begun)
                    return tl::unexpected(begun.error());
            if (auto told = tellWritten(); !told)
                return tl::unexpected(told.error());
        }
        if (auto finished = finishCheckpoint(); !finished)
            return tl::unexpected(finished.error());
        return TrainingEnd{m_done, stopped};
    }

private:
    static constexpr std::int64_t kTraceEvery = 100;
    static constexpr const char* kCheckpointPhase = "checkpoint";

    contract::Result<void> start() {
        m_executor.initialize(m_seed);
        if (m_request.initialWeights != nullptr && !m_request.resumeFrom)
            if (auto loaded = loadInitialWeights(m_executor, m_setup, *m_request.initialWeights); !loaded)
                return loaded;
        if (!m_request.resume)
            return {};
        const std::optional<FoundCheckpoint>& found = m_request.resumeFrom;
        for (const std::string& reason : m_request.passedOver)
            log("warning", "checkpoint passed over: " + reason);
        if (!found) {
            log("info", "there is no checkpoint to resume from; starting at step 1");
            return {};
        }
        if (auto loaded = loadCheckpoint(m_executor, m_setup, *found); !loaded)
            return loaded;
        m_done = found->state.step;
        log("info", fmt::format("resuming after step {} from {}", m_done, found->path));
        return {};
    }

    void report(std::int64_t step, const StepOutcome& outcome, bool traced) {
        if (m_executor.rank() == 0) {
            contract::StepEvent event;
            event.step = step;
            event.loss = outcome.loss;
            event.learningRate = outcome.learningRate;
            event.gradientNorm = outcome.gradientNorm;
            event.tokens = m_setup.tokensPerStep();
            event.stepSeconds = outcome.seconds;
            event.exposedCommunicationSeconds = outcome.exposedSeconds;
            event.computeSeconds = std::max(0.0, outcome.seconds - outcome.exposedSeconds);
            event.tokensPerSecond = static_cast<double>(event.tokens) / outcome.seconds;
            m_listener.onStep(event);
            if (traced)
                for (const TracedInstruction& instruction : m_executor.trace())
                    m_listener.onInstruction(instruction, outcome.seconds);
        }
    }

    void reportMemory() {
        contract::MemoryEvent event;
        event.predicted = m_setup.predicted;
        event.allocated = m_executor.pool().highWater();
        event.peakAllocated = m_executor.pool().totalHighWater();
        event.resident = std::max<std::int64_t>(0, residentBytes() - m_request.residentAtStart);
        if (const Device& device = m_executor.device(); !device.isHostMemory()) {
            event.allocated[contract::Category::Context] = device.contextBytes();
            event.resident = m_executor.pool().arenas().totalBytes() + device.contextBytes();
        }
        m_listener.onEvent(event);
    }

    contract::Result<void> evaluate() {
        const auto evaluation = m_executor.evaluate(m_request.evaluationSamples);
        if (!evaluation)
            return tl::unexpected(evaluation.error());
        if (m_executor.rank() != 0)
            return {};
        contract::EvaluationEvent event;
        event.step = m_done;
        event.loss = evaluation->loss;
        if (evaluation->answers.asked > 0)
            event.accuracy =
                static_cast<double>(evaluation->answers.right) / static_cast<double>(evaluation->answers.asked);
        m_listener.onEvent(event);
        return {};
    }

    contract::Result<void> checkpoint() {
        m_executor.beginPhase(kCheckpointPhase);
        if (auto begun = m_writer.begin({m_done, m_seed}); !begun)
            return begun;
        m_executor.beginPhase("");
        return {};
    }

    contract::Result<void> finishCheckpoint() {
        m_executor.beginPhase(kCheckpointPhase);
        if (auto finished = m_writer.finish(); !finished)
            return finished;
        m_executor.beginPhase("");
        return tellWritten();
    }

    /// Says what the disk has by now.
    contract::Result<void> tellWritten() {
        for (;;) {
            const auto written = m_writer.poll();
            if (!written) {
                m_executor.beginPhase(kCheckpointPhase);
                return tl::unexpected(written.error());
            }
            if (!*written)
                return {};
            m_listener.onEvent(contract::CheckpointEvent{(*written)->step, (*written)->path});
        }
    }

    void log(const std::string& level, const std::string& message) {
        if (m_executor.rank() == 0)
            m_listener.onEvent(contract::LogEvent{level, message});
    }

    Executor& m_executor;
    const PlanSetup& m_setup;
    const TrainingRequest& m_request;
    TrainingListener& m_listener;
    std::uint64_t m_seed;
    std::int64_t m_done = 0;
    CheckpointWriter m_writer;
};

} // namespace

contract::Result<TrainingEnd> train(Executor& executor, const PlanSetup& setup, const TrainingRequest& request,
                                    const std::atomic<bool>& stop, TrainingListener& listener) {
    return Training(executor, setup, request, listener).run(stop);
}

} // namespace shardscope::engine
