// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/tables/PlansTable.h"

#include "app/document/Verdict.h"
#include "app/look/Units.h"
#include "app/tables/OperatorTable.h"

#include <QFont>

#include <cmath>

namespace shardscope::app {

namespace {

/// "312 ms, +4.0 %": against the prediction.
QString besidePrediction(const QString& text, double measured, double predicted) {
    return predicted > 0 ? PlansTable::tr("%1, %2").arg(text, signedPercentText(measured / predicted - 1)) : text;
}

} // namespace

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
                       plan,
                       0,
                       0};
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
                              nullptr,
                              0,
                              0});
        for (std::size_t i = 0; i < document.savedPlans().size(); ++i) {
            const SavedPlan& saved = document.savedPlans()[i];
            if (!saved.answer)
                continue;
            m_rows.push_back(rowOf(saved.name, saved.answer->plan));
            m_rows.back().saved = static_cast<int>(i);
            m_rows.back().measuredSeconds = saved.measuredSeconds;
            m_rows.back().measuredBytes = saved.measuredBytes;
        }
        // Policies compared under another budget or for another graph would stand here as if they were of this one.
        if (const auto comparison = document.comparison(); comparison && comparison->generation == answer->generation)
            for (const planner::Baseline& baseline : comparison->baselines)
                m_rows.push_back(
                    {QString::fromStdString(baseline.name), baseline.feasible ? QString() : tr("does not fit"),
                     baseline.feasible ? baseline.peakBytes : 0,
                     baseline.feasible ? baseline.samplesPerSecond * units : 0,
                     baseline.feasible ? baseline.stepSeconds : 0, baseline.feasible ? baseline.microBatch : 0,
                     baseline.smallestFeasibleBytes, -1, QString::fromStdString(baseline.what),
                     baseline.feasible ? baseline.plan : nullptr, 0, 0});
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
    const bool isMeasured = index.column() == MeasuredStep || index.column() == MeasuredPeak;
    if (role == Qt::ToolTipRole)
        return isMeasured && row.saved >= 0 ? tr("Type what a run of this plan took elsewhere") : row.what;
    if (role == Qt::EditRole && isMeasured)
        return index.column() == MeasuredStep ? (row.measuredSeconds > 0 ? secondsText(row.measuredSeconds) : QString())
                                              : (row.measuredBytes > 0 ? gibText(row.measuredBytes, 2) : QString());
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
    case MeasuredStep:
        return cell(row.measuredSeconds > 0, row.measuredSeconds,
                    besidePrediction(secondsText(row.measuredSeconds), row.measuredSeconds, row.stepSeconds));
    case MeasuredPeak:
        return cell(row.measuredBytes > 0, static_cast<double>(row.measuredBytes),
                    besidePrediction(gibText(row.measuredBytes, 2), static_cast<double>(row.measuredBytes),
                                     static_cast<double>(row.peakBytes)));
    case What:
        return row.what;
    default:
        return {};
    }
}

QVariant PlansTable::headerData(int section, Qt::Orientation orientation, int role) const {
    if (role == kUnitRole) {
        if (section == Peak || section == Smallest || section == MeasuredPeak)
            return QStringLiteral("bytes");
        return section == Step || section == MeasuredStep ? QVariant(QStringLiteral("seconds"))
               : section == Against                       ? QVariant(tr("how much faster, 1 is twice as fast"))
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
    case MeasuredStep:
        return tr("measured step");
    case MeasuredPeak:
        return tr("measured peak");
    case What:
        return tr("what it is");
    default:
        return {};
    }
}

Qt::ItemFlags PlansTable::flags(const QModelIndex& index) const {
    const bool isMeasured = index.column() == MeasuredStep || index.column() == MeasuredPeak;
    const bool isSaved = index.isValid() && index.row() < rowCount() && row(index.row()).saved >= 0;
    return QAbstractTableModel::flags(index) | (isMeasured && isSaved ? Qt::ItemIsEditable : Qt::NoItemFlags);
}

bool PlansTable::setData(const QModelIndex& index, const QVariant& value, int role) {
    if (role != Qt::EditRole || !(flags(index) & Qt::ItemIsEditable))
        return false;
    Row& row = m_rows[static_cast<std::size_t>(index.row())];
    const QString text = value.toString().trimmed();
    if (index.column() == MeasuredStep) {
        const auto seconds = text.isEmpty() ? std::optional(0.0) : readSeconds(text);
        if (!seconds)
            return false;
        row.measuredSeconds = *seconds;
    } else {
        const auto bytes = text.isEmpty() ? std::optional<std::int64_t>(0) : readBytes(text);
        if (!bytes)
            return false;
        row.measuredBytes = *bytes;
    }
    Q_EMIT dataChanged(index, index);
    Q_EMIT measured(row.saved, row.measuredSeconds, row.measuredBytes);
    return true;
}

} // namespace shardscope::app
