// SPDX-License-Identifier: GPL-3.0-or-later
// shardscope-plan simulate and diff as a user calls them.
#include "e2e/support/PlanProcess.h"

#include <QtTest>

#include <cmath>

using namespace shardscope;
using testing::Outcome;
using testing::plan;

class TestPlanCommands : public QObject {
    Q_OBJECT

private slots:
    void initTestCase() {
        QVERIFY(m_folder.isValid());
        const QStringList request{"solve", "demo-small", "--cluster", "8x-titan-pcie3", "--json"};
        QCOMPARE(plan(request + QStringList{"--batch", "4", "-o", path("a.json")}).exitCode, 0);
        QCOMPARE(plan(request + QStringList{"--batch", "2", "--accumulate", "2", "--recompute", "on", "--pin",
                                            "*.mlp.*=shard:2", "-o", path("b.json")})
                     .exitCode,
                 0);
        QCOMPARE(plan(request + QStringList{"--batch", "2", "-o", path("c.json")}).exitCode, 0);
    }

    void simulateSumsItsParts() {
        for (const char* file : {"a.json", "b.json"}) {
            const Outcome outcome = plan({"simulate", path(file), "--json", "--trace", path("t.json")});
            QCOMPARE(outcome.exitCode, 0);
            const contract::Json document = outcome.json();
            QVERIFY(document.is_object());
            double sum = 0;
            for (const auto& [cause, seconds] : document.at("waterfall_seconds").items())
                sum += seconds.get<double>();
            QVERIFY(std::abs(sum - document.at("step_seconds").get<double>()) < 1e-11);
            const contract::Json& memory = document.at("memory");
            QVERIFY(memory.at("peak_bytes") <= memory.at("reserved_bytes"));
            QCOMPARE(memory.at("reserved_bytes").get<std::int64_t>(),
                     document.at("predicted").at("peak_bytes").get<std::int64_t>());
            const auto trace = contract::readJsonFile(path("t.json").toStdString());
            QVERIFY(trace);
            QVERIFY(trace->at("traceEvents").size() > 100);
        }
    }

    void simulateSpeaksToPeople() {
        const Outcome outcome = plan({"simulate", path("a.json")});
        QCOMPARE(outcome.exitCode, 0);
        for (const char* words : {"simulated", "predicted", "exposed gather", "optimizer step", "Memory in use"})
            QVERIFY2(outcome.out.contains(words), words);
        QVERIFY(outcome.errors.isEmpty());
    }

    void diffSumsItsParts() {
        const Outcome outcome = plan({"diff", path("a.json"), path("b.json"), "--json"});
        QCOMPARE(outcome.exitCode, 0);
        const contract::Json document = outcome.json();
        const contract::Json& difference = document.at("difference");
        std::int64_t sum = 0;
        for (const contract::Json& part : difference.at("waterfall_picoseconds"))
            sum += part.get<std::int64_t>();
        QCOMPARE(sum, difference.at("step_picoseconds").get<std::int64_t>());
        const double files = document.at("b").at("predicted_step_seconds").get<double>() -
                             document.at("a").at("predicted_step_seconds").get<double>();
        QVERIFY(std::abs(static_cast<double>(sum) * 1e-12 - files) < 1e-12);
        QVERIFY(difference.at("same_batch").get<bool>());
        QVERIFY(difference.at("operators").get<int>() > 0);
        QVERIFY(document.at("operators").size() >= difference.at("operators").get<std::size_t>());
        QVERIFY(plan({"diff", path("a.json"), path("b.json")}).out.contains("-> shard:2 recomputed"));
        // Another global batch: a sample's time is compared as well.
        QVERIFY(plan({"diff", path("a.json"), path("c.json")}).out.contains("per sample"));
        QVERIFY(plan({"diff", path("a.json"), path("a.json")}).out.contains("0 of "));
    }

    void wrongInputsAreRefused() {
        QCOMPARE(plan({"simulate"}).exitCode, 2);
        QCOMPARE(plan({"diff", path("a.json")}).exitCode, 2);
        QCOMPARE(plan({"simulate", path("a.json"), "--trace"}).exitCode, 2);
        const Outcome missing = plan({"simulate", path("none.json"), "--json"});
        QCOMPARE(missing.exitCode, 3);
        QVERIFY(missing.json().contains("error"));
        write("garbage.json", "{\"format\":");
        QCOMPARE(plan({"simulate", path("garbage.json")}).exitCode, 3);
        QCOMPARE(plan({"diff", path("a.json"), path("garbage.json")}).exitCode, 3);
        QFile good(path("a.json"));
        QVERIFY(good.open(QIODevice::ReadOnly));
        QByteArray text = good.readAll();
        text.replace("\"first\":0,", "\"first\":1,");
        write("buffers.json", text);
        const Outcome buffers = plan({"simulate", path("buffers.json")});
        QCOMPARE(buffers.exitCode, 3);
        QVERIFY(buffers.errors.contains("buffers.json: buffers[0]"));
        QCOMPARE(plan({"simulate", path("a.json"), "--trace", path("no/such/folder/t.json")}).exitCode, 5);
    }

    void withoutArchitectureTheBundledGraphIsTaken() {
        const auto document = contract::readJsonFile(path("a.json").toStdString());
        QVERIFY(document);
        contract::Json changed = *document;
        changed["graph"]["architecture"] = nullptr;
        write("bundled.json", QByteArray::fromStdString(changed.dump()));
        QCOMPARE(plan({"simulate", path("bundled.json")}).exitCode, 0);
        changed["graph"]["sha256"] = "0";
        write("other.json", QByteArray::fromStdString(changed.dump()));
        const Outcome other = plan({"simulate", path("other.json")});
        QCOMPARE(other.exitCode, 3);
        QVERIFY(other.errors.contains("graph.sha256"));
        changed["graph"]["name"] = "nobody";
        write("unknown.json", QByteArray::fromStdString(changed.dump()));
        QVERIFY(plan({"simulate", path("unknown.json")}).errors.contains("no bundled graph"));
    }

private:
    QString path(const QString& file) const { return m_folder.filePath(file); }
    void write(const QString& file, const QByteArray& content) const {
        QFile out(path(file));
        QVERIFY(out.open(QIODevice::WriteOnly));
        out.write(content);
    }

    QTemporaryDir m_folder;
};

QTEST_GUILESS_MAIN(TestPlanCommands)
#include "tst_plan_commands.moc"
