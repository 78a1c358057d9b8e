// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/export/Report.h"

#include "app/document/EquivalentCommand.h"
#include "app/document/ReasonText.h"
#include "app/document/Verdict.h"
#include "app/export/ReportPaper.h"
#include "app/layout/MapRows.h"
#include "app/look/Theme.h"
#include "app/look/Units.h"

#include <QBuffer>
#include <QCoreApplication>

#include <algorithm>
#include <map>

namespace shardscope::app {

namespace {

constexpr std::size_t kGroups = 8;
constexpr double kEachSeconds = 0.25;
/// Longer plans are in the plan file and in the map's CSV.
constexpr std::size_t kMostRuns = 400;

QString translate(const char* text) {
    return QCoreApplication::translate("Report", text);
}

QString counted(const QString& name, int count) {
    return count > 1 ? QStringLiteral("%1 ×%2").arg(name).arg(count) : name;
}

using Facts = std::vector<std::pair<QString, QString>>;

Facts setupFacts(const Answer& answer) {
    const Choices& choices = *answer.choices;
    const planner::PlanResult& plan = *answer.plan;
    const contract::Training& training = plan.training;
    const contract::Cluster& cluster = plan.request.cluster;
    const planner::Graph& graph = *plan.request.graph;
    return {
        {translate("Graph"), QString::fromStdString(choices.graph->title)},
        {translate("Family"), QString::fromStdString(graph.family)},
        {translate("Parameters"), countText(graph.countParameters().unique)},
        {translate("Operators"), countText(static_cast<std::int64_t>(plan.operators.size()))},
        {translate("Sequence"), countText(training.sequence)},
        {translate("Cluster"), QString::fromStdString(cluster.title)},
        {translate("Devices"), cluster.nodes > 1 ? translate("%1 × %2").arg(cluster.nodes).arg(cluster.devicesPerNode)
                                                 : countText(cluster.devices())},
        {translate("Memory each"), bytesText(cluster.device.memoryBytes)},
        {translate("Link"), bandwidthText(cluster.inside.bytesPerSecond)},
        {translate("Rates"), QString::fromStdString(cluster.source)},
        {translate("Precision"), QString::fromStdString(training.precision)},
        {translate("Micro-batch"), countText(training.microBatch)},
        {translate("Accumulated"), countText(training.accumulate)},
        {translate("Global batch"), countText(training.globalBatch)},
        {translate("Recomputed blocks"),
         QStringLiteral("%1 / %2").arg(planner::recomputedBlocks(plan)).arg(graph.blockCount())},
    };
}

void writeLedger(ReportPaper& paper, const planner::PlanResult& plan) {
    const MemoryParts parts = partsOf(plan.ledger);
    std::vector<QStringList> rows;
    for (int i = 0; i < kMemoryPartCount; ++i)
        if (const std::int64_t bytes = parts[static_cast<std::size_t>(i)]; bytes > 0)
            rows.push_back({partName(static_cast<MemoryPart>(i)), bytesText(bytes),
                            percentText(static_cast<double>(bytes) / static_cast<double>(plan.peakBytes))});
    rows.push_back({translate("peak"), bytesText(plan.peakBytes), {}});
    rows.push_back({translate("budget"), bytesText(plan.limitBytes), {}});
    paper.table({{translate("memory on a device"), 0.5},
                 {translate("bytes"), 0.25, true},
                 {translate("of the peak"), 0.25, true}},
                rows);
}

void writePlans(ReportPaper& paper, const ExportContent& content) {
    PlansTable table;
    table.setRows(content.plans, content.frontier.unit);
    const double shares[] = {0.2, 0.11, 0.12, 0.11, 0.1, 0.13, 0.13, 0.1};
    std::vector<ReportPaper::Column> columns;
    for (int column = 0; column < PlansTable::What; ++column)
        columns.push_back({table.headerData(column, Qt::Horizontal, Qt::DisplayRole).toString(), shares[column],
                           column != PlansTable::Name});
    std::vector<QStringList> rows;
    for (int row = 0; row < table.rowCount(); ++row) {
        QStringList cells;
        for (int column = 0; column < PlansTable::What; ++column)
            cells << table.data(table.index(row, column), Qt::DisplayRole).toString();
        rows.push_back(cells);
    }
    paper.table(columns, rows);
}

void writePlacements(ReportPaper& paper, const planner::PlanResult& plan) {
    const std::vector<MapRow> rows = mapRows(plan);
    const MapColumns folded = foldColumns(rows, true);
    std::vector<QStringList> lines;
    for (const MapColumn& column : folded.columns) {
        if (lines.size() >= kMostRuns)
            break;
        const MapRow& first = rows[static_cast<std::size_t>(column.rows.front())];
        const MapGroup& group = folded.groups[static_cast<std::size_t>(column.group)];
        QString placement = placementWord(first.placement);
        if (first.coalesced)
            placement += translate(", with its block");
        if (first.pinned)
            placement += translate(", pinned");
        lines.push_back({group.blocks > 0 ? group.label : QString(),
                         counted(first.shortName, static_cast<int>(column.rows.size())), placement,
                         first.recompute ? translate("yes") : QString(), bytesText(first.memoryBytes),
                         secondsText(first.computeSeconds), secondsText(first.exposedSeconds)});
    }
    paper.table({{translate("blocks"), 0.14},
                 {translate("operator"), 0.22},
                 {translate("placement"), 0.26},
                 {translate("recomputed"), 0.1},
                 {translate("memory"), 0.1, true},
                 {translate("compute"), 0.09, true},
                 {translate("exposed"), 0.09, true}},
                lines);
    if (folded.columns.size() > kMostRuns)
        paper.text(
            translate("The first %1 of %2 rows; the plan file has them all.").arg(kMostRuns).arg(folded.columns.size()),
            smallFont(), true);
}

} // namespace

std::vector<ReportReason> explainCostliest(const Answer& answer, const std::stop_token& stop) {
    struct Group {
        QString name;
        std::int32_t op = 0;
        int count = 0;
        std::int64_t bytes = 0;
        double seconds = 0;
    };
    const planner::PlanResult& plan = *answer.plan;
    std::vector<Group> groups;
    std::map<std::pair<QString, QString>, std::size_t> found;
    for (const MapRow& row : mapRows(plan)) {
        const auto [place, isNew] = found.try_emplace({row.shortName, placementWord(row.placement)}, groups.size());
        if (isNew)
            groups.push_back({row.shortName, row.op, 0, 0, 0});
        Group& group = groups[place->second];
        ++group.count;
        group.bytes += row.memoryBytes;
        group.seconds += row.computeSeconds + row.exposedSeconds;
    }
    std::stable_sort(groups.begin(), groups.end(),
                     [](const Group& a, const Group& b) { return a.seconds > b.seconds; });
    planner::SearchBudget budget;
    budget.stop = stop;
    budget.tolerance = 1e-3;
    budget.timeLimitSeconds = kEachSeconds;
    std::vector<ReportReason> reasons;
    for (std::size_t i = 0; i < std::min(kGroups, groups.size()) && !stop.stop_requested(); ++i) {
        const planner::PlannedOperator& planned = plan.operators[static_cast<std::size_t>(groups[i].op)];
        reasons.push_back(
            {counted(groups[i].name, groups[i].count), placementWord(planned.placement), groups[i].bytes,
             groups[i].seconds,
             reasonText(planned, answer.planner->reasons(plan, groups[i].op, budget), plan.training.accumulate)});
    }
    return reasons;
}

QByteArray writeReport(const ReportContent& report) {
    if (!report.content.hasPlan())
        return {};
    const Answer& answer = *report.content.answer;
    const QString title = translate("%1 on %2")
                              .arg(QString::fromStdString(answer.choices->graph->title),
                                   QString::fromStdString(answer.choices->cluster.title));
    QByteArray bytes;
    QBuffer buffer(&bytes);
    if (!buffer.open(QIODevice::WriteOnly))
        return {};
    {
        ReportPaper paper(buffer, title,
                          translate("%1 · modelled by shardscope %2").arg(title, QStringLiteral(SHARDSCOPE_VERSION)));
        paper.text(title, headingFont());
        paper.text(report.headline, verdictFont());
        paper.text(report.numbers, bodyFont());
        paper.text(report.content.proof, bodyFont(), true);
        paper.heading(translate("Setup"));
        paper.facts(setupFacts(answer), 3);
        paper.space(8);
        paper.figure(report.map);
        paper.figure(report.frontier);
        paper.heading(translate("Memory"));
        paper.figure(report.ledger);
        writeLedger(paper, *answer.plan);
        paper.figure(report.memory);
        paper.figure(report.timeline);
        paper.heading(translate("Why the costliest operators are placed as they are"));
        std::vector<QStringList> rows;
        for (const ReportReason& reason : report.reasons)
            rows.push_back({reason.operators, reason.placement, bytesText(reason.memoryBytes),
                            secondsText(reason.stepSeconds), reason.reason});
        paper.table({{translate("operators"), 0.17},
                     {translate("placement"), 0.14},
                     {translate("memory"), 0.1, true},
                     {translate("step"), 0.09, true},
                     {translate("why"), 0.5}},
                    rows);
        paper.heading(translate("Beside the well-known policies, under the same budget"));
        writePlans(paper, report.content);
        paper.heading(translate("The plan"));
        writePlacements(paper, *answer.plan);
        paper.heading(translate("The same question on the command line"));
        paper.text(equivalentCommand(*answer.choices), smallFont());
    }
    return bytes;
}

} // namespace shardscope::app
