// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/run/RunRecord.h"

#include "app/look/Units.h"

#include <QCoreApplication>
#include <QFile>
#include <QStringList>

#include <algorithm>
#include <cmath>

namespace shardscope::app {

namespace {

/// A log does not grow without end; the run folder keeps everything.
constexpr std::size_t kMaximumLog = 20'000;

constexpr qsizetype kLongestLine = 1 << 20;
constexpr std::int64_t kReservedSteps = 1'000'000;

QString translate(const char* text) {
    return QCoreApplication::translate("RunRecord", text);
}

QString powerText(double watts) {
    return watts < 999.5 ? translate("%1 W").arg(watts, 0, 'f', 0) : translate("%1 kW").arg(watts / 1000, 0, 'f', 1);
}
QString temperatureText(double celsius) {
    return translate("%1 °C").arg(celsius, 0, 'f', 0);
}

} // namespace

QString RunWorker::statusText() const {
    QStringList parts;
    if (status.utilization)
        parts << translate("%1 busy").arg(percentText(*status.utilization, 0));
    if (status.powerWatts)
        parts << powerText(*status.powerWatts);
    if (status.temperatureCelsius)
        parts << temperatureText(*status.temperatureCelsius);
    if (status.memoryUsed)
        parts << translate("%1 in use").arg(bytesText(*status.memoryUsed));
    if (status.pcieReceived && status.pcieSent)
        parts << translate("PCIe %1 in, %2 out")
                     .arg(bandwidthText(*status.pcieReceived), bandwidthText(*status.pcieSent));
    if (status.nvlinkReceived && status.nvlinkSent)
        parts << translate("NVLink %1 in, %2 out")
                     .arg(bandwidthText(*status.nvlinkReceived), bandwidthText(*status.nvlinkSent));
    return parts.join(QStringLiteral(", "));
}

QString RunRecord::devicesText() const {
    double busy = 0, watts = 0, hottest = 0;
    int busyCount = 0, wattsCount = 0, hottestCount = 0;
    for (const RunWorker& who : m_workers) {
        if (who.status.utilization) {
            busy += *who.status.utilization;
            ++busyCount;
        }
        if (who.status.powerWatts) {
            watts += *who.status.powerWatts;
            ++wattsCount;
        }
        if (who.status.temperatureCelsius) {
            hottest =
                hottestCount > 0 ? std::max(hottest, *who.status.temperatureCelsius) : *who.status.temperatureCelsius;
            ++hottestCount;
        }
    }
    QStringList parts;
    if (busyCount > 0)
        parts << translate("%1 busy").arg(percentText(busy / busyCount, 0));
    if (wattsCount > 0)
        parts << powerText(watts);
    if (hottestCount > 0)
        parts << temperatureText(hottest);
    return parts.join(QStringLiteral(" · "));
}

QList<QByteArray> LineSplitter::take(const QByteArray& bytes) {
    m_rest += bytes;
    QList<QByteArray> lines;
    qsizetype begin = 0;
    for (qsizetype end = m_rest.indexOf('\n'); end >= 0; end = m_rest.indexOf('\n', begin)) {
        lines << m_rest.mid(begin, end - begin);
        begin = end + 1;
    }
    m_rest.remove(0, begin);
    if (m_rest.size() > kLongestLine) // no telemetry; it must not fill the memory
        lines << drain();
    return lines;
}

QByteArray LineSplitter::drain() {
    QByteArray rest;
    rest.swap(m_rest);
    return rest;
}

void RunRecord::addLog(double t, std::int32_t rank, const QString& level, const QString& text) {
    if (m_log.size() >= kMaximumLog)
        m_log.erase(m_log.begin(), m_log.begin() + kMaximumLog / 10);
    m_log.push_back({t, rank, level, text, false});
}

void RunRecord::takeLine(const QByteArray& line) {
    if (line.trimmed().isEmpty())
        return;
    const auto event = contract::parseEvent(std::string_view(line.constData(), static_cast<std::size_t>(line.size())));
    if (!event) {
        ++m_garbage;
        addLog(0, -1, QStringLiteral("warning"), translate("not telemetry: %1").arg(QString::fromUtf8(line.left(200))));
        return;
    }
    takeEvent(*event);
}

void RunRecord::takeLog(const QString& text) {
    if (text.trimmed().isEmpty())
        return;
    addLog(0, -1, QStringLiteral("info"), text);
    m_log.back().isOwn = true;
}

RunWorker& RunRecord::worker(std::int32_t rank) {
    const auto place =
        std::lower_bound(m_workers.begin(), m_workers.end(), rank,
                         [](const RunWorker& worker, std::int32_t value) { return worker.rank < value; });
    if (place != m_workers.end() && place->rank == rank)
        return *place;
    return *m_workers.insert(place, RunWorker{rank, 0, {}, translate("starting"), std::nullopt, {}});
}

void RunRecord::takeEvent(const contract::Event& event) {
    const contract::EventHeader& header = event.header;
    const auto visitor = [&](const auto& body) {
        using Body = std::decay_t<decltype(body)>;
        if constexpr (std::is_same_v<Body, contract::HelloEvent>) {
            beginAgain();
            m_hello = body;
            // What is asked for is rarely less than what comes; a vector that doubles would take twice the room.
            m_steps.reserve(static_cast<std::size_t>(std::clamp<std::int64_t>(body.steps, 0, kReservedSteps)));
            addLog(header.t, header.rank, "info", translate("run started with %1 workers").arg(body.world));
        } else if constexpr (std::is_same_v<Body, contract::ReadyEvent>) {
            RunWorker& who = worker(header.rank);
            who.pid = body.pid;
            who.device = QString::fromStdString(body.device);
            who.state = translate("ready");
        } else if constexpr (std::is_same_v<Body, contract::MemoryEvent>) {
            worker(header.rank).memory = body;
        } else if constexpr (std::is_same_v<Body, contract::DeviceEvent>) {
            worker(header.rank).status = body;
        } else if constexpr (std::is_same_v<Body, contract::OperatorEvent>) {
            if (header.rank == 0)
                m_coming.push_back(body);
        } else if constexpr (std::is_same_v<Body, contract::StepEvent>) {
            endTrace();
            if (!m_steps.empty() && m_steps.back().step >= body.step)
                ++m_rewrites;
            while (!m_steps.empty() && m_steps.back().step >= body.step)
                m_steps.pop_back();
            m_steps.push_back(body);
            for (RunWorker& who : m_workers)
                if (who.state == translate("ready") || who.state == translate("starting"))
                    who.state = translate("training");
        } else if constexpr (std::is_same_v<Body, contract::EvaluationEvent>) {
            m_evaluations.push_back(body);
        } else if constexpr (std::is_same_v<Body, contract::CheckpointEvent>) {
            m_checkpoint = body;
            addLog(header.t, header.rank, "info",
                   translate("checkpoint of step %1: %2").arg(body.step).arg(QString::fromStdString(body.path)));
        } else if constexpr (std::is_same_v<Body, contract::FailureEvent>) {
            if (!m_failure || (body.first && !m_failure->first)) {
                m_failure = body;
                m_failedRank = header.rank;
            }
            if (header.rank >= 0)
                worker(header.rank).state = translate("failed");
            addLog(header.t, header.rank, "error", QString::fromStdString(body.cause));
        } else if constexpr (std::is_same_v<Body, contract::RestartEvent>) {
            m_failure.reset();
            for (RunWorker& who : m_workers)
                who.state = translate("starting");
            addLog(
                header.t, header.rank, "warning",
                translate("restart %1 from step %2 with %3 workers").arg(body.attempt).arg(body.step).arg(body.world));
        } else if constexpr (std::is_same_v<Body, contract::LogEvent>) {
            addLog(header.t, header.rank, QString::fromStdString(body.level), QString::fromStdString(body.message));
        } else if constexpr (std::is_same_v<Body, contract::ByeEvent>) {
            endTrace();
            m_bye = body;
            for (RunWorker& who : m_workers)
                if (who.state != translate("failed"))
                    who.state = translate("ended");
            addLog(header.t, header.rank, body.status == "failed" ? "error" : "info",
                   translate("run %1 after %2 steps%3")
                       .arg(QString::fromStdString(body.status))
                       .arg(body.steps)
                       .arg(body.reason.empty() ? QString() : ": " + QString::fromStdString(body.reason)));
        }
    };
    std::visit(visitor, event.body);
}

void RunRecord::endTrace() {
    if (m_coming.empty())
        return;
    m_trace = std::move(m_coming);
    m_coming.clear();
    m_traceStep = m_steps.empty() ? 0 : m_steps.back().step;
}

void RunRecord::restart() {
    RunRecord fresh;
    for (const RunLogLine& line : m_log)
        if (line.isOwn)
            fresh.m_log.push_back(line);
    fresh.m_waiting = m_waiting;
    fresh.m_rewrites = m_rewrites + 1;
    *this = std::move(fresh);
}

void RunRecord::beginAgain() {
    m_bye.reset();
    m_failure.reset();
    m_failedRank = -1;
    for (RunWorker& who : m_workers)
        who.state = translate("starting");
}

double RunRecord::secondsLeft() const {
    if (m_steps.empty() || stepsAsked() <= 0)
        return -1;
    const std::size_t count = std::min<std::size_t>(20, m_steps.size());
    double sum = 0;
    for (std::size_t i = m_steps.size() - count; i < m_steps.size(); ++i)
        sum += m_steps[i].stepSeconds;
    return sum / static_cast<double>(count) *
           static_cast<double>(std::max<std::int64_t>(0, stepsAsked() - m_steps.back().step));
}

std::optional<double> RunRecord::memorySurplus() const {
    std::optional<double> worst;
    for (const RunWorker& who : m_workers) {
        if (!who.memory || who.memory->predicted.total() <= 0)
            continue;
        const double ratio =
            static_cast<double>(who.memory->peakAllocated) / static_cast<double>(who.memory->predicted.total()) - 1;
        worst = worst ? std::max(*worst, ratio) : ratio;
    }
    return worst;
}

QString RunRecord::headline() const {
    QStringList parts;
    if (m_bye) {
        const std::int64_t steps = std::max<std::int64_t>(m_bye->steps, m_steps.empty() ? 0 : m_steps.back().step);
        parts << (m_bye->status == "done"      ? translate("Done, %1 steps")
                  : m_bye->status == "stopped" ? translate("Stopped after step %1")
                                               : translate("Failed after step %1"))
                     .arg(countText(steps));
    } else if (m_steps.empty()) {
        parts << (!m_workers.empty()    ? translate("Warming up")
                  : m_waiting.isEmpty() ? translate("Starting")
                                        : m_waiting);
    } else {
        parts << (stepsAsked() > 0
                      ? translate("Step %1 of %2").arg(countText(m_steps.back().step), countText(stepsAsked()))
                      : translate("Step %1").arg(countText(m_steps.back().step)));
        if (const double left = secondsLeft(); left >= 0)
            parts << translate("%1 left").arg(durationText(left));
    }
    if (!m_steps.empty()) {
        parts << translate("%1 tokens/s").arg(rateText(m_steps.back().tokensPerSecond));
        parts << translate("loss %1").arg(m_steps.back().loss, 0, 'f', 3);
    }
    if (const auto surplus = memorySurplus())
        parts << (std::abs(*surplus) < 0.0005 ? translate("memory as predicted")
                  : *surplus >= 0             ? translate("memory %1 over prediction").arg(percentText(*surplus))
                                              : translate("memory %1 under prediction").arg(percentText(-*surplus)));
    return parts.join(QStringLiteral(" · "));
}

QString RunRecord::failureText() const {
    if (m_failure) {
        QString text = m_failedRank >= 0 ? translate("Rank %1 failed").arg(m_failedRank) : translate("The run failed");
        if (!m_failure->phase.empty())
            text +=
                translate(" in the %1 of step %2").arg(QString::fromStdString(m_failure->phase)).arg(m_failure->step);
        return text + ": " + QString::fromStdString(m_failure->cause);
    }
    if (m_bye && m_bye->status == "failed")
        return translate("The run failed: %1").arg(QString::fromStdString(m_bye->reason));
    return {};
}

contract::Result<RunRecord> RunRecord::readFile(const QString& path) {
    QFile file(path);
    if (!file.open(QIODevice::ReadOnly))
        return contract::badInput(path.toStdString() + ": " + file.errorString().toStdString());
    RunRecord record;
    LineSplitter splitter;
    for (const QByteArray& line : splitter.take(file.readAll()))
        record.takeLine(line);
    record.takeLine(splitter.drain());
    return record;
}

} // namespace shardscope::app
