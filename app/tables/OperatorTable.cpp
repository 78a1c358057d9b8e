// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/tables/OperatorTable.h"

#include "app/look/Units.h"

#include <map>
#include <tuple>

namespace shardscope::app {

namespace {

std::int64_t part(const MapRow& row, MemoryPart which) {
    return row.memory[static_cast<std::size_t>(which)];
}

QVariant number(int role, double value, const QString& text) {
    if (role == kSortRole)
        return value;
    if (role == Qt::DisplayRole)
        return text;
    return {};
}

/// Whether an operator's weights travel alone.
QString collectiveWord(const MapRow& row) {
    if (row.exposedSeconds + row.hiddenSeconds <= 0)
        return {};
    return row.coalesced ? OperatorTable::tr("with its block") : OperatorTable::tr("own");
}

} // namespace

void OperatorTable::setRows(std::vector<MapRow> rows) {
    if (rows.size() == m_rows.size()) {
        m_rows = std::move(rows);
        if (!m_rows.empty())
            Q_EMIT dataChanged(index(0, 0), index(rowCount() - 1, ColumnCount - 1));
        return;
    }
    beginResetModel();
    m_rows = std::move(rows);
    endResetModel();
}

int OperatorTable::rowCount(const QModelIndex& parent) const {
    return parent.isValid() ? 0 : static_cast<int>(m_rows.size());
}
int OperatorTable::columnCount(const QModelIndex& parent) const {
    return parent.isValid() ? 0 : ColumnCount;
}

QVariant OperatorTable::data(const QModelIndex& index, int role) const {
    if (!index.isValid() || index.row() >= rowCount())
        return {};
    const MapRow& row = m_rows[static_cast<std::size_t>(index.row())];
    if (role == kOperatorRole)
        return row.op;
    if (role == Qt::TextAlignmentRole)
        return index.column() <= Collective ? QVariant(Qt::AlignLeft | Qt::AlignVCenter)
                                            : QVariant(Qt::AlignRight | Qt::AlignVCenter);
    const auto bytes = [&](std::int64_t value) { return number(role, static_cast<double>(value), bytesText(value)); };
    const auto seconds = [&](double value) { return number(role, value, secondsText(value)); };
    switch (index.column()) {
    case Name:
        if (role == kSortRole)
            return row.op;
        return role == Qt::DisplayRole || role == kExportRole ? QVariant(row.name) : QVariant();
    case PlacementColumn:
        return role == Qt::DisplayRole || role == kSortRole
                   ? QVariant(placementWord(row.placement) + (row.pinned ? tr(", pinned") : QString()))
                   : QVariant();
    case Recompute:
        return role == Qt::DisplayRole || role == kSortRole ? QVariant(row.recompute ? tr("yes") : QString())
                                                            : QVariant();
    case Collective:
        return role == Qt::DisplayRole || role == kSortRole ? QVariant(collectiveWord(row)) : QVariant();
    case Parameters:
        return bytes(part(row, MemoryPart::Parameters));
    case Gradients:
        return bytes(part(row, MemoryPart::Gradients));
    case Optimizer:
        return bytes(part(row, MemoryPart::Optimizer));
    case Activations:
        return bytes(part(row, MemoryPart::Activations));
    case Slots:
        return bytes(part(row, MemoryPart::Slots));
    case Memory:
        return bytes(row.memoryBytes);
    case Compute:
        return seconds(row.computeSeconds);
    case Exposed:
        return seconds(row.exposedSeconds);
    case Hidden:
        return seconds(row.hiddenSeconds);
    default:
        return {};
    }
}

QVariant OperatorTable::headerData(int section, Qt::Orientation orientation, int role) const {
    if (role == kUnitRole)
        return section >= Compute     ? QVariant(QStringLiteral("seconds"))
               : section > Collective ? QVariant(QStringLiteral("bytes"))
                                      : QVariant();
    if (orientation == Qt::Vertical || role != Qt::DisplayRole)
        return role == Qt::TextAlignmentRole && section > Collective
                   ? QVariant(Qt::AlignRight | Qt::AlignVCenter)
                   : QAbstractTableModel::headerData(section, orientation, role);
    switch (section) {
    case Name:
        return tr("operator");
    case PlacementColumn:
        return tr("placement");
    case Recompute:
        return tr("recomputed");
    case Collective:
        return tr("collective");
    case Parameters:
        return tr("parameters");
    case Gradients:
        return tr("gradients");
    case Optimizer:
        return tr("optimizer");
    case Activations:
        return tr("activations");
    case Slots:
        return tr("slots");
    case Memory:
        return tr("memory");
    case Compute:
        return tr("compute");
    case Exposed:
        return tr("exposed");
    case Hidden:
        return tr("hidden");
    default:
        return {};
    }
}

void CommunicationTable::setPlan(const planner::PlanResultPointer& plan) {
    beginResetModel();
    m_rows.clear();
    m_total = {};
    m_stepSeconds = 0;
    if (plan && plan->feasible) {
        m_stepSeconds = plan->stepSeconds;
        std::map<std::tuple<QString, QString, bool>, std::size_t> found;
        for (const MapRow& row : mapRows(*plan)) {
            const planner::OperatorCost& cost = plan->operators[static_cast<std::size_t>(row.op)].cost;
            if (cost.communicatedBytes == 0 && cost.gatherSeconds + cost.reduceSeconds == 0)
                continue;
            const auto key = std::tuple(row.shortName, placementWord(row.placement), row.coalesced);
            const auto [place, isNew] = found.try_emplace(key, m_rows.size());
            if (isNew)
                m_rows.push_back({row.shortName, row.op, 0, row.placement, row.coalesced, 0, 0, 0, 0});
            for (Row* sum : {&m_rows[place->second], &m_total}) {
                ++sum->count;
                sum->bytes += cost.communicatedBytes;
                sum->gatherSeconds += cost.gatherSeconds;
                sum->reduceSeconds += cost.reduceSeconds;
                sum->exposedSeconds += cost.exposedSeconds();
            }
        }
    }
    endResetModel();
}

QString CommunicationTable::summary() const {
    if (m_stepSeconds <= 0)
        return {};
    if (m_rows.empty())
        return tr("nothing is communicated");
    return tr("%1 sent by each device a step · %2 of gathers, %3 of reductions · %4 exposed")
        .arg(bytesText(m_total.bytes), secondsText(m_total.gatherSeconds), secondsText(m_total.reduceSeconds),
             secondsText(m_total.exposedSeconds));
}

int CommunicationTable::rowCount(const QModelIndex& parent) const {
    return parent.isValid() ? 0 : static_cast<int>(m_rows.size());
}
int CommunicationTable::columnCount(const QModelIndex& parent) const {
    return parent.isValid() ? 0 : ColumnCount;
}

QVariant CommunicationTable::data(const QModelIndex& index, int role) const {
    if (!index.isValid() || index.row() >= rowCount())
        return {};
    const Row& row = m_rows[static_cast<std::size_t>(index.row())];
    if (role == kOperatorRole)
        return row.op;
    if (role == Qt::TextAlignmentRole)
        return index.column() <= Collective ? QVariant(Qt::AlignLeft | Qt::AlignVCenter)
                                            : QVariant(Qt::AlignRight | Qt::AlignVCenter);
    switch (index.column()) {
    case Name:
        return role == kSortRole ? QVariant(row.op)
               : role == Qt::DisplayRole || role == kExportRole
                   ? QVariant(row.count > 1 ? QStringLiteral("%1 ×%2").arg(row.name).arg(row.count) : row.name)
                   : QVariant();
    case PlacementColumn:
        return role == Qt::DisplayRole || role == kSortRole ? QVariant(placementWord(row.placement)) : QVariant();
    case Collective:
        return role == Qt::DisplayRole || role == kSortRole ? QVariant(row.coalesced ? tr("with its block") : tr("own"))
                                                            : QVariant();
    case Bytes:
        return number(role, static_cast<double>(row.bytes), bytesText(row.bytes));
    case Gather:
        return number(role, row.gatherSeconds, secondsText(row.gatherSeconds));
    case Reduce:
        return number(role, row.reduceSeconds, secondsText(row.reduceSeconds));
    case Exposed:
        return number(role, row.exposedSeconds, secondsText(row.exposedSeconds));
    case Share: {
        const double share = m_stepSeconds > 0 ? row.exposedSeconds / m_stepSeconds : 0;
        return number(role, share, percentText(share));
    }
    default:
        return {};
    }
}

QVariant CommunicationTable::headerData(int section, Qt::Orientation orientation, int role) const {
    if (role == kUnitRole)
        return section == Bytes                          ? QVariant(QStringLiteral("bytes"))
               : section >= Gather && section <= Exposed ? QVariant(QStringLiteral("seconds"))
                                                         : QVariant();
    if (orientation == Qt::Vertical || role != Qt::DisplayRole)
        return role == Qt::TextAlignmentRole && section > Collective
                   ? QVariant(Qt::AlignRight | Qt::AlignVCenter)
                   : QAbstractTableModel::headerData(section, orientation, role);
    switch (section) {
    case Name:
        return tr("operator");
    case PlacementColumn:
        return tr("placement");
    case Collective:
        return tr("collective");
    case Bytes:
        return tr("sent a step");
    case Gather:
        return tr("gather");
    case Reduce:
        return tr("reduce");
    case Exposed:
        return tr("exposed");
    case Share:
        return tr("of the step");
    default:
        return {};
    }
}

} // namespace shardscope::app
