// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/views/ValidationView.h"

#include "app/look/Theme.h"
#include "app/tables/OperatorTable.h"
#include "app/views/Card.h"
#include "app/views/DataTable.h"
#include "planner/readers/Readers.h"

#include <QHeaderView>
#include <QMetaObject>
#include <QSortFilterProxyModel>
#include <QVBoxLayout>

#include <algorithm>

namespace shardscope::app {

ValidationView::ValidationView(QWidget* parent)
    : QWidget(parent), m_text(makeLabel({}, "secondary", this)), m_summary(new ValidationSummary(this)),
      m_rows(new ValidationRows(this)),
      m_summaryView(new DataTable(m_summary, kSortRole, tr("Published tables"), this)),
      m_rowsView(new DataTable(m_rows, kSortRole, tr("Numbers of the published table"), this)),
      m_notes(makeLabel({}, "small", this)) {
    m_text->setWordWrap(true);
    m_notes->setWordWrap(true);
    for (DataTable* view : {m_summaryView, m_rowsView}) {
        view->horizontalHeader()->setSectionResizeMode(QHeaderView::ResizeToContents);
        view->horizontalHeader()->setStretchLastSection(true);
        view->sortByColumn(-1, Qt::AscendingOrder);
    }
    auto* column = new QVBoxLayout(this);
    column->setContentsMargins(0, 0, 0, 0);
    column->setSpacing(10);
    column->addWidget(m_text);
    column->addWidget(m_summaryView, 2);
    column->addWidget(m_rowsView, 3);
    column->addWidget(m_notes);
    connect(m_summaryView->selectionModel(), &QItemSelectionModel::currentRowChanged, this,
            [this](const QModelIndex& current) {
                showTable(current.isValid() ? m_summaryView->proxy()->mapToSource(current).row() : -1);
            });
}

void ValidationView::showEvent(QShowEvent* event) {
    QWidget::showEvent(event);
    if (!m_tables && !m_isComputing)
        compute();
}

void ValidationView::compute() {
    m_isComputing = true;
    m_text->setText(tr("Computing the published tables …"));
    m_worker.submit([this](const std::stop_token& stop) {
        auto tables = planner::validate(planner::modelsFolder() + "/published.json");
        if (stop.stop_requested())
            return;
        const QString error = tables ? QString() : QString::fromStdString(tables.error().message);
        ValidationTables shared =
            tables ? std::make_shared<const std::vector<planner::ValidationTable>>(std::move(*tables)) : nullptr;
        QMetaObject::invokeMethod(
            this, [this, shared, error] { takeTables(shared, error); }, Qt::QueuedConnection);
    });
}

void ValidationView::takeTables(const ValidationTables& tables, const QString& error) {
    m_isComputing = false;
    m_tables = tables;
    m_summary->setTables(tables);
    if (!tables) {
        m_text->setText(error);
        return;
    }
    const auto good = std::count_if(tables->begin(), tables->end(), [](const planner::ValidationTable& table) {
        return !table.rows.empty() && table.isReproduced();
    });
    m_text->setText(
        tr("Numbers that other systems published, computed by this program's formulas just now: %1 of %2 tables are "
           "reproduced within the tolerance that each number allows. shardscope-plan validate prints the same.")
            .arg(good)
            .arg(tables->size()));
    m_summaryView->selectRow(0);
}

void ValidationView::showTable(int table) {
    m_rows->setTable(m_tables, table);
    QStringList notes;
    if (m_tables && table >= 0)
        for (const std::string& note : (*m_tables)[static_cast<std::size_t>(table)].notes)
            notes << QString::fromStdString(note);
    m_notes->setText(notes.join('\n'));
    m_notes->setVisible(!notes.isEmpty());
}

} // namespace shardscope::app
