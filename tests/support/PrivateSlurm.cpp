// SPDX-License-Identifier: GPL-3.0-or-later
#include "support/PrivateSlurm.h"

#include "support/FreePort.h"

#include <QtCore/QDir>
#include <QtCore/QFile>
#include <QtCore/QThread>

#include <thread>

namespace shardscope::testing {

PrivateSlurm::PrivateSlurm(const QString& controller, const QString& node, const QString& folder)
    : m_folder(folder), m_configuration(folder + "/slurm.conf") {
    QDir().mkpath(folder + "/state");
    QDir().mkpath(folder + "/spool");
    QFile file(m_configuration);
    if (!file.open(QIODevice::WriteOnly))
        return;
    file.write(QString("ClusterName=shardscope\n"
                       "SlurmctldHost=localhost(127.0.0.1)\n"
                       "SlurmctldPort=%2\nSlurmdPort=%3\n"
                       "SlurmUser=root\nSlurmdUser=root\n"
                       "AuthType=auth/none\nCredType=cred/none\n"
                       "StateSaveLocation=%1/state\nSlurmdSpoolDir=%1/spool\n"
                       "SlurmctldPidFile=%1/controller.pid\nSlurmdPidFile=%1/node.pid\n"
                       "ProctrackType=proctrack/pgid\nTaskPlugin=task/none\nMpiDefault=none\nSwitchType=switch/none\n"
                       "SelectType=select/cons_tres\nSelectTypeParameters=CR_CPU\nReturnToService=2\n"
                       "NodeName=localhost NodeAddr=127.0.0.1 CPUs=%4 State=UNKNOWN\n"
                       "PartitionName=all Nodes=localhost Default=YES State=UP\n")
                   .arg(folder)
                   .arg(freePort())
                   .arg(freePort())
                   .arg(std::max(1U, std::thread::hardware_concurrency()))
                   .toUtf8());
    file.close();
    QProcessEnvironment environment = QProcessEnvironment::systemEnvironment();
    environment.insert("SLURM_CONF", m_configuration);
    const auto start = [&](QProcess& process, const QString& program, const QStringList& arguments, const char* log) {
        process.setProcessEnvironment(environment);
        process.setProcessChannelMode(QProcess::MergedChannels);
        process.setStandardOutputFile(folder + log);
        process.start(program, arguments);
        return process.waitForStarted(10000);
    };
    if (!start(m_controller, controller, {"-D"}, "/controller.log") ||
        !start(m_node, node, {"-D", "-N", "localhost"}, "/node.log"))
        return;
    constexpr int kAttempts = 30;
    for (int i = 0; i < kAttempts && !m_isUp; ++i) {
        QProcess probe;
        probe.setProcessEnvironment(environment);
        probe.start("srun", {"--immediate=5", "-n", "1", "true"});
        m_isUp = probe.waitForFinished(30000) && probe.exitStatus() == QProcess::NormalExit && probe.exitCode() == 0;
        if (!m_isUp)
            QThread::msleep(500);
    }
}

PrivateSlurm::~PrivateSlurm() {
    for (QProcess* process : {&m_node, &m_controller}) {
        process->terminate();
        if (process->state() != QProcess::NotRunning && !process->waitForFinished(10000)) {
            process->kill();
            process->waitForFinished(10000);
        }
    }
}

QString PrivateSlurm::log() const {
    QString text;
    for (const char* name : {"/controller.log", "/node.log"}) {
        QFile file(m_folder + name);
        if (file.open(QIODevice::ReadOnly))
            text += QString::fromUtf8(file.readAll().right(2000)) + '\n';
    }
    return text;
}

} // namespace shardscope::testing
