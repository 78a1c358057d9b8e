// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QtCore/QProcess>
#include <QtCore/QString>

namespace shardscope::testing {

/// An ssh server of our own on loopback with keys of its own, ended with this object. Programs that call `ssh` reach it
/// under the name "private" when commandFolder() is first in their PATH.
class PrivateSsh {
public:
    /// Waits until it answers, at most a quarter of a minute.
    explicit PrivateSsh(const QString& folder);
    ~PrivateSsh();
    PrivateSsh(const PrivateSsh&) = delete;
    PrivateSsh& operator=(const PrivateSsh&) = delete;

    bool isUp() const { return m_error.isEmpty(); }
    /// Why it is not.
    const QString& error() const { return m_error; }
    QString commandFolder() const { return m_folder + "/commands"; }

private:
    QString begin();
    QString m_folder;
    QString m_error;
    QProcess m_server;
};

} // namespace shardscope::testing
