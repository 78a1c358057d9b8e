// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "planner/validate/Validation.h"

#include <QAbstractTableModel>

#include <memory>

namespace shardscope::app {

using ValidationTables = std::shared_ptr<const std::vector<planner::ValidationTable>>;

/// One row for each published table: how many numbers, how far off.
class ValidationSummary : public QAbstractTableModel {
    Q_OBJECT
public:
    enum Column { Name, Rows, Mean, Largest, Verdict, Source, ColumnCount };
    using QAbstractTableModel::QAbstractTableModel;
    void setTables(const ValidationTables& tables);
    int rowCount(const QModelIndex& parent = {}) const override;
    int columnCount(const QModelIndex& parent = {}) const override;
    QVariant data(const QModelIndex& index, int role) const override;
    QVariant headerData(int section, Qt::Orientation orientation, int role) const override;

private:
    ValidationTables m_tables;
};

/// The numbers of one published table beside ours; what is not claimed comes last with its reason.
class ValidationRows : public QAbstractTableModel {
    Q_OBJECT
public:
    enum Column { Name, Ours, Theirs, Unit, Error, Tolerance, Convention, ColumnCount };
    using QAbstractTableModel::QAbstractTableModel;
    void setTable(const ValidationTables& tables, int table);
    int rowCount(const QModelIndex& parent = {}) const override;
    int columnCount(const QModelIndex& parent = {}) const override;
    QVariant data(const QModelIndex& index, int role) const override;
    QVariant headerData(int section, Qt::Orientation orientation, int role) const override;

private:
    const planner::ValidationTable* table() const;
    ValidationTables m_tables;
    int m_table = -1;
};

} // namespace shardscope::app
