// SPDX-License-Identifier: GPL-3.0-or-later
#include "e2e/support/TwoHosts.h"

#include <QtCore/QCoreApplication>
#include <QtCore/QProcess>

#include <utility>

namespace shardscope::testing {

TwoHosts::TwoHosts(QString ip) : m_ip(std::move(ip)), m_tag(QCoreApplication::applicationPid()) {
    run({"netns", "add", name(0)});
    run({"netns", "add", name(1)});
    run({"link", "add", "link0", "netns", name(0), "type", "veth", "peer", "name", "link1", "netns", name(1)});
    for (int host = 0; host < 2; ++host) {
        run({"-n", name(host), "addr", "add", address(host) + "/24", "dev", QString("link%1").arg(host)});
        run({"-n", name(host), "link", "set", QString("link%1").arg(host), "up"});
        run({"-n", name(host), "link", "set", "lo", "up"});
    }
}

TwoHosts::~TwoHosts() {
    for (int host = 0; host < 2; ++host)
        QProcess::execute(m_ip, {"netns", "del", name(host)});
}

void TwoHosts::run(const QStringList& arguments) {
    if (!m_error.isEmpty())
        return;
    QProcess process;
    process.start(m_ip, arguments);
    if (!process.waitForFinished(30000) || process.exitCode() != 0)
        m_error =
            QString("ip %1: %2").arg(arguments.join(' '), QString::fromUtf8(process.readAllStandardError()).trimmed());
}

} // namespace shardscope::testing
