// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "runtime/contract/Telemetry.h"

#include <QByteArray>
#include <QList>
#include <QString>

#include <optional>
#include <vector>

namespace shardscope::app {

/// Cuts a stream of bytes into lines; the last one may come without its newline.
class LineSplitter {
public:
    QList<QByteArray> take(const QByteArray& bytes);
    /// What is left when the stream ends; empty when it ended in a newline.
    QByteArray drain();

private:
    QByteArray m_rest;
};

struct RunWorker {
    std::int32_t rank = 0;
    std::int64_t pid = 0;
    QString device;
    QString state;
    std::optional<contract::MemoryEvent> memory;
    contract::DeviceEvent status; ///< the newest; empty for CPU workers
    /// "97 % busy, 412 W, 61 °C, 43.1 GiB in use, PCIe 1.2 GB/s in and 0.8 out"; empty without a status.
    QString statusText() const;
};

struct RunLogLine {
    double t = 0;
    std::int32_t rank = -1;
    QString level;
    QString text;
    bool isOwn = false; ///< not from the telemetry
};

/// All that is known of a run, from its telemetry lines.
class RunRecord {
public:
    /// One line of telemetry; text that is none is counted and logged.
    void takeLine(const QByteArray& line);
    /// One line of standard error.
    void takeLog(const QString& text);
    void takeEvent(const contract::Event& event);
    /// The run goes on: how it ended is over, its steps and log stay.
    void beginAgain();
    /// The telemetry is told again from its beginning: only the log of what this program did stays.
    void restart();
    /// What a run that has not begun waits for: "Job 12 is pending (Resources)".
    void setWaiting(const QString& text) { m_waiting = text; }

    const std::optional<contract::HelloEvent>& hello() const { return m_hello; }
    const std::vector<contract::StepEvent>& steps() const { return m_steps; }
    /// How often steps were taken back: a repeated step replaces the older one and all after it.
    std::int64_t rewrites() const { return m_rewrites; }
    const std::vector<contract::EvaluationEvent>& evaluations() const { return m_evaluations; }
    const std::vector<RunWorker>& workers() const { return m_workers; }
    const std::vector<RunLogLine>& log() const { return m_log; }
    const std::optional<contract::FailureEvent>& failure() const { return m_failure; }
    const std::optional<contract::ByeEvent>& bye() const { return m_bye; }
    const std::optional<contract::CheckpointEvent>& checkpoint() const { return m_checkpoint; }
    /// What rank 0 did in the newest step that was traced to its end.
    const std::vector<contract::OperatorEvent>& trace() const { return m_trace; }
    std::int64_t traceStep() const { return m_traceStep; }
    int garbageLines() const { return m_garbage; }

    /// Of all steps asked; 0 when the run has not said.
    std::int64_t stepsAsked() const { return m_hello ? m_hello->steps : 0; }
    /// Seconds until the last step, from the mean of the last twenty; negative when unknown.
    double secondsLeft() const;
    /// The worst rank's measured peak over its prediction, minus one.
    std::optional<double> memorySurplus() const;
    /// "Step 120 of 500 · 41 s left · 8,214 tokens/s · memory 3.1 % over prediction"
    QString headline() const;
    /// "97 % busy · 2.9 kW · 61 °C": the mean, the sum and the hottest of the devices that tell; else empty.
    QString devicesText() const;
    /// "Rank 2 ran out of memory in the optimizer step of step 1"; empty when nothing failed.
    QString failureText() const;

    /// Reads a run's `run.ndjson`. Errors: BadInput when it cannot be read.
    static contract::Result<RunRecord> readFile(const QString& path);

private:
    RunWorker& worker(std::int32_t rank);
    /// Its lines follow each other: whatever else rank 0 or the end of the run has to say comes after them.
    void endTrace();
    void addLog(double t, std::int32_t rank, const QString& level, const QString& text);

    std::optional<contract::HelloEvent> m_hello;
    std::vector<contract::StepEvent> m_steps; ///< ascending; a repeated step replaces the older one
    std::int64_t m_rewrites = 0;
    std::vector<contract::EvaluationEvent> m_evaluations;
    std::vector<RunWorker> m_workers; ///< by rank
    std::vector<RunLogLine> m_log;
    std::optional<contract::FailureEvent> m_failure;
    std::int32_t m_failedRank = -1;
    std::optional<contract::ByeEvent> m_bye;
    std::optional<contract::CheckpointEvent> m_checkpoint;
    std::vector<contract::OperatorEvent> m_trace, m_coming; ///< whole, and of which more may come
    std::int64_t m_traceStep = 0;
    int m_garbage = 0;
    QString m_waiting;
};

} // namespace shardscope::app
