// SPDX-License-Identifier: GPL-3.0-or-later
#include "e2e/support/TrainerProcess.h"

#include <QtCore/QDir>
#include <QtCore/QFile>
#include <QtCore/QTemporaryDir>
#include <QtTest/QtTest>

#include <signal.h>
#include <unistd.h>

using namespace shardscope;
using shardscope::testing::PlanRecipe;
using shardscope::testing::TrainerProcess;

namespace {

constexpr const char* kEndless = "100000";

contract::Plan planOf(std::int64_t ranks) {
    PlanRecipe recipe;
    recipe.ranks = ranks;
    recipe.placement = [](int, const std::string&) { return std::string("shard"); };
    return testing::makePlan(recipe);
}

bool isStepAtLeast(const contract::Event& event, std::int64_t step) {
    const auto* body = std::get_if<contract::StepEvent>(&event.body);
    return body != nullptr && body->step >= step;
}

} // namespace

class FailureTest : public QObject {
    Q_OBJECT

private Q_SLOTS:
    void aLostWorkerIsNamed_data();
    void aLostWorkerIsNamed();
    void aLostRunIsRestarted();
    void twoSignalsEndAtOnce();
    void workersDieWithTheirCoordinator();
    void badInputIsRefused_data();
    void badInputIsRefused();
    void anOccupiedPortIsRefused();
    void missingMemoryIsFoundBeforeTheStart();
    void aRunIsNeitherOverwrittenNorResumedAsAnother();

private:
    QString path(const QString& name) const { return m_folder.filePath(name); }
    QTemporaryDir m_folder;
};

void FailureTest::aLostWorkerIsNamed_data() {
    QTest::addColumn<int>("signal");
    QTest::addColumn<int>("rank");
    QTest::addColumn<QString>("cause");
    QTest::newRow("killed") << SIGKILL << 2 << "killed by signal 9";
    QTest::newRow("rank 0 killed") << SIGKILL << 0 << "killed by signal 9";
    QTest::newRow("stopped") << SIGSTOP << 1 << "is stopped";
}

void FailureTest::aLostWorkerIsNamed() {
    QFETCH(const int, signal);
    QFETCH(const int, rank);
    QFETCH(const QString, cause);
    const QString plan = testing::writePlan(m_folder.path(), planOf(3));
    TrainerProcess trainer;
    trainer.start({"run", plan, "--data", "builtin:addition", "--steps", kEndless, "--timeout", "4", "--run-dir",
                   path(QString("lost-%1-%2").arg(signal).arg(rank))});
    QVERIFY(trainer.waitFor([](const contract::Event& event) { return isStepAtLeast(event, 3); }));
    const auto pids = trainer.workerPids();
    QCOMPARE(pids.size(), std::size_t{3});
    kill(static_cast<pid_t>(pids[static_cast<std::size_t>(rank)]), signal);
    QCOMPARE(trainer.waitForEnd(20000), 5);
    QVERIFY(testing::waitUntilGone(pids));
    int first = 0;
    for (const contract::Event& event : trainer.events())
        if (const auto* failure = std::get_if<contract::FailureEvent>(&event.body);
            failure != nullptr && failure->first) {
            ++first;
            QCOMPARE(event.header.rank, rank);
            QVERIFY2(QString::fromStdString(failure->cause).contains(cause), failure->cause.c_str());
            QVERIFY(failure->step >= 4);
            QVERIFY(!failure->phase.empty());
        }
    QCOMPARE(first, 1);
    const auto* bye = std::get_if<contract::ByeEvent>(&trainer.events().back().body);
    QVERIFY(bye != nullptr);
    QCOMPARE(bye->status, std::string("failed"));
}

void FailureTest::aLostRunIsRestarted() {
    const QString plan = testing::writePlan(m_folder.path(), planOf(2));
    TrainerProcess trainer;
    trainer.start({"run", plan, "--data", "builtin:addition", "--steps", "600", "--checkpoint-every", "5",
                   "--max-restarts", "1", "--run-dir", path("restarted")});
    QVERIFY(trainer.waitFor(
        [](const contract::Event& event) { return std::holds_alternative<contract::CheckpointEvent>(event.body); }));
    kill(static_cast<pid_t>(trainer.workerPids()[1]), SIGKILL);
    QCOMPARE(trainer.waitForEnd(), 0);
    const auto restarts = trainer.all<contract::RestartEvent>();
    QCOMPARE(restarts.size(), std::size_t{1});
    QVERIFY(restarts.front().step >= 5);
    QCOMPARE(trainer.all<contract::StepEvent>().back().step, std::int64_t{600});
    QCOMPARE(trainer.all<contract::ByeEvent>().back().status, std::string("done"));
}

void FailureTest::twoSignalsEndAtOnce() {
    const QString plan = testing::writePlan(m_folder.path(), planOf(2));
    TrainerProcess trainer;
    trainer.start({"run", plan, "--data", "builtin:addition", "--steps", kEndless, "--run-dir", path("twice")});
    QVERIFY(trainer.waitFor([](const contract::Event& event) { return isStepAtLeast(event, 2); }));
    const auto pids = trainer.workerPids();
    // A stopped worker cannot finish its step: only the second signal ends this run.
    kill(static_cast<pid_t>(pids[0]), SIGSTOP);
    kill(static_cast<pid_t>(trainer.pid()), SIGTERM);
    QTest::qWait(300);
    kill(static_cast<pid_t>(trainer.pid()), SIGTERM);
    QCOMPARE(trainer.waitForEnd(3000), 130);
    QVERIFY(testing::waitUntilGone(pids));
}

void FailureTest::workersDieWithTheirCoordinator() {
    const QString plan = testing::writePlan(m_folder.path(), planOf(2));
    std::vector<qint64> pids;
    {
        TrainerProcess trainer;
        trainer.start({"run", plan, "--data", "builtin:addition", "--steps", kEndless, "--run-dir", path("orphans")});
        QVERIFY(trainer.waitFor([](const contract::Event& event) { return isStepAtLeast(event, 2); }));
        pids = trainer.workerPids();
        kill(static_cast<pid_t>(trainer.pid()), SIGKILL);
    }
    QCOMPARE(pids.size(), std::size_t{2});
    QVERIFY(testing::waitUntilGone(pids));
}

void FailureTest::badInputIsRefused_data() {
    QTest::addColumn<QString>("change");
    QTest::addColumn<QStringList>("options");
    QTest::addColumn<int>("exitCode");
    QTest::addColumn<QString>("message");
    const QStringList none;
    QTest::newRow("no data there") << "" << QStringList{"--data", "/nowhere/at/all"} << 3 << "/nowhere/at/all";
    QTest::newRow("unknown built-in data") << "" << QStringList{"--data", "builtin:chess"} << 3 << "builtin:addition";
    QTest::newRow("no plan there") << "missing" << none << 3 << "missing.json";
    QTest::newRow("plan is not JSON") << "garbage" << none << 3 << "plan.json";
    QTest::newRow("another precision") << "bf16" << none << 3 << "training.precision";
    QTest::newRow("another family") << "llama" << none << 3 << "family";
    QTest::newRow("more chunks than tokens") << "chunks" << none << 3 << "loss_chunks";
    QTest::newRow("small vocabulary") << "vocabulary" << none << 3 << "vocabulary";
    QTest::newRow("shrunk buffer") << "shrunk" << none << 3 << "logits";
    QTest::newRow("batch does not divide") << "" << QStringList{"--workers", "3"} << 3 << "global_batch";
    QTest::newRow("no such device") << "" << QStringList{"--device", "abacus"} << 2 << "--device";
    QTest::newRow("cuda where there is none") << "" << QStringList{"--device", "cuda"} << 5 << "--device cuda";
    QTest::newRow("no such option") << "" << QStringList{"--colour", "red"} << 2 << "--colour";
}

void FailureTest::badInputIsRefused() {
    QFETCH(const QString, change);
    QFETCH(const QStringList, options);
    QFETCH(const int, exitCode);
    QFETCH(const QString, message);
    if (options.contains("cuda") && QFile::exists("/dev/nvidia0"))
        QSKIP("this machine has a GPU; tests labelled cuda use it");
    PlanRecipe recipe;
    recipe.ranks = 2;
    if (change == "vocabulary")
        recipe.architecture.vocabulary = 255;
    contract::Plan plan = testing::makePlan(recipe);
    if (change == "bf16")
        plan.training.precision = "bf16-adam";
    if (change == "chunks")
        plan.training.lossChunks = plan.training.sequence * plan.training.microBatch + 1;
    if (change == "llama")
        plan.graph.architecture.reset();
    if (change == "shrunk")
        for (contract::Buffer& buffer : plan.buffers.buffers)
            buffer.bytes -= buffer.name == "logits" ? 256 : 0;
    QString file = testing::writePlan(m_folder.path(), plan);
    if (change == "missing")
        file = path("missing.json");
    if (change == "garbage") {
        QFile garbage(file);
        QVERIFY(garbage.open(QIODevice::WriteOnly | QIODevice::Truncate));
        garbage.write("{\"format\":");
    }
    QStringList arguments{"run", file, "--run-dir", path("refused"), "--steps", "2"};
    if (!options.contains("--data"))
        arguments << "--data"
                  << "builtin:addition";
    TrainerProcess trainer;
    QCOMPARE(trainer.run(arguments + options, 20000), exitCode);
    QVERIFY2(trainer.errors().contains(message), qPrintable(trainer.errors()));
    QVERIFY(trainer.events().empty());
    QVERIFY(!QDir(path("refused")).exists()); // nothing is written before everything is checked
}

void FailureTest::anOccupiedPortIsRefused() {
    const QString plan = testing::writePlan(m_folder.path(), planOf(2));
    int taken = -1;
    const QString port = QString::number(testing::freePort(&taken));
    TrainerProcess trainer({"MASTER_PORT=" + port});
    QCOMPARE(trainer.run({"run", plan, "--data", "builtin:addition", "--run-dir", path("occupied")}, 20000), 5);
    QVERIFY2(trainer.errors().contains("MASTER_PORT " + port), qPrintable(trainer.errors()));
    TrainerProcess worker({"MASTER_PORT=" + port, "RANK=0", "WORLD_SIZE=2"});
    QCOMPARE(worker.run({"worker", plan, "--data", "builtin:addition", "--run-dir", path("occupied")}, 20000), 5);
    QVERIFY2(worker.errors().contains("MASTER_PORT " + port), qPrintable(worker.errors()));
    close(taken);
}

void FailureTest::aRunIsNeitherOverwrittenNorResumedAsAnother() {
    const QString plan = testing::writePlan(m_folder.path(), planOf(1));
    const QString folder = path("kept");
    const auto run = [&](const QStringList& options, QString* errors = nullptr) {
        testing::TrainerProcess trainer;
        const int code = trainer.run(QStringList{"run", plan, "--run-dir", folder} + options, 60000);
        if (errors)
            *errors = trainer.errors();
        return code;
    };
    const QStringList addition{"--data", "builtin:addition"};
    QString errors;
    QCOMPARE(run(addition + QStringList{"--steps", "2", "--resume"}, &errors), 3);
    QVERIFY2(errors.contains("holds no run to resume"), qPrintable(errors));
    QCOMPARE(run(addition + QStringList{"--steps", "2"}), 0);
    QFile telemetry(folder + "/run.ndjson");
    QVERIFY(telemetry.open(QIODevice::ReadOnly));
    const QByteArray before = telemetry.readAll();

    QCOMPARE(run(addition + QStringList{"--steps", "2"}, &errors), 2);
    QVERIFY2(errors.contains("holds an earlier run"), qPrintable(errors));
    QCOMPARE(run(addition + QStringList{"--steps", "3", "--resume", "--seed", "7"}, &errors), 2);
    QVERIFY2(errors.contains("--seed 7"), qPrintable(errors));
    QCOMPARE(run({"--data", plan, "--steps", "3", "--resume"}, &errors), 2);
    QVERIFY2(errors.contains("builtin:addition"), qPrintable(errors));
    telemetry.seek(0);
    QCOMPARE(telemetry.readAll(), before);
    QCOMPARE(run(addition + QStringList{"--steps", "3", "--resume"}), 0);
}

void FailureTest::missingMemoryIsFoundBeforeTheStart() {
    PlanRecipe recipe;
    recipe.architecture.layers = 40;
    recipe.architecture.hidden = 8192;
    recipe.architecture.heads = recipe.architecture.kvHeads = 64;
    recipe.architecture.headDim = 128;
    recipe.architecture.intermediate = 32768;
    const QString plan = testing::writePlan(m_folder.path(), testing::makePlan(recipe), "huge.json");
    TrainerProcess trainer;
    QCOMPARE(trainer.run({"run", plan, "--data", "builtin:addition", "--run-dir", path("huge")}, 20000), 5);
    QVERIFY2(trainer.errors().contains("memory available"), qPrintable(trainer.errors()));
    QVERIFY(!QDir(path("huge")).exists());
}

QTEST_GUILESS_MAIN(FailureTest)
#include "tst_failures.moc"
