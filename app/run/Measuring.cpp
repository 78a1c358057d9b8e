// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/run/Measuring.h"

#include <QCoreApplication>

namespace shardscope::app {

Measuring::Measuring(QObject* parent)
    : QObject(parent), m_program(QCoreApplication::applicationDirPath() + QStringLiteral("/shardscope-train")) {}

Measuring::~Measuring() {
    if (!m_process)
        return;
    m_process->disconnect(this);
    m_process->kill();
    m_process->waitForFinished(2000);
}

void Measuring::start() {
    if (m_process)
        return;
    m_isCancelled = false;
    m_process = new QProcess(this);
    QStringList arguments{QStringLiteral("measure")};
    if (!m_output.isEmpty())
        arguments << QStringLiteral("-o") << m_output;
    connect(m_process, &QProcess::finished, this, [this](int code, QProcess::ExitStatus status) {
        const QString errors = QString::fromUtf8(m_process->readAllStandardError()).trimmed();
        const bool isDone = status == QProcess::NormalExit && code == 0;
        end();
        if (isDone)
            Q_EMIT finished();
        else if (!m_isCancelled)
            Q_EMIT failed(tr("Measuring this machine failed: %1")
                              .arg(errors.isEmpty() ? tr("%1 ended with code %2").arg(m_program).arg(code)
                                                    : errors.section('\n', -1)));
    });
    connect(m_process, &QProcess::errorOccurred, this, [this](QProcess::ProcessError error) {
        // Of all errors only this one is not followed by finished().
        if (error != QProcess::FailedToStart)
            return;
        const QString reason = m_process->errorString();
        end();
        Q_EMIT failed(tr("Cannot start %1: %2").arg(m_program, reason));
    });
    Q_EMIT runningChanged(true);
    m_process->start(m_program, arguments);
}

void Measuring::cancel() {
    m_isCancelled = true;
    if (m_process)
        m_process->kill();
}

void Measuring::end() {
    m_process->deleteLater();
    m_process = nullptr;
    Q_EMIT runningChanged(false);
}

} // namespace shardscope::app
