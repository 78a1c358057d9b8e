// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "app/document/Document.h"

#include <QAbstractTableModel>

namespace shardscope::app {

/// The current plan, saved plans and the well-known policies as rows.
class PlansTable : public QAbstractTableModel {
    Q_OBJECT
public:
    enum Column { Name, Peak, Rate, Step, Batch, Against, Smallest, What, MeasuredStep, MeasuredPeak, ColumnCount };
    struct Row {
        QString name;
        QString note; ///< "does not fit"
        std::int64_t peakBytes = 0;
        double rate = 0; ///< tokens or images a second
        double stepSeconds = 0;
        std::int64_t microBatch = 0;
        std::int64_t smallestBytes = 0;
        int saved = -1;                  ///< index of a saved plan; what was measured of it can be typed in
        QString what;                    ///< a policy in a few words
        planner::PlanResultPointer plan; ///< null when it does not fit
        double measuredSeconds = 0;      ///< of a step, measured elsewhere; 0: not said
        std::int64_t measuredBytes = 0;  ///< peak, likewise
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
    Qt::ItemFlags flags(const QModelIndex& index) const override;
    /// Of measured figures: "312 ms", "21.4 GiB", empty for none; what cannot be read changes nothing.
    bool setData(const QModelIndex& index, const QVariant& value, int role) override;

Q_SIGNALS:
    /// What is measured of a saved plan was typed in.
    void measured(int saved, double stepSeconds, qint64 peakBytes);

private:
    std::vector<Row> m_rows;
    QString m_unit;
};

} // namespace shardscope::app
