// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/tables/PlansTable.h"

#include "app/document/Verdict.h"
#include "app/look/Units.h"
#include "app/tables/OperatorTable.h"

#include <QFont>

#include <cmath>

namespace shardscope::app {

void PlansTable::setDocument(const Document& document) {
    beginResetModel();
    m_rows.clear();
    const auto answer = document.answer();
    if (answer && answer->plan && answer->plan->request.graph) {
        const planner::Graph& graph = *answer->plan->request.graph;
        const double units = unitsPerSample(graph);
        m_unit = rateUnit(graph);
        const auto rowOf = [&](const QString& name, const planner::PlanResultPointer& plan) {
            return Row{name,
                       {},
                       plan->peakBytes,
                       plan->samplesPerSecond * unitsPerSample(*plan->request.graph),
                       plan->stepSeconds,
                       plan->training.microBatch,
                       0,
                       -1,
                       {},
                       plan};
        };
        if (answer->plan->feasible)
            m_rows.push_back(rowOf(tr("this plan"), answer->plan));
        else
            m_rows.push_back({tr("this plan"),
                              tr("does not fit"),
                              0,
                              0,
                              0,
                              0,
                              answer->plan->smallestFeasibleBytes,
                              -1,
                              {},
                              nullptr});
        for (std::size_t i = 0; i < document.savedPlans().size(); ++i) {
            m_rows.push_back(rowOf(document.savedPlans()[i].name, document.savedPlans()[i].answer->plan));
            m_rows.back().saved = static_cast<int>(i);
        }
        // Policies compared under another budget or for another graph would stand here as if they were of this one.
        if (const auto comparison = document.comparison(); comparison && comparison->generation == answer->generation)
            for (const planner::Baseline& baseline : comparison->baselines)
                m_rows.push_back({QString::fromStdString(baseline.name),
                                  baseline.feasible ? QString() : tr("does not fit"),
                                  baseline.feasible ? baseline.peakBytes : 0,
                                  baseline.feasible ? baseline.samplesPerSecond * units : 0,
                                  baseline.feasible ? baseline.stepSeconds : 0,
                                  baseline.feasible ? baseline.microBatch : 0, baseline.smallestFeasibleBytes, -1,
                                  QString::fromStdString(baseline.what), baseline.feasible ? baseline.plan : nullptr});
    }
    endResetModel();
}

void PlansTable::setRows(std::vector<Row> rows, const QString& unit) {
    beginResetModel();
    m_rows = std::move(rows);
    m_unit = unit;
    endResetModel();
}

int PlansTable::rowCount(const QModelIndex& parent) const {
    return parent.isValid() ? 0 : static_cast<int>(m_rows.size());
}
int PlansTable::columnCount(const QModelIndex& parent) const {
    return parent.isValid() ? 0 : ColumnCount;
}

QVariant PlansTable::data(const QModelIndex& index, int role) const {
    if (!index.isValid() || index.row() >= rowCount())
        return {};
    const Row& row = m_rows[static_cast<std::size_t>(index.row())];
    if (role == Qt::TextAlignmentRole)
        return index.column() == Name || index.column() == What ? QVariant(Qt::AlignLeft | Qt::AlignVCenter)
                                                                : QVariant(Qt::AlignRight | Qt::AlignVCenter);
    if (role == Qt::FontRole && index.row() == 0) {
        QFont font;
        font.setBold(true);
        return font;
    }
    if (role == Qt::ToolTipRole)
        return row.what;
    if (role != Qt::DisplayRole && role != kSortRole && role != kExportRole)
        return {};
    const auto cell = [role](bool isKnown, double value, const QString& text) -> QVariant {
        if (role == kSortRole)
            return value;
        if (role == kExportRole)
            return isKnown ? QVariant(value) : QVariant(QString());
        return isKnown ? text : QStringLiteral("–");
    };
    switch (index.column()) {
    case Name:
        return row.note.isEmpty() ? row.name : row.name + ", " + row.note;
    case Peak:
        return cell(row.peakBytes > 0, static_cast<double>(row.peakBytes), gibText(row.peakBytes, 2));
    case Rate:
        return cell(row.rate > 0, row.rate, rateText(row.rate));
    case Step:
        return cell(row.stepSeconds > 0, row.stepSeconds, secondsText(row.stepSeconds));
    case Batch:
        return cell(row.microBatch > 0, static_cast<double>(row.microBatch), countText(row.microBatch));
    case Against: {
        const double own = m_rows.front().rate;
        const double gain = own > 0 && row.rate > 0 ? own / row.rate - 1 : 0;
        const QString text = std::abs(gain) < 0.0005 ? tr("as fast")
                             : gain > 0              ? tr("%1 faster").arg(percentText(gain))
                                                     : tr("%1 slower").arg(percentText(-gain));
        return cell(own > 0 && row.rate > 0 && index.row() > 0, gain, text);
    }
    case Smallest:
        return cell(row.smallestBytes > 0, static_cast<double>(row.smallestBytes), gibText(row.smallestBytes, 2));
    case What:
        return row.what;
    default:
        return {};
    }
}

QVariant PlansTable::headerData(int section, Qt::Orientation orientation, int role) const {
    if (role == kUnitRole) {
        if (section == Peak || section == Smallest)
            return QStringLiteral("bytes");
        return section == Step      ? QVariant(QStringLiteral("seconds"))
               : section == Against ? QVariant(tr("how much faster, 1 is twice as fast"))
                                    : QVariant();
    }
    if (orientation == Qt::Vertical || role != Qt::DisplayRole)
        return role == Qt::TextAlignmentRole && section > Name && section != What
                   ? QVariant(Qt::AlignRight | Qt::AlignVCenter)
                   : QAbstractTableModel::headerData(section, orientation, role);
    switch (section) {
    case Name:
        return tr("plan");
    case Peak:
        return tr("peak");
    case Rate:
        return m_unit.isEmpty() ? tr("tokens/s") : m_unit;
    case Step:
        return tr("step");
    case Batch:
        return tr("micro-batch");
    case Against:
        return tr("this plan is");
    case Smallest:
        return tr("smallest budget");
    case What:
        return tr("what it is");
    default:
        return {};
    }
}

} // namespace shardscope::app
