// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/tables/ValidationTables.h"

#include "app/tables/OperatorTable.h"

namespace shardscope::app {

namespace {

QVariant alignment(bool isNumber) {
    return isNumber ? QVariant(Qt::AlignRight | Qt::AlignVCenter) : QVariant(Qt::AlignLeft | Qt::AlignVCenter);
}

QString percent(double value) {
    return QStringLiteral("%1 %").arg(value, 0, 'f', 2);
}

} // namespace

void ValidationSummary::setTables(const ValidationTables& tables) {
    beginResetModel();
    m_tables = tables;
    endResetModel();
}

int ValidationSummary::rowCount(const QModelIndex& parent) const {
    return parent.isValid() || !m_tables ? 0 : static_cast<int>(m_tables->size());
}
int ValidationSummary::columnCount(const QModelIndex& parent) const {
    return parent.isValid() ? 0 : ColumnCount;
}

QVariant ValidationSummary::data(const QModelIndex& index, int role) const {
    if (!index.isValid() || index.row() >= rowCount())
        return {};
    const planner::ValidationTable& table = (*m_tables)[static_cast<std::size_t>(index.row())];
    if (role == Qt::TextAlignmentRole)
        return alignment(index.column() >= Rows && index.column() <= Largest);
    if (role == Qt::ToolTipRole)
        return QString::fromStdString(table.source);
    if (role != Qt::DisplayRole && role != kSortRole)
        return {};
    const bool isSort = role == kSortRole;
    const auto error = [&](double value) {
        return isSort ? QVariant(value) : QVariant(table.rows.empty() ? QStringLiteral("–") : percent(value));
    };
    switch (index.column()) {
    case Name:
        return QString::fromStdString(table.name);
    case Rows:
        return static_cast<qlonglong>(table.rows.size());
    case Mean:
        return error(table.meanErrorPercent());
    case Largest:
        return error(table.maxErrorPercent());
    case Verdict:
        return table.rows.empty() ? tr("not claimed") : table.isReproduced() ? tr("reproduced") : tr("not reproduced");
    case Source:
        return QString::fromStdString(table.source);
    default:
        return {};
    }
}

QVariant ValidationSummary::headerData(int section, Qt::Orientation orientation, int role) const {
    if (orientation == Qt::Vertical)
        return {};
    if (role == Qt::TextAlignmentRole)
        return alignment(section >= Rows && section <= Largest);
    if (role == kUnitRole)
        return section == Mean || section == Largest ? QVariant(QStringLiteral("%")) : QVariant();
    if (role != Qt::DisplayRole)
        return {};
    const QString titles[] = {tr("published table"), tr("numbers"), tr("mean error"),
                              tr("largest"),         tr("verdict"), tr("source")};
    return section >= 0 && section < ColumnCount ? QVariant(titles[section]) : QVariant();
}

void ValidationRows::setTable(const ValidationTables& tables, int table) {
    beginResetModel();
    m_tables = tables;
    m_table = table;
    endResetModel();
}

const planner::ValidationTable* ValidationRows::table() const {
    return m_tables && m_table >= 0 && m_table < static_cast<int>(m_tables->size())
               ? &(*m_tables)[static_cast<std::size_t>(m_table)]
               : nullptr;
}

int ValidationRows::rowCount(const QModelIndex& parent) const {
    return parent.isValid() || !table() ? 0 : static_cast<int>(table()->rows.size() + table()->notReproduced.size());
}
int ValidationRows::columnCount(const QModelIndex& parent) const {
    return parent.isValid() ? 0 : ColumnCount;
}

QVariant ValidationRows::data(const QModelIndex& index, int role) const {
    if (!index.isValid() || index.row() >= rowCount())
        return {};
    if (role == Qt::TextAlignmentRole)
        return alignment(index.column() == Ours || index.column() == Theirs || index.column() == Error);
    if (role == Qt::ToolTipRole)
        return data(index, Qt::DisplayRole);
    if (role != Qt::DisplayRole && role != kSortRole)
        return {};
    const auto at = static_cast<std::size_t>(index.row());
    if (at >= table()->rows.size()) {
        const planner::NotReproduced& entry = table()->notReproduced[at - table()->rows.size()];
        return index.column() == Name         ? QVariant(QString::fromStdString(entry.name))
               : index.column() == Tolerance  ? QVariant(tr("not claimed"))
               : index.column() == Convention ? QVariant(QString::fromStdString(entry.reason))
                                              : QVariant();
    }
    const planner::ValidationRow& row = table()->rows[at];
    const bool isSort = role == kSortRole;
    switch (index.column()) {
    case Name:
        return QString::fromStdString(row.name);
    case Ours:
        return isSort ? QVariant(row.ours) : QVariant(QString::number(row.ours, 'g', 8));
    case Theirs:
        return isSort ? QVariant(row.theirs) : QVariant(QString::number(row.theirs, 'g', 8));
    case Unit:
        return QString::fromStdString(row.unit);
    case Error:
        return isSort ? QVariant(row.errorPercent()) : QVariant(percent(row.errorPercent()));
    case Tolerance:
        return row.isReproduced() ? QString::fromStdString(row.toleranceText)
                                  : tr("not reproduced within %1").arg(QString::fromStdString(row.toleranceText));
    case Convention:
        return QString::fromStdString(row.convention);
    default:
        return {};
    }
}

QVariant ValidationRows::headerData(int section, Qt::Orientation orientation, int role) const {
    if (orientation == Qt::Vertical)
        return {};
    if (role == Qt::TextAlignmentRole)
        return alignment(section == Ours || section == Theirs || section == Error);
    if (role == kUnitRole)
        return section == Error ? QVariant(QStringLiteral("%")) : QVariant();
    if (role != Qt::DisplayRole)
        return {};
    const QString titles[] = {
        tr("number"), tr("ours"), tr("theirs"), tr("unit"), tr("error"), tr("tolerance"), tr("formula, or why not")};
    return section >= 0 && section < ColumnCount ? QVariant(titles[section]) : QVariant();
}

} // namespace shardscope::app
