// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "app/layout/MapRows.h"

#include <QAbstractTableModel>

namespace shardscope::app {

/// Sort by this: the bare number behind a cell.
inline constexpr int kSortRole = Qt::UserRole + 1;
/// The index of the graph's operator behind a row.
inline constexpr int kOperatorRole = Qt::UserRole + 2;
/// What a file says instead of the number that sorts: a name where rows sort by their place.
inline constexpr int kExportRole = Qt::UserRole + 3;
/// Of a header: the unit of the bare numbers, "bytes" or "seconds"; none where there is none.
inline constexpr int kUnitRole = Qt::UserRole + 4;

/// The operator map as a table.
class OperatorTable : public QAbstractTableModel {
    Q_OBJECT
public:
    enum Column {
        Name,
        PlacementColumn,
        Recompute,
        Collective,
        Parameters,
        Gradients,
        Optimizer,
        Activations,
        Slots,
        Memory,
        Compute,
        Exposed,
        Hidden,
        ColumnCount
    };
    using QAbstractTableModel::QAbstractTableModel;
    void setRows(std::vector<MapRow> rows);
    int rowCount(const QModelIndex& parent = {}) const override;
    int columnCount(const QModelIndex& parent = {}) const override;
    QVariant data(const QModelIndex& index, int role) const override;
    QVariant headerData(int section, Qt::Orientation orientation, int role) const override;

private:
    std::vector<MapRow> m_rows;
};

/// What is sent, by operator and kind of collective.
class CommunicationTable : public QAbstractTableModel {
    Q_OBJECT
public:
    enum Column { Name, PlacementColumn, Collective, Bytes, Gather, Reduce, Exposed, Share, ColumnCount };
    using QAbstractTableModel::QAbstractTableModel;
    void setPlan(const planner::PlanResultPointer& plan);
    QString summary() const;
    int rowCount(const QModelIndex& parent = {}) const override;
    int columnCount(const QModelIndex& parent = {}) const override;
    QVariant data(const QModelIndex& index, int role) const override;
    QVariant headerData(int section, Qt::Orientation orientation, int role) const override;

private:
    /// Equal operators of all blocks under one placement.
    struct Row {
        QString name;
        std::int32_t op = 0;
        int count = 0;
        contract::Placement placement;
        bool coalesced = false;
        std::int64_t bytes = 0;
        double gatherSeconds = 0, reduceSeconds = 0, exposedSeconds = 0;
    };
    std::vector<Row> m_rows;
    Row m_total;
    double m_stepSeconds = 0;
};

} // namespace shardscope::app
