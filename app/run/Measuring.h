// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QObject>
#include <QProcess>

namespace shardscope::app {

/// Measures this machine's rates with `shardscope-train measure`; the result is what "This machine" plans with from
/// then on.
class Measuring : public QObject {
    Q_OBJECT
public:
    explicit Measuring(QObject* parent = nullptr);
    /// Ends the program.
    ~Measuring() override;
    /// By default beside this program.
    void setProgram(const QString& program) { m_program = program; }
    /// Where the result goes; empty: the program's own place.
    void setOutput(const QString& path) { m_output = path; }
    void start();
    void cancel();
    bool isRunning() const { return m_process != nullptr; }

Q_SIGNALS:
    void runningChanged(bool running);
    void finished();
    void failed(const QString& message);

private:
    void end();
    QString m_program;
    QString m_output;
    QProcess* m_process = nullptr;
    bool m_isCancelled = false;
};

} // namespace shardscope::app
