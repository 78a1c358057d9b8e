// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/run/Trainer.h"

#include "runtime/contract/Json.h"

#include <QCoreApplication>
#include <QDir>
#include <QFileInfo>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <csignal>
#include <unistd.h>

namespace shardscope::app {

namespace {

constexpr int kBatchMilliseconds = 60;
constexpr int kTailMilliseconds = 200;
constexpr qint64 kSlice = 64 << 10; // bytes of telemetry that are read at once: a few milliseconds of parsing

/// Whether the last lines of a telemetry file say that the run is over.
bool endsInBye(const QString& path) {
    QFile file(path);
    if (!file.open(QIODevice::ReadOnly))
        return false;
    file.seek(std::max<qint64>(0, file.size() - 4096));
    const QByteArray end = file.readAll();
    const qsizetype bye = end.lastIndexOf("\"type\":\"bye\"");
    return bye >= 0 && end.indexOf("\"type\":\"hello\"", bye) < 0;
}

} // namespace

Trainer::Trainer(QObject* parent)
    : QObject(parent), m_program(QCoreApplication::applicationDirPath() + QStringLiteral("/shardscope-train")) {
    m_batch.setSingleShot(true);
    m_batch.setInterval(kBatchMilliseconds);
    connect(&m_batch, &QTimer::timeout, this, &Trainer::recordChanged);
    m_tailTimer.setInterval(kTailMilliseconds);
    connect(&m_tailTimer, &QTimer::timeout, this, &Trainer::tail);
}

Trainer::~Trainer() {
    if (!m_process)
        return;
    m_process->disconnect(this);
    if (m_process->state() != QProcess::NotRunning) {
        if (m_distant.target.isHere())
            signalRun(SIGKILL);
        else
            m_process->kill(); // the connection; the run goes on
        m_process->waitForFinished(2000);
    }
}

void Trainer::setState(State state) {
    if (m_state == state)
        return;
    m_state = state;
    Q_EMIT stateChanged();
}

void Trainer::changeSoon() {
    if (!m_batch.isActive())
        m_batch.start();
}

void Trainer::begin(const QString& runDirectory) {
    m_tailTimer.stop();
    m_tailed.close();
    m_mirror.close();
    m_record = {};
    m_output = {};
    m_errors = {};
    m_lastError.clear();
    m_isLost = false;
    m_attempts = 0;
    m_startsOver = false;
    m_runDirectory = runDirectory;
}

void Trainer::start(contract::Plan plan, const TrainSettings& settings, const RunTarget& target) {
    if (isActive())
        return;
    plan.training.optimizer.learningRate = settings.learningRate;
    if (const QString problem = target.problem(); !problem.isEmpty()) {
        Q_EMIT failed(problem);
        return;
    }
    if (!QDir().mkpath(settings.runDirectory)) {
        Q_EMIT failed(tr("Cannot create the run folder %1").arg(settings.runDirectory));
        return;
    }
    const QString planPath = settings.runDirectory + QStringLiteral("/plan.json");
    const std::string text = contract::formatPlan(plan);
    if (const auto written = contract::writeFileAtomically(planPath.toStdString(), text); !written) {
        Q_EMIT failed(QString::fromStdString(written.error().message));
        return;
    }
    begin(settings.runDirectory);
    m_distant = {target, settings};
    m_device = QString::fromStdString(plan.target);
    m_cluster = plan.cluster;
    if (target.isHere()) {
        QFile::remove(distantRunPath(m_runDirectory)); // of an older run in this folder
        launch(trainArguments(QStringLiteral("run"), settings, m_device, m_runDirectory, false));
    } else if (keepDistantRun()) {
        startElsewhere(QByteArray::fromStdString(text), false);
    }
}

bool Trainer::canResume() const {
    return m_state == State::Ended && !m_isLost && m_record.checkpoint() && !m_runDirectory.isEmpty();
}

void Trainer::resume(std::int64_t steps) {
    if (!canResume())
        return;
    if (m_device.isEmpty()) { // attached: the plan says what it runs on
        const auto plan = contract::readPlanFile((m_runDirectory + QStringLiteral("/plan.json")).toStdString());
        if (!plan) {
            Q_EMIT failed(QString::fromStdString(plan.error().message));
            return;
        }
        m_device = QString::fromStdString(plan->target);
        m_cluster = plan->cluster;
    }
    TrainSettings settings = m_distant.settings;
    settings.steps = steps;
    if (m_distant.target.isHere()) {
        // What the run was started with stands in its folder; the program checks that it is the same.
        const std::string file = (m_runDirectory + QStringLiteral("/run.json")).toStdString();
        const auto document = contract::readJsonFile(file, 1 << 20);
        if (!document) {
            Q_EMIT failed(QString::fromStdString(document.error().message));
            return;
        }
        const contract::JsonCursor root(*document, file);
        settings.data = QString::fromStdString(root.at("data").text());
        settings.tokenizer.clear();
        if (root.failed()) {
            Q_EMIT failed(QString::fromStdString(root.error().value().message));
            return;
        }
    }
    m_tailTimer.stop();
    m_tailed.close();
    m_output = {};
    m_errors = {};
    m_lastError.clear();
    m_distant.settings = settings;
    if (m_distant.target.isHere())
        launch(trainArguments(QStringLiteral("run"), settings, m_device, m_runDirectory, true));
    else
        startElsewhere({}, true);
}

void Trainer::launch(const QStringList& arguments) {
    m_record.beginAgain();
    delete m_process;
    m_process = new QProcess(this);
    m_process->setProgram(m_program);
    m_process->setArguments(arguments);
    // A group of its own: one signal reaches coordinator and workers. A run that outlives the window must not die of
    // writing to a pipe that nobody reads.
    m_process->setChildProcessModifier([] {
        ::setpgid(0, 0);
        std::signal(SIGPIPE, SIG_IGN);
        std::signal(SIGHUP, SIG_IGN);
    });
    listen();
    setState(State::Running);
    Q_EMIT recordChanged();
    m_process->start();
}

void Trainer::listen() {
    connect(m_process, &QProcess::readyReadStandardOutput, this, &Trainer::readSoon);
    connect(m_process, &QProcess::readyReadStandardError, this, &Trainer::readErrors);
    connect(m_process, &QProcess::finished, this, &Trainer::processFinished);
    sayUnlessStarted(*m_process);
}

void Trainer::sayUnlessStarted(QProcess& process) {
    connect(&process, &QProcess::errorOccurred, this, [this, &process](QProcess::ProcessError error) {
        if (error != QProcess::FailedToStart)
            return;
        setState(State::Idle);
        Q_EMIT failed(tr("Cannot start %1: %2").arg(process.program(), process.errorString()));
    });
}

bool Trainer::readOutput() {
    const QByteArray bytes = m_process ? m_process->read(kSlice) : QByteArray();
    if (bytes.isEmpty())
        return false;
    mirror(bytes);
    for (const QByteArray& line : m_output.take(bytes))
        m_record.takeLine(line);
    changeSoon();
    return true;
}

void Trainer::readSoon() {
    // A slice at a time, so that the window answers between them however much there is.
    if (readOutput() && m_process->bytesAvailable() > 0)
        QTimer::singleShot(0, m_process, [this] { readSoon(); });
}

void Trainer::readErrors() {
    for (const QByteArray& line : m_errors.take(m_process->readAllStandardError())) {
        const QString text = QString::fromUtf8(line);
        if (takeQueueLine(text))
            continue;
        m_lastError = text;
        m_record.takeLog(m_lastError);
    }
    changeSoon();
}

void Trainer::processFinished(int code, QProcess::ExitStatus status) {
    if (readOutput()) {
        QTimer::singleShot(0, m_process, [this, code, status, process = m_process] {
            if (process == m_process)
                processFinished(code, status);
        });
        return;
    }
    readErrors();
    m_record.takeLine(m_output.drain());
    if (const QByteArray rest = m_errors.drain(); !rest.isEmpty()) {
        m_lastError = QString::fromUtf8(rest);
        m_record.takeLog(m_lastError);
    }
    if (!m_record.bye()) {
        if (!m_distant.target.isHere() && reconnect(code))
            return;
        // It ended without saying so: the exit is all there is to tell.
        endUnsaid(m_isLost ? tr("the connection to %1 is lost; the run may go on there").arg(m_distant.target.name())
                  : status == QProcess::CrashExit ? tr("the training program was ended by a signal")
                  : !m_distant.target.isHere() && code == kNoConnection
                      ? tr("no connection to %1").arg(m_distant.target.name())
                      : tr("the training program ended with code %1").arg(code));
    }
    m_batch.stop();
    m_mirror.close();
    setState(State::Ended);
    Q_EMIT recordChanged();
}

void Trainer::endUnsaid(const QString& reason) {
    contract::ByeEvent bye;
    const bool wasAsked = m_state == State::Stopping && !m_isLost;
    bye.status = wasAsked ? "stopped" : "failed";
    bye.steps = m_record.steps().empty() ? 0 : m_record.steps().back().step;
    bye.reason = reason.toStdString();
    if (!m_lastError.isEmpty() && !wasAsked)
        bye.reason += ": " + m_lastError.toStdString();
    m_record.takeEvent({{}, bye});
}

void Trainer::signalRun(int signal) {
    if (m_process && m_process->processId() > 0) {
        // Only the coordinator is asked to stop, so that it can finish the step with its workers; killing takes all.
        const auto pid = static_cast<pid_t>(m_process->processId());
        ::kill(signal == SIGKILL ? -pid : pid, signal);
        return;
    }
    if (!m_process && m_record.hello() && m_record.hello()->pid > 1)
        ::kill(static_cast<pid_t>(m_record.hello()->pid), signal);
}

void Trainer::stop() {
    if (!isActive())
        return;
    const bool atOnce = m_state == State::Stopping;
    setState(State::Stopping);
    if (m_distant.target.isHere())
        signalRun(atOnce ? SIGKILL : SIGINT);
    else
        stopElsewhere(atOnce);
}

void Trainer::killWorker(std::int64_t pid) {
    const auto& workers = m_record.workers();
    const bool isOurs = std::any_of(workers.begin(), workers.end(),
                                    [pid](const RunWorker& worker) { return worker.pid == pid && pid > 1; });
    if (!canKillWorkers() || !isOurs)
        return;
    m_record.takeLog(tr("worker %1 is killed, as a drill").arg(pid));
    if (m_distant.target.isHere()) {
        ::kill(static_cast<pid_t>(pid), SIGKILL);
    } else {
        const Call call = shellCall(m_distant.target, QStringLiteral("kill -KILL %1").arg(pid));
        QProcess::startDetached(call.program, call.arguments);
    }
    changeSoon();
}

void Trainer::leaveRunning() {
    if (!m_process || !m_distant.target.isHere()) // what runs elsewhere does so anyway
        return;
    // A QProcess kills its child when destroyed; this one is given up on purpose and ends with the program.
    m_process->disconnect(this);
    m_process->setParent(nullptr);
    m_process = nullptr;
}

void Trainer::attach(const QString& runDirectory) {
    if (isActive())
        return;
    std::optional<DistantRun> distant;
    if (QFileInfo::exists(distantRunPath(runDirectory))) {
        auto read = readDistantRun(distantRunPath(runDirectory));
        if (!read) {
            Q_EMIT failed(QString::fromStdString(read.error().message));
            return;
        }
        distant = std::move(*read);
    }
    const QString path = runDirectory + QStringLiteral("/run.ndjson");
    if (!distant && !QFileInfo(path).isReadable()) {
        Q_EMIT failed(tr("%1 is not a run folder: there is no telemetry to read").arg(path));
        return;
    }
    delete m_process;
    m_process = nullptr;
    begin(runDirectory);
    m_device.clear();
    m_distant = distant.value_or(DistantRun{});
    // When what is recorded here has the end, there is nothing to ask elsewhere.
    if (distant && !endsInBye(path)) {
        setState(State::Running);
        follow(1);
        return;
    }
    m_tailed.setFileName(path);
    if (!m_tailed.open(QIODevice::ReadOnly)) {
        Q_EMIT failed(tr("%1 is not a run folder: %2").arg(path, m_tailed.errorString()));
        return;
    }
    setState(State::Running);
    m_tailTimer.start();
    tail();
}

void Trainer::tail() {
    const QByteArray bytes = m_tailed.read(kSlice);
    m_tailTimer.setInterval(bytes.size() == kSlice ? 0 : kTailMilliseconds);
    for (const QByteArray& line : m_output.take(bytes))
        m_record.takeLine(line);
    const bool isGone =
        m_record.hello() && m_record.hello()->pid > 1 && ::kill(static_cast<pid_t>(m_record.hello()->pid), 0) != 0;
    if (bytes.isEmpty() && (m_record.bye() || isGone)) {
        m_record.takeLine(m_output.drain());
        if (!m_record.bye())
            endUnsaid(tr("the training program is no longer there"));
        m_tailTimer.stop();
        m_batch.stop();
        setState(State::Ended);
        Q_EMIT recordChanged();
        return;
    }
    if (!bytes.isEmpty())
        changeSoon();
}

} // namespace shardscope::app
