// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "app/run/RunRecord.h"

#include <QAbstractTableModel>
#include <QSortFilterProxyModel>

namespace shardscope::app {

/// The workers of a run.
class WorkersTable : public QAbstractTableModel {
    Q_OBJECT
public:
    enum Column { Rank, Pid, DeviceColumn, State, Predicted, Measured, Difference, ColumnCount };
    using QAbstractTableModel::QAbstractTableModel;
    void setWorkers(const std::vector<RunWorker>& workers);
    int rowCount(const QModelIndex& parent = {}) const override;
    int columnCount(const QModelIndex& parent = {}) const override;
    QVariant data(const QModelIndex& index, int role) const override;
    QVariant headerData(int section, Qt::Orientation orientation, int role) const override;

private:
    std::vector<RunWorker> m_workers;
};

/// Hides lines of a log below a level.
class LevelFilter : public QSortFilterProxyModel {
    Q_OBJECT
public:
    enum Lowest { Everything, Warnings, Errors };
    /// `log` becomes its parent.
    explicit LevelFilter(QAbstractItemModel* log);
    void setLowest(int lowest);

protected:
    bool filterAcceptsRow(int row, const QModelIndex& parent) const override;

private:
    int m_lowest = Everything;
};

/// The log of a run; grows at the end.
class LogTable : public QAbstractTableModel {
    Q_OBJECT
public:
    enum Column { Time, Who, Level, Text, ColumnCount };
    using QAbstractTableModel::QAbstractTableModel;
    void setLog(const std::vector<RunLogLine>& log);
    int rowCount(const QModelIndex& parent = {}) const override;
    int columnCount(const QModelIndex& parent = {}) const override;
    QVariant data(const QModelIndex& index, int role) const override;
    QVariant headerData(int section, Qt::Orientation orientation, int role) const override;

private:
    std::vector<RunLogLine> m_log;
};

} // namespace shardscope::app
