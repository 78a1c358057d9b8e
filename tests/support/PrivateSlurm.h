// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QtCore/QProcess>
#include <QtCore/QString>

namespace shardscope::testing {

/// A Slurm controller and one node on this machine, ended with this object.
class PrivateSlurm {
public:
    /// `controller`, `node`: the programs slurmctld and slurmd. Waits until jobs can be started, at most half a minute.
    PrivateSlurm(const QString& controller, const QString& node, const QString& folder);
    ~PrivateSlurm();
    PrivateSlurm(const PrivateSlurm&) = delete;
    PrivateSlurm& operator=(const PrivateSlurm&) = delete;

    bool isUp() const { return m_isUp; }
    /// What clients need in SLURM_CONF.
    QString configuration() const { return m_configuration; }
    QString log() const;

private:
    QString m_folder;
    QString m_configuration;
    QProcess m_controller;
    QProcess m_node;
    bool m_isUp = false;
};

} // namespace shardscope::testing
