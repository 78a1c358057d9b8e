// SPDX-License-Identifier: GPL-3.0-or-later
#include "e2e/support/TrainerProcess.h"

#include <QtCore/QElapsedTimer>
#include <QtCore/QFile>
#include <QtCore/QProcessEnvironment>
#include <QtCore/QThread>

#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

namespace shardscope::testing {

TrainerProcess::TrainerProcess(const QStringList& environment) {
    QProcessEnvironment variables = QProcessEnvironment::systemEnvironment();
    for (const QString& entry : environment)
        variables.insert(entry.section('=', 0, 0), entry.section('=', 1));
    m_process.setProcessEnvironment(variables);
}

TrainerProcess::~TrainerProcess() {
    if (m_process.state() != QProcess::NotRunning) {
        m_process.kill(); // its workers die with it
        m_process.waitForFinished(5000);
    }
}

void TrainerProcess::start(const QStringList& arguments) {
    m_process.start(SHARDSCOPE_BIN_DIR "/shardscope-train", arguments);
    m_process.waitForStarted();
}

int TrainerProcess::run(const QStringList& arguments, int milliseconds) {
    start(arguments);
    return waitForEnd(milliseconds);
}

int TrainerProcess::waitForEnd(int milliseconds) {
    QElapsedTimer timer;
    timer.start();
    while (m_process.state() != QProcess::NotRunning && timer.elapsed() < milliseconds) {
        m_process.waitForFinished(50);
        read();
    }
    read();
    if (m_process.state() != QProcess::NotRunning || m_process.exitStatus() != QProcess::NormalExit)
        return -1;
    return m_process.exitCode();
}

bool TrainerProcess::waitFor(const std::function<bool(const contract::Event&)>& accept, int milliseconds,
                             std::size_t* from) {
    QElapsedTimer timer;
    timer.start();
    std::size_t start = 0;
    std::size_t& seen = from != nullptr ? *from : start;
    for (;;) {
        read();
        while (seen < m_events.size())
            if (accept(m_events[seen++]))
                return true;
        if (timer.elapsed() > milliseconds || m_process.state() == QProcess::NotRunning)
            return false;
        m_process.waitForReadyRead(20);
    }
}

void TrainerProcess::read() {
    m_errors += QString::fromUtf8(m_process.readAllStandardError());
    m_rest += m_process.readAllStandardOutput();
    for (qsizetype end = m_rest.indexOf('\n'); end >= 0; end = m_rest.indexOf('\n')) {
        const QByteArray line = m_rest.left(end);
        m_rest.remove(0, end + 1);
        if (const auto event = contract::parseEvent(line.toStdString()))
            m_events.push_back(*event);
        else
            m_stray << QString::fromUtf8(line);
    }
}

QString TrainerProcess::errors() {
    read();
    return m_errors;
}

std::vector<qint64> TrainerProcess::workerPids() const {
    std::vector<qint64> pids;
    for (const contract::Event& event : m_events)
        if (const auto* ready = std::get_if<contract::ReadyEvent>(&event.body)) {
            const auto rank = static_cast<std::size_t>(event.header.rank);
            pids.resize(std::max(pids.size(), rank + 1), 0);
            pids[rank] = ready->pid;
        }
    return pids;
}

QString writePlan(const QString& folder, const contract::Plan& plan, const QString& name) {
    QFile file(folder + "/" + name);
    file.open(QIODevice::WriteOnly);
    file.write(QByteArray::fromStdString(contract::formatPlan(plan)));
    return file.fileName();
}

bool isAlive(qint64 pid) {
    QFile file(QString("/proc/%1/stat").arg(pid));
    if (!file.open(QIODevice::ReadOnly))
        return false;
    const QByteArray text = file.readAll();
    return !text.contains(") Z");
}

bool waitUntilGone(const std::vector<qint64>& pids, int milliseconds) {
    QElapsedTimer timer;
    timer.start();
    for (const qint64 pid : pids)
        while (isAlive(pid)) {
            if (timer.elapsed() > milliseconds)
                return false;
            QThread::msleep(20);
        }
    return true;
}

} // namespace shardscope::testing
