// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "app/tables/ValidationTables.h"
#include "app/work/LatestWins.h"

#include <QWidget>

class QLabel;

namespace shardscope::app {

class DataTable;

/// Published tables of other systems beside our numbers; computed on a thread when first shown.
class ValidationView : public QWidget {
    Q_OBJECT
public:
    explicit ValidationView(QWidget* parent = nullptr);
    const ValidationTables& tables() const { return m_tables; }
    ValidationSummary& summary() { return *m_summary; }
    ValidationRows& rows() { return *m_rows; }

protected:
    void showEvent(QShowEvent* event) override;

private:
    void compute();
    void showTable(int table);
    void takeTables(const ValidationTables& tables, const QString& error);

    ValidationTables m_tables;
    bool m_isComputing = false;
    QLabel* m_text;
    ValidationSummary* m_summary;
    ValidationRows* m_rows;
    DataTable* m_summaryView;
    DataTable* m_rowsView;
    QLabel* m_notes;
    LatestWins m_worker;
};

} // namespace shardscope::app
