// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QTableView>

class QSortFilterProxyModel;

namespace shardscope::app {

/// A sortable, filterable table whose selected cells can be copied as text.
class DataTable : public QTableView {
    Q_OBJECT
public:
    /// Rows are sorted by the role `sortRole` of the source.
    DataTable(QAbstractItemModel* source, int sortRole, const QString& name, QWidget* parent = nullptr);
    void setFilter(const QString& text);
    QSortFilterProxyModel* proxy() { return m_proxy; }
    void copySelection() const;

protected:
    /// Measuring what a table holds takes milliseconds, which a table that nobody sees must not take from a drag.
    int sizeHintForColumn(int column) const override;
    void showEvent(QShowEvent* event) override;
    void keyPressEvent(QKeyEvent* event) override;

private:
    QSortFilterProxyModel* m_proxy;
};

} // namespace shardscope::app
