// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/document/Document.h"
#include "app/support/Samples.h"
#include "app/tables/OperatorTable.h"
#include "app/tables/PlansTable.h"
#include "app/tables/RunTables.h"
#include "app/views/DataTable.h"

#include <QAbstractItemModelTester>
#include <QClipboard>
#include <QGuiApplication>
#include <QSortFilterProxyModel>
#include <QTest>

using namespace shardscope;
using namespace shardscope::app;

class TablesTest : public QObject {
    Q_OBJECT
private:
    static constexpr auto kMode = QAbstractItemModelTester::FailureReportingMode::QtTest;

private Q_SLOTS:
    void operators() {
        OperatorTable table;
        const QAbstractItemModelTester tester(&table, kMode);
        table.setRows(mapRows(*test::samplePlan(10, 4)));
        QCOMPARE(table.rowCount(), 22);
        table.setRows(mapRows(*test::samplePlan(10, 9)));
        table.setRows(mapRows(*test::samplePlan(3, 1)));
        QCOMPARE(table.rowCount(), 8);
        table.setRows({});
    }
    void communication() {
        CommunicationTable table;
        const QAbstractItemModelTester tester(&table, kMode);
        table.setPlan(test::samplePlan(10, 4));
        QVERIFY(table.rowCount() > 2);
        QVERIFY(table.summary().contains("exposed"));
        table.setPlan(nullptr);
        QCOMPARE(table.rowCount(), 0);
    }
    void plans() {
        Document document;
        PlansTable table;
        const QAbstractItemModelTester tester(&table, kMode);
        table.setDocument(document);
        QCOMPARE(table.rowCount(), 0);
    }
    void workersAndLog() {
        WorkersTable workers;
        LogTable log;
        const QAbstractItemModelTester workersTester(&workers, kMode), logTester(&log, kMode);
        workers.setWorkers({{0, 10, "cpu", "ready", {}, {}}, {1, 11, "cpu", "ready", {}, {}}});
        workers.setWorkers({{0, 10, "cpu", "training", {}, {}}, {1, 11, "cpu", "training", {}, {}}});
        log.setLog({{0, -1, "info", "one"}});
        log.setLog({{0, -1, "info", "one"}, {1, 0, "info", "two"}});
        QCOMPARE(log.rowCount(), 2);
        log.setLog({});
    }
    void tablesFilterSortAndCopy() {
        OperatorTable table;
        table.setRows(mapRows(*test::samplePlan(10, 4)));
        DataTable view(&table, kSortRole, "Operators");
        view.setFilter("mlp");
        QCOMPARE(view.proxy()->rowCount(), 10);
        view.setFilter({});
        view.sortByColumn(OperatorTable::Memory, Qt::DescendingOrder);
        QCOMPARE(view.proxy()->index(0, 0).data().toString(), QStringLiteral("wte"));
        view.selectRow(0);
        view.copySelection();
        QVERIFY(QGuiApplication::clipboard()->text().contains("wte\tsharded in 4 slices"));
    }
};

QTEST_MAIN(TablesTest)
#include "tst_tables.moc"
