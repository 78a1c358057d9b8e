// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "runtime/contract/Telemetry.h"
#include "support/FreePort.h"
#include "support/PlanRecipe.h"

#include <QtCore/QProcess>
#include <QtCore/QString>
#include <QtCore/QStringList>

#include <functional>
#include <string>
#include <vector>

namespace shardscope::testing {

/// shardscope-train as a process, with its telemetry.
class TrainerProcess {
public:
    explicit TrainerProcess(const QStringList& environment = {});
    ~TrainerProcess();

    void start(const QStringList& arguments);
    /// Starts and waits for the end; the exit code, -1 when it crashed or took too long.
    int run(const QStringList& arguments, int milliseconds = 120000);
    int waitForEnd(int milliseconds = 120000);
    /// Waits until a telemetry line satisfies `accept`. `from`: how many lines are left out; becomes how many were
    /// seen.
    bool waitFor(const std::function<bool(const contract::Event&)>& accept, int milliseconds = 60000,
                 std::size_t* from = nullptr);

    qint64 pid() const { return m_process.processId(); }
    bool isRunning() const { return m_process.state() != QProcess::NotRunning; }
    const std::vector<contract::Event>& events() const { return m_events; }
    /// Lines of standard output that are not telemetry: there must be none.
    const QStringList& strayLines() const { return m_stray; }
    QString errors();
    /// Process ids that the ranks said they have.
    std::vector<qint64> workerPids() const;

    template<typename Body> std::vector<Body> all() const {
        std::vector<Body> bodies;
        for (const contract::Event& event : m_events)
            if (const auto* body = std::get_if<Body>(&event.body))
                bodies.push_back(*body);
        return bodies;
    }

private:
    void read();
    QProcess m_process;
    QByteArray m_rest;
    std::vector<contract::Event> m_events;
    QStringList m_stray;
    QString m_errors;
};

/// Writes a plan file and returns its path.
QString writePlan(const QString& folder, const contract::Plan& plan, const QString& name = "plan.json");
/// Whether a process with this id is alive (a zombie is not).
bool isAlive(qint64 pid);
bool waitUntilGone(const std::vector<qint64>& pids, int milliseconds = 5000);

} // namespace shardscope::testing
