// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "app/document/Document.h"

#include <QAbstractTableModel>

namespace shardscope::app {

/// The current plan, saved plans and the well-known policies as rows.
class PlansTable : public QAbstractTableModel {
    Q_OBJECT
public:
    enum Column { Name, Peak, Rate, Step, Batch, Against, Smallest, What, ColumnCount };
    struct Row {
        QString name;
        QString note; ///< "does not fit"
        std::int64_t peakBytes = 0;
        double rate = 0; ///< tokens or images a second
        double stepSeconds = 0;
        std::int64_t microBatch = 0;
        std::int64_t smallestBytes = 0;
        int saved = -1;                  ///< index of a saved plan
        QString what;                    ///< a policy in a few words
        planner::PlanResultPointer plan; ///< null when it does not fit
    };
    using QAbstractTableModel::QAbstractTableModel;
    void setDocument(const Document& document);
    /// For files: rows taken from another table. `unit`: of the rate.
    void setRows(std::vector<Row> rows, const QString& unit);
    const std::vector<Row>& rows() const { return m_rows; }
    const Row& row(int index) const { return m_rows[static_cast<std::size_t>(index)]; }
    int rowCount(const QModelIndex& parent = {}) const override;
    int columnCount(const QModelIndex& parent = {}) const override;
    QVariant data(const QModelIndex& index, int role) const override;
    QVariant headerData(int section, Qt::Orientation orientation, int role) const override;

private:
    std::vector<Row> m_rows;
    QString m_unit;
};

} // namespace shardscope::app
