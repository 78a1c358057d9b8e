// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QtCore/QString>
#include <QtCore/QStringList>

namespace shardscope::testing {

/// Two network namespaces joined by a link, removed with this object. Needs the rights to make them.
class TwoHosts {
public:
    /// `ip`: the program of iproute2.
    explicit TwoHosts(QString ip);
    ~TwoHosts();
    TwoHosts(const TwoHosts&) = delete;
    TwoHosts& operator=(const TwoHosts&) = delete;

    bool areUp() const { return m_error.isEmpty(); }
    QString error() const { return m_error; }
    QString name(int host) const { return QString("shardscope-%1-%2").arg(m_tag).arg(host); }
    QString address(int host) const { return QString("10.77.0.%1").arg(host + 1); }

private:
    /// Remembers the first error; then does nothing more.
    void run(const QStringList& arguments);

    QString m_ip;
    qint64 m_tag;
    QString m_error;
};

} // namespace shardscope::testing
