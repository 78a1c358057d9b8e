// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "app/run/RunRecord.h"
#include "app/run/RunTarget.h"
#include "runtime/contract/Plan.h"

#include <QFile>
#include <QObject>
#include <QProcess>
#include <QStringList>
#include <QTimer>

namespace shardscope::app {

/// One training run: started as a child process, on another machine or in a Slurm cluster, or followed through its run
/// folder. A run elsewhere is recorded in a folder here, with which it can be found again.
class Trainer : public QObject {
    Q_OBJECT
public:
    enum class State { Idle, Running, Stopping, Ended };

    explicit Trainer(QObject* parent = nullptr);
    /// Leaves no child behind, unless leaveRunning() was called; what runs elsewhere goes on.
    ~Trainer() override;

    /// Where the training program is looked for; by default beside this program.
    void setProgram(const QString& program) { m_program = program; }
    const QString& program() const { return m_program; }
    /// Before a broken connection is made again for the first time; each further pause is twice as long.
    void setPause(int milliseconds) { m_pause = milliseconds; }

    /// Writes the plan into the run folder and starts. Errors are failed() and leave the trainer idle.
    void start(contract::Plan plan, const TrainSettings& settings, const RunTarget& target = {});
    /// Goes on with the ended run from its newest checkpoint, up to `steps` in all. Errors are failed().
    void resume(std::int64_t steps);
    /// Whether resume() has a checkpoint to begin with.
    bool canResume() const;
    /// Follows the run in a folder, running or finished, here or elsewhere.
    void attach(const QString& runDirectory);
    /// Once: finish the step and save. Twice: end at once.
    void stop();
    /// A drill: ends one worker of a running run, by the process id that it said it has.
    void killWorker(std::int64_t pid);
    /// Workers of a Slurm job are on machines that this one does not know.
    bool canKillWorkers() const {
        return isActive() && m_record.hello() && m_distant.target.kind != RunTarget::Kind::Slurm;
    }
    /// The child goes on when this is destroyed.
    void leaveRunning();

    State state() const { return m_state; }
    bool isActive() const { return m_state == State::Running || m_state == State::Stopping; }
    bool isOwn() const { return m_process != nullptr; }
    const RunTarget& target() const { return m_distant.target; }
    /// The connection to a run elsewhere broke and did not come back; the run may go on.
    bool isLost() const { return m_isLost; }
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
    /// Takes what the process says and how it ends.
    void listen();
    void sayUnlessStarted(QProcess& process);
    void changeSoon();
    /// A slice of it; false when there is nothing.
    bool readOutput();
    void readSoon();
    void readErrors();
    void processFinished(int code, QProcess::ExitStatus status);
    void tail();
    void signalRun(int signal);
    void endUnsaid(const QString& reason);
    void begin(const QString& runDirectory);

    // Of runs elsewhere: TrainerElsewhere.cpp
    void startElsewhere(const QByteArray& plan, bool resume);
    void runThere(const QString& command, const QByteArray& input);
    void submit(const QByteArray& plan, bool resume);
    void follow(std::int64_t fromLine);
    void stopElsewhere(bool atOnce);
    bool keepDistantRun();
    bool takeQueueLine(const QString& line);
    /// Whether the end of the connection is not the end of the run.
    bool reconnect(int code);
    void mirror(const QByteArray& bytes);

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

    DistantRun m_distant;        ///< of a run elsewhere; else its target is this machine
    QString m_device;            ///< "cpu" or "cuda"
    contract::Cluster m_cluster; ///< of the plan, for the layout of a batch job
    QFile m_mirror;              ///< the telemetry of a run elsewhere, kept here
    bool m_startsOver = false;   ///< what comes next is the telemetry from its beginning
    bool m_isLost = false;
    int m_attempts = 0; ///< to connect again
    int m_pause = 2000; ///< milliseconds
};

} // namespace shardscope::app
