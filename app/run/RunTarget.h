// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "runtime/contract/Plan.h"
#include "runtime/contract/Result.h"

#include <QByteArray>
#include <QString>
#include <QStringList>

#include <cstdint>

namespace shardscope::app {

/// What a person asks of a run.
struct TrainSettings {
    QString data = QStringLiteral("builtin:addition");
    QString tokenizer; ///< a tokenizer.json or its folder; empty: text is bytes
    std::int64_t steps = 200;
    double learningRate = 3e-4;
    std::int64_t seed = 1;
    std::int64_t checkpointEvery = 50;
    std::int64_t restarts = 0; ///< from the last checkpoint, after failures
    QString runDirectory;      ///< on this machine; a run elsewhere is recorded in it
};

/// Where the processes of a run are started. Commands there are for a POSIX shell and begin in the home folder.
struct RunTarget {
    enum class Kind { Here, Ssh, Slurm };
    Kind kind = Kind::Here;
    /// Of ssh, as `ssh` takes it: "gpu-box", "me@gpu-box", a name of its configuration. With Slurm the login machine;
    /// empty: sbatch is a command of this machine.
    QString host;
    QString program = QStringLiteral("shardscope-train"); ///< there
    QString folder;                                       ///< the run's folder there
    QString prelude;                                      ///< one shell line before the program: "module load cuda"
    QString partition;                                    ///< of Slurm; empty: its default
    QString timeLimit = QStringLiteral("01:00:00");       ///< of Slurm
    QString job;                                          ///< of Slurm, once it is submitted

    bool isHere() const { return kind == Kind::Here; }
    /// "gpu-box", "Slurm", "Slurm on login-1"; empty for this machine.
    QString name() const;
    /// What stands in the way of starting there, for a person; empty when nothing does.
    QString problem() const;
};

/// A program with its arguments.
struct Call {
    QString program;
    QStringList arguments;
};

/// One word of a POSIX shell.
QString shellQuoted(const QString& word);
/// Runs a shell command at the target: `sh -c` here, through ssh where there is a host. ssh never asks for anything.
Call shellCall(const RunTarget& target, const QString& command);

/// The arguments of `shardscope-train`: of `run` for `subcommand` "run", of "worker" for one rank.
/// `device`: "cpu" or "cuda". `folder` holds plan.json.
QStringList trainArguments(const QString& subcommand, const TrainSettings& settings, const QString& device,
                           const QString& folder, bool resume);

/// ssh: takes the plan from standard input and becomes the run, which goes on when the connection breaks.
QString startCommand(const RunTarget& target, const TrainSettings& settings, const QString& device, bool resume);
/// Slurm: takes the plan from standard input, writes `script` beside it and submits it. Prints how many lines of
/// telemetry are there already and the job's number.
QString submitCommand(const RunTarget& target, const QString& script, bool resume);
/// The batch script: one task for every device of the plan's cluster, laid out over its nodes as the plan is.
QString batchScript(const RunTarget& target, const TrainSettings& settings, const contract::Cluster& cluster,
                    bool resume);
/// Prints the run's telemetry from a line (1: its beginning) until it is over. With Slurm, lines "queue: STATE REASON"
/// on standard error say where the job stands.
QString followCommand(const RunTarget& target, std::int64_t fromLine);
/// Asks the run to finish its step and to save, or ends it at once. `pid` is the coordinator's (ssh only).
QString stopCommand(const RunTarget& target, std::int64_t pid, bool atOnce);

/// ssh's own exit code; every other one is that of the command.
inline constexpr int kNoConnection = 255;

/// Where a run elsewhere is described, in its folder here.
QString distantRunPath(const QString& runDirectory);

/// What is kept in the folder of a run elsewhere, so that it can be found again and resumed: where it is, and with
/// what it was started. Its other settings are those of the run's own folder.
struct DistantRun {
    RunTarget target;
    TrainSettings settings;
};
QByteArray formatDistantRun(const DistantRun& run);
/// Errors: BadInput with file and field.
contract::Result<DistantRun> readDistantRun(const QString& path);

} // namespace shardscope::app
