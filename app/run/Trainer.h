// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "app/run/RunRecord.h"
#include "runtime/contract/Plan.h"

#include <QFile>
#include <QObject>
#include <QProcess>
#include <QStringList>
#include <QTimer>

namespace shardscope::app {

/// What a person asks of a run.
struct TrainSettings {
    QString data = QStringLiteral("builtin:addition");
    std::int64_t steps = 200;
    double learningRate = 3e-4;
    std::int64_t seed = 1;
    std::int64_t checkpointEvery = 50;
    QString runDirectory;
};

/// One training run: started as a child process, or followed through its run folder.
class Trainer : public QObject {
    Q_OBJECT
public:
    enum class State { Idle, Running, Stopping, Ended };

    explicit Trainer(QObject* parent = nullptr);
    /// Leaves no child behind, unless leaveRunning() was called.
    ~Trainer() override;

    /// Where the training program is looked for; by default beside this program.
    void setProgram(const QString& program) { m_program = program; }
    const QString& program() const { return m_program; }

    /// Writes the plan into the run folder and starts. Errors are failed() and leave the trainer idle.
    void start(contract::Plan plan, const TrainSettings& settings);
    /// Goes on with the ended run from its newest checkpoint, up to `steps` in all. Errors are failed().
    void resume(std::int64_t steps);
    /// Whether resume() has a checkpoint to begin with.
    bool canResume() const;
    /// Follows the run in a folder, running or finished.
    void attach(const QString& runDirectory);
    /// Once: finish the step and save. Twice: end at once.
    void stop();
    /// The child goes on when this is destroyed.
    void leaveRunning();

    State state() const { return m_state; }
    bool isActive() const { return m_state == State::Running || m_state == State::Stopping; }
    bool isOwn() const { return m_process != nullptr; }
    const RunRecord& record() const { return m_record; }
    const QString& runDirectory() const { return m_runDirectory; }

Q_SIGNALS:
    /// At most every 60 ms while lines arrive.
    void recordChanged();
    void stateChanged();
    void failed(const QString& message);

private:
    void setState(State state);
    void launch(const QStringList& arguments);
    void changeSoon();
    void readOutput();
    void readErrors();
    void processFinished(int code, QProcess::ExitStatus status);
    void tail();
    void signalRun(int signal);

    QString m_program;
    QString m_runDirectory;
    RunRecord m_record;
    State m_state = State::Idle;
    QProcess* m_process = nullptr;
    LineSplitter m_output;
    LineSplitter m_errors;
    QString m_lastError;
    std::int64_t m_checkpointEvery = 50;
    QTimer m_batch;
    QTimer m_tailTimer;
    QFile m_tailed;
};

} // namespace shardscope::app
