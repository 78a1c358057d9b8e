// SPDX-License-Identifier: GPL-3.0-or-later
#include "support/PlanProcess.h"

#include <QFile>
#include <QTemporaryDir>
#include <QtTest>

using shardscope::testing::Outcome;
using shardscope::testing::plan;

/// A key with a typo in a graph or cluster file of ours: every command that reads it says so, and goes on.
class tst_unknown_keys : public QObject {
    Q_OBJECT

    QTemporaryDir m_folder;
    QString m_graph;
    QString m_cluster;

    /// What the program wrote, with a key replaced.
    static void replaceKey(const QString& path, const QByteArray& key, const QByteArray& typo) {
        QFile file(path);
        if (!file.open(QIODevice::ReadWrite))
            qFatal("cannot open");
        QByteArray text = file.readAll();
        if (!text.contains('"' + key + '"'))
            qFatal("no such key");
        text.replace('"' + key + '"', '"' + typo + '"');
        file.resize(0);
        file.seek(0);
        file.write(text);
    }

private slots:
    void initTestCase() {
        m_graph = m_folder.filePath("typo.graph.json");
        m_cluster = m_folder.filePath("typo.cluster.json");
        QCOMPARE(plan({"inspect", "bert-base-uncased", "--sequence", "32", "--export", m_graph}).exitCode, 0);
        QCOMPARE(plan({"cluster", "8x-a100-80g", "--export", m_cluster}).exitCode, 0);
        replaceKey(m_graph, "live", "alive");
        replaceKey(m_cluster, "overlap_efficiency", "overlap_eficiency");
    }

    void everyCommandSaysThem_data() {
        QTest::addColumn<QStringList>("arguments");
        QTest::addColumn<bool>("readsGraph");
        QTest::addColumn<bool>("readsCluster");
        QTest::newRow("inspect") << QStringList{"inspect", m_graph} << true << false;
        QTest::newRow("inspect --json") << QStringList{"inspect", m_graph, "--json"} << true << false;
        QTest::newRow("cluster") << QStringList{"cluster", m_cluster} << false << true;
        QTest::newRow("cluster --json") << QStringList{"cluster", m_cluster, "--json"} << false << true;
        QTest::newRow("solve") << QStringList{"solve", m_graph, "--cluster", m_cluster} << true << true;
        QTest::newRow("solve --json") << QStringList{"solve", m_graph, "--cluster", m_cluster, "--json"} << true
                                      << true;
        QTest::newRow("frontier") << QStringList{"frontier", m_graph, "--cluster", m_cluster, "--points", "2"} << true
                                  << true;
        QTest::newRow("compare") << QStringList{"compare", m_graph, "--cluster", m_cluster} << true << true;
    }
    void everyCommandSaysThem() {
        QFETCH(QStringList, arguments);
        QFETCH(bool, readsGraph);
        QFETCH(bool, readsCluster);
        const Outcome outcome = plan(arguments);
        QVERIFY2(outcome.exitCode == 0, outcome.errors.constData());
        const QByteArray graph = "shardscope-plan: warning: " + m_graph.toUtf8() + ": operators[0].alive is not a key";
        const QByteArray cluster = "shardscope-plan: warning: " + m_cluster.toUtf8() +
                                   ": overlap_eficiency is not a key that is known here and is ignored; the nearest "
                                   "known key is \"overlap_efficiency\"\n";
        QVERIFY2(outcome.errors.count(graph) == int(readsGraph), outcome.errors.constData());
        QVERIFY2(outcome.errors.count(cluster) == int(readsCluster), outcome.errors.constData());
        QVERIFY2(outcome.errors.count('\n') == int(readsGraph) + int(readsCluster), outcome.errors.constData());
        if (arguments.contains("--json"))
            QVERIFY(!outcome.json().is_discarded()); // one document and nothing else
    }

    void commandsThatReadAPlanSayThem() {
        const QString file = m_folder.filePath("plan.json");
        QCOMPARE(plan({"solve", m_graph, "--cluster", "8x-a100-80g", "-o", file}).exitCode, 0);
        for (const QStringList& arguments :
             {QStringList{"simulate", file, "--graph", m_graph}, QStringList{"diff", file, file, "--graph", m_graph}}) {
            const Outcome outcome = plan(arguments);
            QVERIFY2(outcome.exitCode == 0, outcome.errors.constData());
            QVERIFY2(outcome.errors.contains("operators[0].alive is not a key"), outcome.errors.constData());
        }
    }

    void inspectHasThemAmongItsWarnings() {
        const auto document = plan({"inspect", m_graph, "--json"}).json();
        QCOMPARE(int(document["warnings"].size()), 1);
        const auto warning = document["warnings"][0].get<std::string>();
        QVERIFY(warning.find("operators[0].alive") != std::string::npos);
        QVERIFY(warning.find("more like it; the nearest known key is \"live\"") != std::string::npos);
    }
};

QTEST_GUILESS_MAIN(tst_unknown_keys)
#include "tst_unknown_keys.moc"
