// SPDX-License-Identifier: GPL-3.0-or-later
// Runs on other machines and in Slurm clusters.
#include "app/look/Units.h"
#include "app/run/Trainer.h"
#include "runtime/contract/Json.h"

#include <QTimer>

namespace shardscope::app {

namespace {

constexpr int kMostAttempts = 5;
const QString kQueueLine = QStringLiteral("queue: ");

} // namespace

bool Trainer::keepDistantRun() {
    const QString path = distantRunPath(m_runDirectory);
    const auto written = contract::writeFileAtomically(path.toStdString(), formatDistantRun(m_distant).toStdString());
    if (!written)
        Q_EMIT failed(QString::fromStdString(written.error().message));
    return written.has_value();
}

void Trainer::startElsewhere(const QByteArray& plan, bool resume) {
    m_record.beginAgain();
    m_startsOver = !resume;
    setState(State::Running);
    Q_EMIT recordChanged();
    if (m_distant.target.kind == RunTarget::Kind::Slurm)
        submit(plan, resume);
    else
        runThere(startCommand(m_distant.target, m_distant.settings, m_device, resume), plan);
}

void Trainer::runThere(const QString& command, const QByteArray& input) {
    const Call call = shellCall(m_distant.target, command);
    if (m_process)
        m_process->deleteLater(); // perhaps this is called from its own signal
    m_process = new QProcess(this);
    listen();
    m_process->start(call.program, call.arguments);
    m_process->write(input);
    m_process->closeWriteChannel();
}

void Trainer::submit(const QByteArray& plan, bool resume) {
    const RunTarget& target = m_distant.target;
    const QString script = batchScript(target, m_distant.settings, m_cluster, resume);
    const Call call = shellCall(target, submitCommand(target, script, resume));
    m_record.setWaiting(tr("Submitting to %1").arg(target.name()));
    auto* submitting = new QProcess(this);
    connect(submitting, &QProcess::finished, this, [this, submitting](int code) {
        submitting->deleteLater();
        // Lines of telemetry that are there already, then the job; with several clusters as "number;cluster".
        const QStringList answer =
            QString::fromUtf8(submitting->readAllStandardOutput()).simplified().section(';', 0, 0).split(' ');
        const QString job = answer.value(1);
        const qlonglong lines = answer.value(0).toLongLong();
        bool isNumber = false;
        (void)job.toLongLong(&isNumber);
        if (code == 0 && isNumber) {
            m_distant.target.job = job;
            m_record.takeLog(tr("submitted as job %1").arg(job));
            m_record.setWaiting(tr("Job %1 is submitted").arg(job));
            if (keepDistantRun()) {
                if (m_state == State::Stopping) // asked while it was being submitted
                    stopElsewhere(true);
                follow(lines + 1);
                return;
            }
        }
        m_lastError = QString::fromUtf8(submitting->readAllStandardError()).trimmed();
        endUnsaid(code == kNoConnection ? tr("no connection to %1").arg(m_distant.target.name())
                                        : tr("the job was not accepted"));
        setState(State::Ended);
        Q_EMIT recordChanged();
    });
    sayUnlessStarted(*submitting);
    submitting->start(call.program, call.arguments);
    submitting->write(plan);
    submitting->closeWriteChannel();
    Q_EMIT recordChanged();
}

void Trainer::follow(std::int64_t fromLine) {
    m_startsOver = fromLine == 1;
    runThere(followCommand(m_distant.target, fromLine), {});
}

void Trainer::stopElsewhere(bool atOnce) {
    const RunTarget& target = m_distant.target;
    const bool hasBegun = m_record.hello().has_value();
    if (target.kind == RunTarget::Kind::Slurm ? target.job.isEmpty() : !hasBegun) {
        // Nothing there has a name yet by which it could be asked.
        if (target.kind == RunTarget::Kind::Ssh && m_process)
            m_process->kill();
        return;
    }
    const std::int64_t pid = hasBegun ? m_record.hello()->pid : 0;
    if (target.kind == RunTarget::Kind::Ssh && pid <= 1)
        return;
    // A job that waits has no step to finish.
    const Call call = shellCall(target, stopCommand(target, pid, atOnce || !hasBegun));
    auto* asking = new QProcess(this);
    connect(asking, &QProcess::finished, this, [this, asking](int code) {
        asking->deleteLater();
        const QString error = QString::fromUtf8(asking->readAllStandardError()).trimmed();
        if (code == 0 || !isActive())
            return;
        setState(State::Running); // so that it can be asked again
        Q_EMIT failed(tr("The run on %1 could not be asked to stop: %2").arg(m_distant.target.name(), error));
    });
    asking->start(call.program, call.arguments);
}

bool Trainer::takeQueueLine(const QString& line) {
    if (m_distant.target.kind != RunTarget::Kind::Slurm || !line.startsWith(kQueueLine))
        return false;
    const QString state = line.mid(kQueueLine.size()).section(' ', 0, 0).toLower();
    const QString reason = line.mid(kQueueLine.size()).section(' ', 1);
    m_attempts = 0;
    m_record.setWaiting(state == QLatin1String("running")
                            ? tr("Job %1 runs").arg(m_distant.target.job)
                            : tr("Job %1 is %2 (%3)").arg(m_distant.target.job, state, reason));
    return true;
}

bool Trainer::reconnect(int code) {
    const bool mayGoOn = m_distant.target.kind == RunTarget::Kind::Slurm || m_record.hello();
    if (code != kNoConnection || !mayGoOn)
        return false;
    if (m_attempts >= kMostAttempts) {
        m_isLost = true;
        return false;
    }
    const int pause = m_pause << m_attempts++;
    m_record.takeLog(tr("the connection to %1 broke (%2); trying again in %3")
                         .arg(m_distant.target.name(), m_lastError, durationText(pause / 1e3)));
    QTimer::singleShot(pause, this, [this, folder = m_runDirectory] {
        if (isActive() && m_runDirectory == folder)
            follow(1);
    });
    Q_EMIT recordChanged();
    return true;
}

void Trainer::mirror(const QByteArray& bytes) {
    if (m_distant.target.isHere())
        return;
    m_attempts = 0;
    if (m_startsOver) { // what was known of it is told again
        m_startsOver = false;
        m_record.restart();
        m_output = {};
        m_mirror.close();
    }
    if (!m_mirror.isOpen()) {
        m_mirror.setFileName(m_runDirectory + QStringLiteral("/run.ndjson"));
        const bool isNew = m_record.steps().empty() && !m_record.hello();
        if (!m_mirror.open(QIODevice::WriteOnly | (isNew ? QIODevice::Truncate : QIODevice::Append)))
            m_record.takeLog(tr("%1 cannot be written: %2").arg(m_mirror.fileName(), m_mirror.errorString()));
    }
    if (m_mirror.isOpen()) {
        m_mirror.write(bytes);
        m_mirror.flush();
    }
}

} // namespace shardscope::app
