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
        signalRun(SIGKILL);
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

void Trainer::start(contract::Plan plan, const TrainSettings& settings) {
    if (isActive())
        return;
    plan.training.optimizer.learningRate = settings.learningRate;
    m_checkpointEvery = settings.checkpointEvery;
    if (!QDir().mkpath(settings.runDirectory)) {
        Q_EMIT failed(tr("Cannot create the run folder %1").arg(settings.runDirectory));
        return;
    }
    const QString planPath = settings.runDirectory + QStringLiteral("/plan.json");
    if (const auto written = contract::writeFileAtomically(planPath.toStdString(), contract::formatPlan(plan));
        !written) {
        Q_EMIT failed(QString::fromStdString(written.error().message));
        return;
    }
    m_tailTimer.stop();
    m_record = {};
    m_output = {};
    m_errors = {};
    m_lastError.clear();
    m_runDirectory = settings.runDirectory;
    launch({QStringLiteral("run"), planPath, QStringLiteral("--data"), settings.data, QStringLiteral("--steps"),
            QString::number(settings.steps), QStringLiteral("--seed"), QString::number(settings.seed),
            QStringLiteral("--checkpoint-every"), QString::number(settings.checkpointEvery),
            QStringLiteral("--run-dir"), settings.runDirectory});
}

bool Trainer::canResume() const {
    return m_state == State::Ended && m_record.checkpoint() && !m_runDirectory.isEmpty();
}

void Trainer::resume(std::int64_t steps) {
    if (!canResume())
        return;
    // What the run was started with stands in its folder; the program checks that it is the same.
    const std::string file = (m_runDirectory + QStringLiteral("/run.json")).toStdString();
    const auto document = contract::readJsonFile(file, 1 << 20);
    if (!document) {
        Q_EMIT failed(QString::fromStdString(document.error().message));
        return;
    }
    const contract::JsonCursor root(*document, file);
    const QString data = QString::fromStdString(root.at("data").text());
    if (root.failed()) {
        Q_EMIT failed(QString::fromStdString(root.error().value().message));
        return;
    }
    m_tailTimer.stop();
    m_tailed.close();
    m_output = {};
    m_errors = {};
    m_lastError.clear();
    launch({QStringLiteral("run"), m_runDirectory + QStringLiteral("/plan.json"), QStringLiteral("--data"), data,
            QStringLiteral("--steps"), QString::number(steps), QStringLiteral("--checkpoint-every"),
            QString::number(std::max<std::int64_t>(1, m_checkpointEvery)), QStringLiteral("--run-dir"), m_runDirectory,
            QStringLiteral("--resume")});
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
    connect(m_process, &QProcess::readyReadStandardOutput, this, &Trainer::readOutput);
    connect(m_process, &QProcess::readyReadStandardError, this, &Trainer::readErrors);
    connect(m_process, &QProcess::finished, this, &Trainer::processFinished);
    connect(m_process, &QProcess::errorOccurred, this, [this](QProcess::ProcessError error) {
        if (error != QProcess::FailedToStart)
            return;
        setState(State::Idle);
        Q_EMIT failed(tr("Cannot start %1: %2").arg(m_program, m_process->errorString()));
    });
    setState(State::Running);
    Q_EMIT recordChanged();
    m_process->start();
}

void Trainer::readOutput() {
    for (const QByteArray& line : m_output.take(m_process->readAllStandardOutput()))
        m_record.takeLine(line);
    changeSoon();
}

void Trainer::readErrors() {
    for (const QByteArray& line : m_errors.take(m_process->readAllStandardError())) {
        m_lastError = QString::fromUtf8(line);
        m_record.takeLog(m_lastError);
    }
    changeSoon();
}

void Trainer::processFinished(int code, QProcess::ExitStatus status) {
    readOutput();
    readErrors();
    m_record.takeLine(m_output.drain());
    if (const QByteArray rest = m_errors.drain(); !rest.isEmpty()) {
        m_lastError = QString::fromUtf8(rest);
        m_record.takeLog(m_lastError);
    }
    if (!m_record.bye()) {
        // It ended without saying so: the exit is all there is to tell.
        contract::ByeEvent bye;
        const bool wasAsked = m_state == State::Stopping;
        bye.status = wasAsked ? "stopped" : "failed";
        bye.steps = m_record.steps().empty() ? 0 : m_record.steps().back().step;
        bye.reason = status == QProcess::CrashExit
                         ? tr("the training program was ended by a signal").toStdString()
                         : tr("the training program ended with code %1").arg(code).toStdString();
        if (!m_lastError.isEmpty() && !wasAsked)
            bye.reason += ": " + m_lastError.toStdString();
        m_record.takeEvent({{}, bye});
    }
    m_batch.stop();
    setState(State::Ended);
    Q_EMIT recordChanged();
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
    if (m_state == State::Running) {
        setState(State::Stopping);
        signalRun(SIGINT);
    } else if (m_state == State::Stopping) {
        signalRun(SIGKILL);
    }
}

void Trainer::leaveRunning() {
    if (!m_process)
        return;
    // A QProcess kills its child when destroyed; this one is given up on purpose and ends with the program.
    m_process->disconnect(this);
    m_process->setParent(nullptr);
    m_process = nullptr;
}

void Trainer::attach(const QString& runDirectory) {
    if (isActive())
        return;
    const QString path = runDirectory + QStringLiteral("/run.ndjson");
    m_tailed.close();
    m_tailed.setFileName(path);
    if (!m_tailed.open(QIODevice::ReadOnly)) {
        Q_EMIT failed(tr("%1 is not a run folder: %2").arg(path, m_tailed.errorString()));
        return;
    }
    delete m_process;
    m_process = nullptr;
    m_record = {};
    m_output = {};
    m_runDirectory = runDirectory;
    setState(State::Running);
    m_tailTimer.start();
    tail();
}

void Trainer::tail() {
    const QByteArray bytes = m_tailed.readAll();
    for (const QByteArray& line : m_output.take(bytes))
        m_record.takeLine(line);
    const bool isGone =
        m_record.hello() && m_record.hello()->pid > 1 && ::kill(static_cast<pid_t>(m_record.hello()->pid), 0) != 0;
    if (bytes.isEmpty() && (m_record.bye() || isGone)) {
        m_record.takeLine(m_output.drain());
        if (!m_record.bye()) {
            contract::ByeEvent bye;
            bye.status = "failed";
            bye.steps = m_record.steps().empty() ? 0 : m_record.steps().back().step;
            bye.reason = tr("the training program is no longer there").toStdString();
            m_record.takeEvent({{}, bye});
        }
        m_tailTimer.stop();
        setState(State::Ended);
    }
    Q_EMIT recordChanged();
}

} // namespace shardscope::app
