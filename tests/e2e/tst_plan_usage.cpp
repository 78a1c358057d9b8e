// SPDX-License-Identifier: GPL-3.0-or-later
// What people and scripts do wrong with shardscope-plan, and what it promises in words.
#include "e2e/support/PlanProcess.h"

#include <QtTest>

using namespace shardscope;
using testing::Outcome;
using testing::plan;

namespace {

/// "$P" stands for the program.
Outcome shell(const QString& line) {
    QProcess process;
    process.start("/bin/sh", {"-c", QStringLiteral("P='" SHARDSCOPE_BIN_DIR "/shardscope-plan'; ") + line});
    return testing::finish(process);
}

const QStringList kGpt2{"solve", "gpt2", "--cluster", "8x-titan-pcie3"};

} // namespace

class TestPlanUsage : public QObject {
    Q_OBJECT

private slots:
    void initTestCase() { QVERIFY(m_folder.isValid()); }

    void mistakesAreNamed_data() {
        QTest::addColumn<QStringList>("arguments");
        QTest::addColumn<QByteArray>("words");
        QTest::newRow("unknown subcommand") << QStringList{"solv", "gpt2"} << QByteArray("no subcommand \"solv\"");
        QTest::newRow("no subcommand") << QStringList{} << QByteArray("subcommand is required");
        QTest::newRow("bytes without unit") << kGpt2 + QStringList{"--memory", "10"} << QByteArray("10GiB");
        QTest::newRow("empty output") << kGpt2 + QStringList{"-o", ""} << QByteArray("(-o) is empty");
        QTest::newRow("empty memory") << kGpt2 + QStringList{"--memory="} << QByteArray("is empty");
        QTest::newRow("zero sequence") << kGpt2 + QStringList{"--sequence", "0"}
                                       << QByteArray("\"0\" is not a whole number");
        QTest::newRow("infinite limit") << kGpt2 + QStringList{"--time-limit", "inf"}
                                        << QByteArray("not a positive number");
        QTest::newRow("endless step") << kGpt2 + QStringList{"--accumulate", "8000000"} << QByteArray("53 days");
        QTest::newRow("problem and output") << QStringList{"solve", "--problem", "x.json", "-o", "y.json"}
                                            << QByteArray("--output does not go with it");
        QTest::newRow("problem and cluster")
            << QStringList{"solve", "--problem", "x.json", "--cluster", "x"} << QByteArray("--cluster does not");
    }
    void mistakesAreNamed() {
        QFETCH(QStringList, arguments);
        QFETCH(QByteArray, words);
        const Outcome outcome = plan(arguments);
        QCOMPARE(outcome.exitCode, 2);
        QVERIFY2(outcome.errors.contains(words), outcome.errors.constData());
        QVERIFY2(outcome.errors.size() < 400, outcome.errors.constData());
        QVERIFY(outcome.out.isEmpty());
    }

    void nobodyListens_data() {
        QTest::addColumn<QString>("line");
        QTest::addColumn<int>("exitCode");
        QTest::newRow("full standard error") << "\"$P\" solve gpt2 --memory zz 2>/dev/full" << 2;
        QTest::newRow("closed standard error") << "\"$P\" solve nope --json 2>&- <&-" << 3;
        QTest::newRow("everything closed") << "\"$P\" solve nope <&- >&- 2>&-" << 3;
        QTest::newRow("full standard output") << "\"$P\" validate >/dev/full" << 5;
    }
    void nobodyListens() {
        QFETCH(QString, line);
        QFETCH(int, exitCode);
        QCOMPARE(shell(line).exitCode, exitCode);
    }

    void aFileBeyondTheAllowedSizeLeavesNothing() {
        const Outcome outcome = shell(
            QString("cd '%1' && ulimit -f 20 && \"$P\" solve gpt2-xl --cluster 8x-titan-pcie3 -o big.json >/dev/null")
                .arg(m_folder.path()));
        QCOMPARE(outcome.exitCode, 5);
        QVERIFY2(outcome.errors.contains("big.json"), outcome.errors.constData());
        QVERIFY(QDir(m_folder.path()).entryList({"big.json*"}, QDir::Files).isEmpty());
    }

    void aPinOnATiedOperatorPinsTheStorage() {
        const Outcome outcome =
            plan(kGpt2 + QStringList{"--pin", "lm_head=shard", "--why", "wte", "--why", "lm_head", "--json"});
        QCOMPARE(outcome.exitCode, 0);
        const contract::Json document = outcome.json();
        for (const contract::Json& op : document.at("why"))
            QCOMPARE(op.at("placement").get<std::string>(), std::string("shard"));
        QCOMPARE(document.at("why").size(), std::size_t{2});
    }

    void oneMoreGibIsWhatSolvingSays() {
        const contract::Json here = plan(kGpt2 + QStringList{"--memory", "3GiB", "--json"}).json();
        const contract::Json there = plan(kGpt2 + QStringList{"--memory", "4GiB", "--json"}).json();
        QCOMPARE(here.at("with_one_gib_more").at("samples_per_second"), there.at("samples_per_second"));
        QCOMPARE(here.at("with_one_gib_more").at("batch"), there.at("batch"));
        QVERIFY(there.at("samples_per_second") >= here.at("samples_per_second"));
    }

    void remediesCanBeTyped() {
        // Every remedy of one change is an option with its value, and keeps what it promises.
        const QStringList request{"solve", "gpt2-xl", "--cluster", "8x-titan-pcie3", "--memory", "4.4GiB", "--json"};
        const Outcome outcome = plan(request);
        QCOMPARE(outcome.exitCode, 4);
        int typed = 0;
        const contract::Json document = outcome.json();
        for (const contract::Json& remedy : document.at("remedies")) {
            const QString change = QString::fromStdString(remedy.at("change").get<std::string>());
            QStringList arguments = request;
            for (const QString& one : change.split(", ")) {
                const QString option = "--" + one.section(' ', 0, 0);
                if (const auto given = arguments.indexOf(option); given >= 0)
                    arguments.remove(given, 2);
                arguments << option << one.section(' ', 1);
            }
            const contract::Json answer = plan(arguments).json();
            QVERIFY2(answer.at("feasible").get<bool>(), qPrintable(change));
            QCOMPARE(answer.at("peak_bytes"), remedy.at("peak_bytes"));
            QCOMPARE(answer.at("samples_per_second"), remedy.at("samples_per_second"));
            ++typed;
        }
        QVERIFY(typed >= 3);
    }

    void aLimitOfWorkThatSufficesIsAProof() {
        const contract::Json document =
            plan({"solve", "llama-3.1-8b", "--cluster", "2x8-h100", "--work-limit", "1", "--json"}).json();
        QVERIFY(document.at("proven_optimal").get<bool>() == (document.at("gap").get<double>() == 0));
    }

    void aPlanOfAnOwnGraphIsSimulatedWithIt() {
        const QString graph = m_folder.filePath("own.graph.json");
        const QString file = m_folder.filePath("own.json");
        QCOMPARE(
            plan({"inspect", "--family", "inconsistent", "--layers", "3", "--hidden", "64,128,256", "--export", graph})
                .exitCode,
            0);
        QCOMPARE(plan({"solve", graph, "--cluster", "8x-titan-pcie3", "-o", file}).exitCode, 0);
        const Outcome without = plan({"simulate", file});
        QCOMPARE(without.exitCode, 3);
        QVERIFY2(without.errors.contains("--graph"), without.errors.constData());
        QCOMPARE(plan({"simulate", file, "--graph", graph}).exitCode, 0);
        QCOMPARE(plan({"diff", file, file, "--graph", graph}).exitCode, 0);
        const Outcome other = plan({"simulate", file, "--graph", "gpt2"});
        QCOMPARE(other.exitCode, 3);
        QVERIFY2(other.errors.contains("another graph"), other.errors.constData());
    }

    void manyOptionsAreReadInTime() {
        // Duplicate keys and depth are checked without looking through every container again after every element:
        // 10^5 options take a second or so, not minutes.
        QFile file(m_folder.filePath("many.json"));
        QVERIFY(file.open(QIODevice::WriteOnly));
        contract::Json options = contract::Json::array();
        for (int i = 0; i < 100'000; ++i)
            options.push_back(
                {{"label", std::to_string(i)}, {"state_bytes", 10}, {"transient_bytes", 5}, {"nanoseconds", 7}});
        const contract::Json problem{{"format", "shardscope-problem"},
                                     {"version", 1},
                                     {"limit_bytes", 100},
                                     {"base_bytes", 0},
                                     {"operators", {{{"name", "a"}, {"options", options}}}}};
        file.write(QByteArray::fromStdString(problem.dump()));
        file.close();
        const Outcome outcome = plan({"solve", "--problem", file.fileName(), "--time-limit", "2"});
        QCOMPARE(outcome.exitCode, 0);
        QCOMPARE(outcome.json().at("nanoseconds").get<int>(), 7);
    }

private:
    QTemporaryDir m_folder;
};

QTEST_GUILESS_MAIN(TestPlanUsage)
#include "tst_plan_usage.moc"
