// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/views/DataTable.h"

#include <QClipboard>
#include <QGuiApplication>
#include <QHeaderView>
#include <QKeyEvent>
#include <QSortFilterProxyModel>

namespace shardscope::app {

DataTable::DataTable(QAbstractItemModel* source, int sortRole, const QString& name, QWidget* parent)
    : QTableView(parent), m_proxy(new QSortFilterProxyModel(this)) {
    m_proxy->setSourceModel(source);
    m_proxy->setSortRole(sortRole);
    m_proxy->setFilterCaseSensitivity(Qt::CaseInsensitive);
    m_proxy->setFilterKeyColumn(-1);
    setModel(m_proxy);
    setAccessibleName(name);
    setSortingEnabled(true);
    sortByColumn(-1, Qt::AscendingOrder);
    setSelectionBehavior(QAbstractItemView::SelectRows);
    setSelectionMode(QAbstractItemView::ExtendedSelection);
    setEditTriggers(QAbstractItemView::NoEditTriggers);
    setShowGrid(false);
    setFrameShape(QFrame::NoFrame);
    setWordWrap(false);
    verticalHeader()->hide();
    verticalHeader()->setDefaultSectionSize(24);
    verticalHeader()->setMinimumSectionSize(20);
    horizontalHeader()->setHighlightSections(false);
    horizontalHeader()->setStretchLastSection(false);
    // Narrower than a heading a column is not; the table scrolls instead.
    horizontalHeader()->setMinimumSectionSize(78);
    horizontalHeader()->setSectionResizeMode(QHeaderView::Stretch);
    horizontalHeader()->setSectionResizeMode(0, QHeaderView::ResizeToContents);
    horizontalHeader()->setDefaultAlignment(Qt::AlignLeft | Qt::AlignVCenter);
    setHorizontalScrollMode(QAbstractItemView::ScrollPerPixel);
}

int DataTable::sizeHintForColumn(int column) const {
    return isVisible() ? QTableView::sizeHintForColumn(column) : horizontalHeader()->sectionSize(column);
}

void DataTable::showEvent(QShowEvent* event) {
    QTableView::showEvent(event);
    QMetaObject::invokeMethod(horizontalHeader(), "resizeSections"); // a protected slot
}

void DataTable::setFilter(const QString& text) {
    m_proxy->setFilterFixedString(text);
}

void DataTable::copySelection() const {
    QStringList lines;
    QStringList header;
    for (int column = 0; column < m_proxy->columnCount(); ++column)
        header << m_proxy->headerData(column, Qt::Horizontal).toString();
    lines << header.join('\t');
    for (const QModelIndex& row : selectionModel()->selectedRows()) {
        QStringList cells;
        for (int column = 0; column < m_proxy->columnCount(); ++column)
            cells << row.siblingAtColumn(column).data().toString();
        lines << cells.join('\t');
    }
    QGuiApplication::clipboard()->setText(lines.join('\n'));
}

void DataTable::keyPressEvent(QKeyEvent* event) {
    if (event->matches(QKeySequence::Copy)) {
        copySelection();
        return;
    }
    QTableView::keyPressEvent(event);
}

} // namespace shardscope::app
