// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/run/RunTarget.h"

#include "runtime/contract/Json.h"

#include <QCoreApplication>
#include <QRegularExpression>
#include <nlohmann/json.hpp>

#include <algorithm>

namespace shardscope::app {

namespace {

constexpr const char* kFormat = "shardscope-target";
constexpr std::int64_t kMaximumFileBytes = 1 << 20;

QString translate(const char* text) {
    return QCoreApplication::translate("RunTarget", text);
}

QString joined(const QStringList& words) {
    QStringList quoted;
    for (const QString& word : words)
        quoted << shellQuoted(word);
    return quoted.join(' ');
}

/// In the home folder, after what the person wants done first; that must not eat the plan.
QString begun(const RunTarget& target) {
    return target.prelude.isEmpty() ? QStringLiteral("cd || exit 1\n")
                                    : QStringLiteral("cd || exit 1\n{ %1\n} </dev/null\n").arg(target.prelude);
}

const char* kindName(RunTarget::Kind kind) {
    return kind == RunTarget::Kind::Ssh ? "ssh" : kind == RunTarget::Kind::Slurm ? "slurm" : "here";
}

} // namespace

QString RunTarget::name() const {
    if (kind == Kind::Here)
        return {};
    if (kind == Kind::Ssh)
        return host;
    return host.isEmpty() ? QStringLiteral("Slurm") : translate("Slurm on %1").arg(host);
}

QString RunTarget::problem() const {
    if (kind == Kind::Here)
        return {};
    if (kind == Kind::Ssh && host.isEmpty())
        return translate("Name the machine, as ssh takes it");
    // ssh would take a word that begins with a dash for an option.
    static const QRegularExpression kHost(QStringLiteral("^[A-Za-z0-9_\\[][A-Za-z0-9_.@:%\\[\\]-]*$"));
    if (!host.isEmpty() && !kHost.match(host).hasMatch())
        return translate("%1 is not the name of a machine").arg(host);
    if (folder.isEmpty())
        return translate("Name the run's folder there");
    if (program.isEmpty())
        return translate("Name the training program there");
    // Script lines of Slurm end at the end of the line.
    for (const QString& text : {host, program, folder, partition, timeLimit})
        if (std::any_of(text.begin(), text.end(), [](QChar c) { return c.category() == QChar::Other_Control; }))
            return translate("%1 holds a control character").arg(text.simplified());
    static const QRegularExpression kTime(QStringLiteral("^([0-9]+|[0-9]+:[0-9]{2}(:[0-9]{2})?|[0-9]+-[0-9]{1,2}"
                                                         "(:[0-9]{2}){0,2})$"));
    if (kind == Kind::Slurm && !kTime.match(timeLimit).hasMatch())
        return translate("The time limit is minutes, hours:minutes:seconds or days-hours");
    static const QRegularExpression kFolder(QStringLiteral("[\"\\\\%]"));
    if (kind == Kind::Slurm && kFolder.match(folder).hasMatch())
        return translate("With Slurm a folder's name has no quotes, backslashes or percent signs");
    static const QRegularExpression kPartition(QStringLiteral("^[A-Za-z0-9_.,-]*$"));
    if (!kPartition.match(partition).hasMatch())
        return translate("%1 is not the name of a partition").arg(partition);
    return {};
}

QString shellQuoted(const QString& word) {
    static const QRegularExpression kPlain(QStringLiteral("^[A-Za-z0-9_./:=,@%+-]+$"));
    if (kPlain.match(word).hasMatch())
        return word;
    return '\'' + QString(word).replace('\'', QLatin1String("'\\''")) + '\'';
}

Call shellCall(const RunTarget& target, const QString& command) {
    const QString shell = QStringLiteral("/bin/sh");
    if (target.host.isEmpty())
        return {shell, {QStringLiteral("-c"), command}};
    // The login shell there may be of another kind; it sees one simple command.
    return {QStringLiteral("ssh"),
            {QStringLiteral("-T"), QStringLiteral("-o"), QStringLiteral("BatchMode=yes"), QStringLiteral("-o"),
             QStringLiteral("ConnectTimeout=10"), QStringLiteral("-o"), QStringLiteral("ServerAliveInterval=15"),
             QStringLiteral("-o"), QStringLiteral("ServerAliveCountMax=3"), QStringLiteral("--"), target.host,
             QStringLiteral("exec /bin/sh -c ") + shellQuoted(command)}};
}

QStringList trainArguments(const QString& subcommand, const TrainSettings& settings, const QString& device,
                           const QString& folder, bool resume) {
    QStringList arguments{subcommand,
                          folder + QStringLiteral("/plan.json"),
                          QStringLiteral("--data"),
                          settings.data,
                          QStringLiteral("--steps"),
                          QString::number(settings.steps),
                          QStringLiteral("--checkpoint-every"),
                          QString::number(std::max<std::int64_t>(1, settings.checkpointEvery)),
                          QStringLiteral("--run-dir"),
                          folder};
    if (resume) // data, seed and tokenizer stand in the run's folder
        arguments << QStringLiteral("--resume");
    else
        arguments << QStringLiteral("--seed") << QString::number(settings.seed);
    if (!settings.tokenizer.isEmpty())
        arguments << QStringLiteral("--tokenizer") << settings.tokenizer;
    if (settings.restarts > 0 && subcommand == QLatin1String("run"))
        arguments << QStringLiteral("--max-restarts") << QString::number(settings.restarts);
    if (device != QLatin1String("cpu"))
        arguments << QStringLiteral("--device") << device;
    return arguments;
}

QString startCommand(const RunTarget& target, const TrainSettings& settings, const QString& device, bool resume) {
    const QString folder = shellQuoted(target.folder);
    QString command = begun(target);
    if (!resume)
        command += QStringLiteral("mkdir -p %1 && cat >%1/plan.json || exit 1\n").arg(folder);
    // A broken connection must not end the run: neither its hang-up nor a pipe that nobody reads.
    return command + QStringLiteral("trap '' HUP PIPE\nexec ") +
           joined(QStringList{target.program} +
                  trainArguments(QStringLiteral("run"), settings, device, target.folder, resume));
}

QString submitCommand(const RunTarget& target, const QString& script, bool resume) {
    const QString folder = shellQuoted(target.folder);
    QString command = QStringLiteral("cd || exit 1\nmkdir -p %1 || exit 1\n").arg(folder);
    command += (resume ? QStringLiteral("wc -l <%1/run.ndjson || exit 1\n")
                       : QStringLiteral("cat >%1/plan.json && rm -f %1/run.ndjson && echo 0 || exit 1\n"))
                   .arg(folder);
    return command + QStringLiteral("printf %s %1 >%2/train.sbatch || exit 1\nsbatch --parsable %2/train.sbatch")
                         .arg(shellQuoted(script), folder);
}

QString batchScript(const RunTarget& target, const TrainSettings& settings, const contract::Cluster& cluster,
                    bool resume) {
    const QString device = cluster.isCpu ? QStringLiteral("cpu") : QStringLiteral("cuda");
    QStringList lines{QStringLiteral("#!/bin/sh"), QStringLiteral("#SBATCH --job-name=shardscope"),
                      QStringLiteral("#SBATCH --nodes=%1").arg(cluster.nodes),
                      QStringLiteral("#SBATCH --ntasks-per-node=%1").arg(cluster.devicesPerNode),
                      QStringLiteral("#SBATCH --time=%1").arg(target.timeLimit)};
    if (!cluster.isCpu)
        lines << QStringLiteral("#SBATCH --gpus-per-node=%1").arg(cluster.devicesPerNode);
    if (!target.partition.isEmpty())
        lines << QStringLiteral("#SBATCH --partition=%1").arg(target.partition);
    // A relative path of Slurm's begins where sbatch was called, which is the home folder.
    lines << QStringLiteral("#SBATCH --output=\"%1/slurm-%j.log\"").arg(target.folder) << QString();
    lines << QStringLiteral("# Written by Shardscope: one task for each device of the plan.");
    lines << begun(target).trimmed();
    lines << QStringLiteral("MASTER_ADDR=$(scontrol show hostnames \"$SLURM_JOB_NODELIST\" | head -n 1)")
          // Two jobs on a node rarely get numbers this far apart.
          << QStringLiteral("MASTER_PORT=$((20000 + SLURM_JOB_ID % 20000))")
          << QStringLiteral("export MASTER_ADDR MASTER_PORT")
          << QStringLiteral("exec srun %1")
                 .arg(joined(QStringList{target.program} +
                             trainArguments(QStringLiteral("worker"), settings, device, target.folder, resume)))
          << QString();
    return lines.join('\n');
}

QString followCommand(const RunTarget& target, std::int64_t fromLine) {
    const QString folder = shellQuoted(target.folder);
    if (target.kind != RunTarget::Kind::Slurm)
        // The last hello is that of the process which runs now, if any does.
        return QStringLiteral(
                   "cd || exit 1\ncd %1 || exit 1\n"
                   "pid=$(sed -n '/\"type\":\"hello\"/s/.*\"pid\":\\([0-9]*\\).*/\\1/p' run.ndjson | tail -n 1)\n"
                   "exec tail --pid=\"${pid:-1}\" -n +%2 -f run.ndjson")
            .arg(folder)
            .arg(fromLine);
    // squeue forgets a job some minutes after its end and then calls its number invalid; any other failure of squeue is
    // one of the controller's, which is waited out.
    return QStringLiteral(
               "cd || exit 1\ncd %1 || exit 1\n"
               "tail --pid=$$ -n +%3 -F run.ndjson 2>/dev/null &\n"
               "while :; do\n"
               "  state=$(squeue -h -j %2 -o '%T %r' 2>&1) || case $state in\n"
               "    *'Invalid job id'*) state= ;;\n"
               "    *) state='UNKNOWN squeue does not answer' ;;\n"
               "  esac\n"
               "  case $state in ''|COMPLETED*|FAILED*|CANCELLED*|TIMEOUT*|OUT_OF*|NODE_FAIL*) break ;; esac\n"
               "  echo \"queue: $state\" >&2\n"
               "  sleep 2\n"
               "done\n"
               "sleep 2\n"
               "tail -n 20 slurm-%2.log >&2\n"
               "[ -z \"$state\" ] || echo \"the job ended: $state\" >&2\n")
        .arg(folder, target.job)
        .arg(fromLine);
}

QString stopCommand(const RunTarget& target, std::int64_t pid, bool atOnce) {
    if (target.kind == RunTarget::Kind::Slurm) // without --batch or --full: every task, and not the script
        return atOnce ? QStringLiteral("scancel %1").arg(target.job)
                      : QStringLiteral("scancel --signal=INT %1").arg(target.job);
    return atOnce ? QStringLiteral("kill -KILL -- -\"$(ps -o pgid= -p %1 | tr -d ' ')\"").arg(pid)
                  : QStringLiteral("kill -INT %1").arg(pid);
}

QString distantRunPath(const QString& runDirectory) {
    return runDirectory + QStringLiteral("/target.json");
}

QByteArray formatDistantRun(const DistantRun& run) {
    const RunTarget& target = run.target;
    contract::OrderedJson json = {{"format", kFormat},
                                  {"version", 1},
                                  {"kind", kindName(target.kind)},
                                  {"host", target.host.toStdString()},
                                  {"program", target.program.toStdString()},
                                  {"folder", target.folder.toStdString()},
                                  {"prelude", target.prelude.toStdString()},
                                  {"partition", target.partition.toStdString()},
                                  {"time_limit", target.timeLimit.toStdString()},
                                  {"job", target.job.toStdString()},
                                  {"data", run.settings.data.toStdString()},
                                  {"tokenizer", run.settings.tokenizer.toStdString()},
                                  {"checkpoint_every", run.settings.checkpointEvery}};
    return QByteArray::fromStdString(json.dump(2) + "\n");
}

contract::Result<DistantRun> readDistantRun(const QString& path) {
    const std::string file = path.toStdString();
    const auto document = contract::readJsonFile(file, kMaximumFileBytes);
    if (!document)
        return tl::unexpected(document.error());
    const contract::JsonCursor root(*document, file);
    DistantRun run;
    RunTarget& target = run.target;
    (void)root.at("format").choice<int>({{kFormat, 0}});
    (void)root.at("version").integer(1, 1);
    target.kind =
        root.at("kind").choice<RunTarget::Kind>({{"ssh", RunTarget::Kind::Ssh}, {"slurm", RunTarget::Kind::Slurm}});
    const auto read = [&](const char* key) { return QString::fromStdString(root.at(key).text()); };
    target.host = read("host");
    target.program = read("program");
    target.folder = read("folder");
    target.prelude = read("prelude");
    target.partition = read("partition");
    target.timeLimit = read("time_limit");
    target.job = read("job");
    run.settings.data = read("data");
    run.settings.tokenizer = read("tokenizer");
    run.settings.checkpointEvery = root.at("checkpoint_every").integer(1);
    if (root.failed())
        return tl::unexpected(root.error().value());
    static const QRegularExpression kJob(QStringLiteral("^[0-9_]*$"));
    if (!kJob.match(target.job).hasMatch())
        return contract::badInput(file + ": job is not a number");
    if (const QString problem = target.problem(); !problem.isEmpty())
        return contract::badInput(file + ": " + problem.toStdString());
    return run;
}

} // namespace shardscope::app
