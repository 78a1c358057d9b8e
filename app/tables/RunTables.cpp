// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/tables/RunTables.h"

#include "app/look/Units.h"
#include "app/tables/OperatorTable.h"

namespace shardscope::app {

void WorkersTable::setWorkers(const std::vector<RunWorker>& workers) {
    if (workers.size() == m_workers.size()) {
        m_workers = workers;
        if (!m_workers.empty())
            Q_EMIT dataChanged(index(0, 0), index(rowCount() - 1, ColumnCount - 1));
        return;
    }
    beginResetModel();
    m_workers = workers;
    endResetModel();
}

int WorkersTable::rowCount(const QModelIndex& parent) const {
    return parent.isValid() ? 0 : static_cast<int>(m_workers.size());
}
int WorkersTable::columnCount(const QModelIndex& parent) const {
    return parent.isValid() ? 0 : ColumnCount;
}

QVariant WorkersTable::data(const QModelIndex& index, int role) const {
    if (!index.isValid() || index.row() >= rowCount())
        return {};
    const RunWorker& worker = m_workers[static_cast<std::size_t>(index.row())];
    if (role == Qt::TextAlignmentRole)
        return index.column() >= Predicted || index.column() <= Pid ? QVariant(Qt::AlignRight | Qt::AlignVCenter)
                                                                    : QVariant(Qt::AlignLeft | Qt::AlignVCenter);
    if (role == Qt::ToolTipRole && index.column() == DeviceColumn) {
        const QString status = worker.statusText();
        return status.isEmpty() ? worker.device : tr("%1: %2").arg(worker.device, status);
    }
    if (role != Qt::DisplayRole && role != kSortRole)
        return {};
    const bool isSort = role == kSortRole;
    const std::int64_t predicted = worker.memory ? worker.memory->predicted.total() : 0;
    const std::int64_t measured = worker.memory ? worker.memory->peakAllocated : 0;
    const auto bytes = [&](std::int64_t value) {
        return !worker.memory ? QVariant() : isSort ? QVariant(static_cast<double>(value)) : QVariant(bytesText(value));
    };
    switch (index.column()) {
    case Rank:
        return worker.rank;
    case Pid:
        return worker.pid > 0 ? QVariant(static_cast<qlonglong>(worker.pid)) : QVariant();
    case DeviceColumn:
        return worker.device;
    case State:
        return worker.state;
    case Predicted:
        return bytes(predicted);
    case Measured:
        return bytes(measured);
    case Difference: {
        if (predicted <= 0)
            return {};
        const double surplus = static_cast<double>(measured) / static_cast<double>(predicted) - 1;
        return isSort ? QVariant(surplus) : QVariant(signedPercentText(surplus));
    }
    default:
        return {};
    }
}

QVariant WorkersTable::headerData(int section, Qt::Orientation orientation, int role) const {
    if (role == kUnitRole)
        return section == Predicted || section == Measured ? QVariant(QStringLiteral("bytes"))
               : section == Difference                     ? QVariant(QStringLiteral("of the prediction"))
                                                           : QVariant();
    if (orientation == Qt::Vertical)
        return {};
    if (role == Qt::TextAlignmentRole)
        return section >= Predicted || section <= Pid ? QVariant(Qt::AlignRight | Qt::AlignVCenter)
                                                      : QVariant(Qt::AlignLeft | Qt::AlignVCenter);
    if (role != Qt::DisplayRole)
        return {};
    switch (section) {
    case Rank:
        return tr("rank");
    case Pid:
        return tr("pid");
    case DeviceColumn:
        return tr("device");
    case State:
        return tr("state");
    case Predicted:
        return tr("predicted");
    case Measured:
        return tr("measured");
    case Difference:
        return tr("difference");
    default:
        return {};
    }
}

LevelFilter::LevelFilter(QAbstractItemModel* log) : QSortFilterProxyModel(log) {
    setSourceModel(log);
}

void LevelFilter::setLowest(int lowest) {
    m_lowest = lowest;
    invalidateFilter();
}

bool LevelFilter::filterAcceptsRow(int row, const QModelIndex& parent) const {
    if (m_lowest == Everything)
        return true;
    const QString level = sourceModel()->index(row, LogTable::Level, parent).data().toString();
    return level == QLatin1String("error") || (m_lowest == Warnings && level == QLatin1String("warning"));
}

void LogTable::setLog(const std::vector<RunLogLine>& log) {
    if (log.size() < m_log.size()) {
        beginResetModel();
        m_log = log;
        endResetModel();
        return;
    }
    if (log.size() == m_log.size())
        return;
    beginInsertRows({}, static_cast<int>(m_log.size()), static_cast<int>(log.size()) - 1);
    m_log.insert(m_log.end(), log.begin() + static_cast<std::ptrdiff_t>(m_log.size()), log.end());
    endInsertRows();
}

int LogTable::rowCount(const QModelIndex& parent) const {
    return parent.isValid() ? 0 : static_cast<int>(m_log.size());
}
int LogTable::columnCount(const QModelIndex& parent) const {
    return parent.isValid() ? 0 : ColumnCount;
}

QVariant LogTable::data(const QModelIndex& index, int role) const {
    if (!index.isValid() || index.row() >= rowCount())
        return {};
    const RunLogLine& line = m_log[static_cast<std::size_t>(index.row())];
    if (role == Qt::ToolTipRole && index.column() == Text)
        return line.text;
    if (role == Qt::TextAlignmentRole)
        return index.column() == Time ? QVariant(Qt::AlignRight | Qt::AlignVCenter)
                                      : QVariant(Qt::AlignLeft | Qt::AlignVCenter);
    if (role != Qt::DisplayRole && role != kSortRole)
        return {};
    switch (index.column()) {
    case Time:
        if (role == kSortRole)
            return line.t;
        return line.t > 0 ? QVariant(QString::number(line.t, 'f', 1) + " s") : QVariant();
    case Who:
        return line.rank >= 0 ? tr("rank %1").arg(line.rank) : QString();
    case Level:
        return line.level;
    case Text:
        return line.text;
    default:
        return {};
    }
}

QVariant LogTable::headerData(int section, Qt::Orientation orientation, int role) const {
    if (role == kUnitRole)
        return section == Time ? QVariant(QStringLiteral("seconds")) : QVariant();
    if (orientation == Qt::Horizontal && role == Qt::TextAlignmentRole)
        return section == Time ? QVariant(Qt::AlignRight | Qt::AlignVCenter)
                               : QVariant(Qt::AlignLeft | Qt::AlignVCenter);
    if (orientation == Qt::Vertical || role != Qt::DisplayRole)
        return {};
    switch (section) {
    case Time:
        return tr("time");
    case Who:
        return tr("from");
    case Level:
        return tr("level");
    case Text:
        return tr("message");
    default:
        return {};
    }
}

} // namespace shardscope::app
