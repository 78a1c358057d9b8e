// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/export/CsvTables.h"

#include "app/layout/WaterfallBars.h"
#include "app/look/Units.h"
#include "app/tables/OperatorTable.h"
#include "app/tables/RunTables.h"
#include "planner/timeline/Timeline.h"

#include <QAbstractItemModel>

namespace shardscope::app {

namespace {

/// Lines of cells; what needs quotes gets them.
class Csv {
public:
    Csv& operator<<(const QString& text) {
        separate();
        if (!text.contains(',') && !text.contains('"') && !text.contains('\n') && !text.contains('\r')) {
            m_bytes += text.toUtf8();
            return *this;
        }
        QString quoted = text;
        quoted.replace('"', QStringLiteral("\"\""));
        m_bytes += '"' + quoted.toUtf8() + '"';
        return *this;
    }
    Csv& operator<<(const char* text) { return *this << QString::fromUtf8(text); }
    Csv& operator<<(const std::string& text) { return *this << QString::fromStdString(text); }
    Csv& operator<<(double value) {
        separate();
        // The shortest digits that read back as the same number.
        m_bytes += QByteArray::number(value, 'g', QLocale::FloatingPointShortest);
        return *this;
    }
    template<std::integral Number> Csv& operator<<(Number value) {
        separate();
        m_bytes += QByteArray::number(static_cast<qlonglong>(value));
        return *this;
    }
    void endLine() {
        m_bytes += "\r\n";
        m_isFirst = true;
    }
    const QByteArray& bytes() const { return m_bytes; }

private:
    void separate() {
        if (!m_isFirst)
            m_bytes += ',';
        m_isFirst = false;
    }
    QByteArray m_bytes;
    bool m_isFirst = true;
};

QByteArray frontierCsv(const FrontierPicture& picture) {
    Csv csv;
    csv << "kind"
        << "name"
        << "memory_bytes"
        << "peak_bytes"
        << "samples_per_second"
        << "rate (" + picture.unit + ')' << "step_seconds"
        << "micro_batch"
        << "replicate"
        << "keep"
        << "shard"
        << "split"
        << "gap";
    csv.endLine();
    for (const planner::FrontierPoint& point : picture.frontier.points) {
        csv << "frontier"
            << "" << point.memoryBytes << point.peakBytes << point.samplesPerSecond
            << point.samplesPerSecond * picture.unitsPerSample << point.stepSeconds << point.microBatch
            << point.counts.replicate << point.counts.keep << point.counts.shard << point.counts.split << point.gap;
        csv.endLine();
    }
    for (const planner::Baseline& baseline : picture.baselines) {
        if (!baseline.feasible)
            continue;
        csv << "policy" << baseline.name << picture.cardBytes << baseline.peakBytes << baseline.samplesPerSecond
            << baseline.samplesPerSecond * picture.unitsPerSample << baseline.stepSeconds << baseline.microBatch << ""
            << ""
            << ""
            << ""
            << "";
        csv.endLine();
    }
    return csv.bytes();
}

QByteArray ledgerCsv(const planner::PlanResult& plan) {
    Csv csv;
    csv << "what"
        << "bytes";
    csv.endLine();
    for (int i = 0; i < contract::kCategoryCount; ++i) {
        const auto category = static_cast<contract::Category>(i);
        csv << std::string(contract::categoryName(category)) << plan.ledger[category];
        csv.endLine();
    }
    const std::pair<const char*, std::int64_t> lines[] = {{"peak", plan.peakBytes},
                                                          {"peak of the first step", plan.peaks.firstStep},
                                                          {"peak when resumed", plan.peaks.resume},
                                                          {"peak of the optimizer step", plan.peaks.optimizerStep},
                                                          {"budget", plan.limitBytes},
                                                          {"device", plan.request.cluster.device.memoryBytes}};
    for (const auto& [name, bytes] : lines) {
        csv << name << bytes;
        csv.endLine();
    }
    return csv.bytes();
}

QByteArray timelineCsv(const StepPicture& step) {
    Csv csv;
    csv << "stream"
        << "phase"
        << "operator"
        << "slice"
        << "micro_step"
        << "begin_seconds"
        << "end_seconds"
        << "bytes"
        << "source";
    csv.endLine();
    const auto& operators = step.plan->request.graph->operators;
    const auto write = [&](const std::array<Lane, 2>& lanes, bool isMeasured) {
        for (const Lane& lane : lanes)
            for (const planner::Interval& interval : lane.intervals) {
                csv << (interval.stream == planner::Stream::Compute ? "compute" : "communication")
                    << phaseName(phaseOf(interval.phase));
                if (interval.op >= 0)
                    csv << operators[static_cast<std::size_t>(interval.op)].name;
                else
                    csv << "all";
                if (isMeasured) // a trace names neither slice nor micro-step
                    csv << ""
                        << "";
                else
                    csv << interval.part << interval.microStep;
                csv << planner::toSeconds(interval.begin) << planner::toSeconds(interval.end);
                if (isMeasured)
                    csv << "";
                else
                    csv << interval.bytes;
                csv << (isMeasured ? "measured" : "simulated");
                csv.endLine();
            }
    };
    write(step.lanes, false);
    if (step.measured)
        write(step.measured->lanes, true);
    return csv.bytes();
}

QByteArray memoryCsv(const StepPicture& step) {
    Csv csv;
    csv << "seconds";
    for (int i = 0; i < kMemoryPartCount; ++i)
        csv << partName(static_cast<MemoryPart>(i)) + QStringLiteral(" (bytes)");
    csv << "total (bytes)";
    csv.endLine();
    for (const MemoryBand& band : step.bands) {
        csv << planner::toSeconds(band.picoseconds);
        for (const std::int64_t bytes : band.parts)
            csv << bytes;
        csv << band.total;
        csv.endLine();
    }
    return csv.bytes();
}

QByteArray differenceCsv(const StepComparison& comparison) {
    Csv csv;
    const WaterfallSteps steps = waterfallSteps(comparison.diff);
    csv << "what" << (steps.perSample ? "seconds_per_sample" : "seconds");
    csv.endLine();
    csv << "this plan" << steps.from;
    csv.endLine();
    for (int i = 0; i < planner::kCauseCount; ++i) {
        csv << causeText(static_cast<planner::Cause>(i)) << steps.differences[static_cast<std::size_t>(i)];
        csv.endLine();
    }
    csv << comparison.bName << steps.to;
    csv.endLine();
    return csv.bytes();
}

QByteArray lossCsv(const RunRecord& run) {
    Csv csv;
    csv << "step"
        << "loss"
        << "learning_rate"
        << "gradient_norm"
        << "tokens"
        << "step_seconds"
        << "compute_seconds"
        << "exposed_communication_seconds"
        << "tokens_per_second";
    csv.endLine();
    for (const contract::StepEvent& step : run.steps()) {
        csv << step.step << step.loss << step.learningRate << step.gradientNorm << step.tokens << step.stepSeconds
            << step.computeSeconds << step.exposedCommunicationSeconds << step.tokensPerSecond;
        csv.endLine();
    }
    return csv.bytes();
}

QByteArray runMemoryCsv(const RunRecord& run) {
    Csv csv;
    csv << "rank"
        << "what"
        << "predicted_bytes"
        << "measured_bytes";
    csv.endLine();
    for (const RunWorker& worker : run.workers()) {
        if (!worker.memory)
            continue;
        for (int i = 0; i < contract::kCategoryCount; ++i) {
            const auto category = static_cast<contract::Category>(i);
            csv << worker.rank << std::string(contract::categoryName(category)) << worker.memory->predicted[category]
                << worker.memory->allocated[category];
            csv.endLine();
        }
        csv << worker.rank << "peak" << worker.memory->predicted.total() << worker.memory->peakAllocated;
        csv.endLine();
    }
    return csv.bytes();
}

} // namespace

QByteArray csvOfModel(const QAbstractItemModel& model) {
    Csv csv;
    for (int column = 0; column < model.columnCount(); ++column) {
        const QString name = model.headerData(column, Qt::Horizontal, Qt::DisplayRole).toString();
        const QString unit = model.headerData(column, Qt::Horizontal, kUnitRole).toString();
        csv << (unit.isEmpty() ? name : name + QStringLiteral(" (") + unit + ')');
    }
    csv.endLine();
    for (int row = 0; row < model.rowCount(); ++row) {
        for (int column = 0; column < model.columnCount(); ++column) {
            const QModelIndex index = model.index(row, column);
            QVariant value = index.data(kExportRole);
            if (!value.isValid())
                value = index.data(kSortRole);
            if (!value.isValid())
                value = index.data(Qt::DisplayRole);
            if (value.typeId() == QMetaType::Double)
                csv << value.toDouble();
            else
                csv << value.toString();
        }
        csv.endLine();
    }
    return csv.bytes();
}

QByteArray csvOf(ViewKind kind, const ExportContent& content) {
    if (!content.missing(kind).isEmpty())
        return {};
    switch (kind) {
    case ViewKind::Map: {
        OperatorTable table;
        table.setRows(mapRows(*content.answer->plan));
        return csvOfModel(table);
    }
    case ViewKind::Frontier:
        return frontierCsv(content.frontier);
    case ViewKind::Ledger:
        return ledgerCsv(*content.answer->plan);
    case ViewKind::Timeline:
        return content.step ? timelineCsv(*content.step) : QByteArray();
    case ViewKind::MemoryOverTime:
        return content.step ? memoryCsv(*content.step) : QByteArray();
    case ViewKind::Communication: {
        CommunicationTable table;
        table.setPlan(content.answer->plan);
        return csvOfModel(table);
    }
    case ViewKind::Plans: {
        PlansTable table;
        table.setRows(content.plans, content.frontier.unit);
        return csvOfModel(table);
    }
    case ViewKind::Difference:
        return differenceCsv(*content.difference);
    case ViewKind::Loss:
        return lossCsv(*content.run);
    case ViewKind::RunMemory:
        return runMemoryCsv(*content.run);
    case ViewKind::Workers: {
        WorkersTable table;
        table.setWorkers(content.run->workers());
        return csvOfModel(table);
    }
    case ViewKind::Log: {
        LogTable table;
        table.setLog(content.run->log());
        return csvOfModel(table);
    }
    }
    return {};
}

} // namespace shardscope::app
