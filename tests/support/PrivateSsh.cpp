// SPDX-License-Identifier: GPL-3.0-or-later
#include "support/PrivateSsh.h"

#include "support/FreePort.h"

#include <QtCore/QDir>
#include <QtCore/QFile>
#include <QtCore/QStandardPaths>
#include <QtCore/QThread>

#include <unistd.h>

namespace shardscope::testing {

namespace {

bool write(const QString& path, const QString& text, bool isProgram = false) {
    QFile file(path);
    if (!file.open(QIODevice::WriteOnly) || file.write(text.toUtf8()) < 0)
        return false;
    file.close();
    using Permission = QFileDevice::Permission;
    return file.setPermissions(Permission::ReadOwner | Permission::WriteOwner |
                               (isProgram ? Permission::ExeOwner : Permission{}));
}

} // namespace

PrivateSsh::PrivateSsh(const QString& folder) : m_folder(folder) {
    m_error = begin();
}

QString PrivateSsh::begin() {
    const QString server = QStandardPaths::findExecutable("sshd", {"/usr/sbin", "/usr/local/sbin"});
    const QString client = QStandardPaths::findExecutable("ssh");
    const QString keys = QStandardPaths::findExecutable("ssh-keygen");
    if (server.isEmpty() || client.isEmpty() || keys.isEmpty())
        return "ssh is not installed (Debian: openssh-client openssh-server)";
    // Where sshd puts the part of itself that has no rights; the service makes it, and there is none here.
    if (::geteuid() != 0 || !QDir().mkpath("/run/sshd"))
        return "an ssh server of our own needs root";
    QDir().mkpath(commandFolder());
    for (const char* name : {"/host", "/user"})
        if (QProcess::execute(keys, {"-q", "-t", "ed25519", "-N", "", "-f", m_folder + name}) != 0)
            return "ssh-keygen failed";
    const int port = freePort();
    if (!QFile::copy(m_folder + "/user.pub", m_folder + "/authorized") ||
        !write(m_folder + "/sshd_config",
               QString("Port %1\nListenAddress 127.0.0.1\nHostKey %2/host\nAuthorizedKeysFile %2/authorized\n"
                       "StrictModes no\nUsePAM no\nPidFile none\nPermitRootLogin prohibit-password\n"
                       "PasswordAuthentication no\n")
                   .arg(port)
                   .arg(m_folder)) ||
        !write(m_folder + "/ssh_config",
               QString("Host private\n  HostName 127.0.0.1\n  Port %1\n  IdentityFile %2/user\n  IdentitiesOnly yes\n"
                       "  StrictHostKeyChecking no\n  UserKnownHostsFile /dev/null\n  LogLevel ERROR\n")
                   .arg(port)
                   .arg(m_folder)) ||
        !write(commandFolder() + "/ssh",
               QString("#!/bin/sh\nexec %1 -F '%2/ssh_config' \"$@\"\n").arg(client, m_folder), true))
        return m_folder + " cannot be written";
    m_server.setStandardErrorFile(m_folder + "/sshd.log");
    m_server.start(server, {"-D", "-e", "-f", m_folder + "/sshd_config"});
    if (!m_server.waitForStarted(10000))
        return m_server.errorString();
    constexpr int kAttempts = 30;
    for (int i = 0; i < kAttempts; ++i) {
        if (QProcess::execute(commandFolder() + "/ssh", {"-o", "BatchMode=yes", "private", "true"}) == 0)
            return {};
        QThread::msleep(500);
    }
    QFile log(m_folder + "/sshd.log");
    return log.open(QIODevice::ReadOnly) ? "no answer: " + QString::fromUtf8(log.readAll().right(1000)) : "no answer";
}

PrivateSsh::~PrivateSsh() {
    m_server.terminate();
    if (m_server.state() != QProcess::NotRunning && !m_server.waitForFinished(10000)) {
        m_server.kill();
        m_server.waitForFinished(10000);
    }
}

} // namespace shardscope::testing
