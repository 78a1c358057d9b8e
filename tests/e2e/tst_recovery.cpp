// SPDX-License-Identifier: GPL-3.0-or-later
#include "e2e/support/TrainerProcess.h"

#include <QtCore/QDir>
#include <QtCore/QElapsedTimer>
#include <QtCore/QFile>
#include <QtCore/QTemporaryDir>
#include <QtTest/QtTest>

#include <signal.h>

using namespace shardscope;
using shardscope::testing::PlanRecipe;
using shardscope::testing::TrainerProcess;

namespace {

contract::Plan planOf(std::int64_t ranks) {
    PlanRecipe recipe;
    recipe.ranks = ranks;
    recipe.placement = [](int, const std::string&) { return std::string("shard"); };
    return testing::makePlan(recipe);
}

/// The first cause, with its rank in the header.
const contract::Event* firstFailure(const TrainerProcess& trainer) {
    for (const contract::Event& event : trainer.events())
        if (const auto* failure = std::get_if<contract::FailureEvent>(&event.body); failure && failure->first)
            return &event;
    return nullptr;
}

} // namespace

/// Runs whose disk, files or numbers fail, and runs that are stopped before they have begun.
class RecoveryTest : public QObject {
    Q_OBJECT

private Q_SLOTS:
    void aFullDiskIsNamed();
    void aDamagedCheckpointIsPassedOver();
    void aLossThatIsNoNumberEndsTheRun();
    void anEarlyStopIsNotLost_data();
    void anEarlyStopIsNotLost();
    void aMissingRankIsGivenUpInTime_data();
    void aMissingRankIsGivenUpInTime();
    void checkpointsAreKeptAsAsked();

private:
    QString path(const QString& name) const { return m_folder.filePath(name); }
    QTemporaryDir m_folder;
};

/// A limit on the size of files stands in for the full disk: a file of the checkpoint cannot be made in its size.
void RecoveryTest::aFullDiskIsNamed() {
    const QString plan = testing::writePlan(m_folder.path(), planOf(2));
    QProcess shell;
    shell.start("bash",
                {"-c", "ulimit -f 64; exec \"$0\" \"$@\"", SHARDSCOPE_BIN_DIR "/shardscope-train", "run", plan,
                 "--data", "builtin:addition", "--steps", "4", "--checkpoint-every", "2", "--run-dir", path("full")});
    QVERIFY(shell.waitForFinished(60000));
    QCOMPARE(shell.exitCode(), 5);
    int first = 0;
    for (const QByteArray& line : shell.readAllStandardOutput().split('\n')) {
        const auto event = contract::parseEvent(line.toStdString());
        if (!event)
            continue;
        if (const auto* failure = std::get_if<contract::FailureEvent>(&event->body); failure && failure->first) {
            ++first;
            QCOMPARE(event->header.rank, 0);
            QCOMPARE(failure->phase, std::string("checkpoint"));
            QVERIFY2(failure->cause.find("safetensors: cannot reserve its bytes") != std::string::npos,
                     failure->cause.c_str());
        }
    }
    QCOMPARE(first, 1);
    QVERIFY(QDir(path("full") + "/checkpoints")
                .entryList(QDir::Dirs | QDir::NoDotAndDotDot | QDir::Hidden)
                .isEmpty()); // nothing half-written
}

void RecoveryTest::aDamagedCheckpointIsPassedOver() {
    const QString plan = testing::writePlan(m_folder.path(), planOf(2));
    const QStringList options{"run", plan, "--data", "builtin:addition", "--run-dir", path("damaged")};
    QCOMPARE(TrainerProcess().run(options + QStringList{"--steps", "4", "--checkpoint-every", "2"}), 0);
    QFile weights(path("damaged/checkpoints/step-00000004/model.safetensors"));
    QVERIFY(weights.open(QIODevice::ReadWrite));
    QVERIFY(weights.seek(weights.size() / 2));
    QVERIFY(weights.write("damage") == 6);
    weights.close();
    TrainerProcess trainer;
    QCOMPARE(trainer.run(options + QStringList{"--steps", "5", "--resume"}), 0);
    QCOMPARE(trainer.all<contract::StepEvent>().front().step, std::int64_t{3});
    bool said = false;
    for (const auto& log : trainer.all<contract::LogEvent>())
        said = said || (log.level == "warning" &&
                        log.message.find("step-00000004/model.safetensors: its checksum") != std::string::npos);
    QVERIFY(said);
}

void RecoveryTest::aLossThatIsNoNumberEndsTheRun() {
    contract::Plan plan = planOf(2);
    plan.training.optimizer.warmupSteps = 0;
    TrainerProcess trainer;
    QCOMPARE(trainer.run({"run", testing::writePlan(m_folder.path(), plan, "broken.json"), "--data", "builtin:addition",
                          "--steps", "50", "--learning-rate", "1000", "--run-dir", path("broken")}),
             5);
    const contract::Event* const first = firstFailure(trainer);
    QVERIFY(first != nullptr);
    const auto& failure = std::get<contract::FailureEvent>(first->body);
    QVERIFY(first->header.rank >= 0);
    QVERIFY(failure.step > 1);
    QVERIFY2(failure.phase == "loss" || failure.phase == "gradient norm", failure.phase.c_str());
    QVERIFY2(failure.cause.find("of step " + std::to_string(failure.step)) != std::string::npos, failure.cause.c_str());
    QCOMPARE(trainer.all<contract::StepEvent>().back().step, failure.step - 1);
}

void RecoveryTest::anEarlyStopIsNotLost_data() {
    QTest::addColumn<int>("milliseconds");
    for (const int milliseconds : {0, 3, 10, 25, 50, 120})
        QTest::addRow("%d ms", milliseconds) << milliseconds;
}

/// Whenever it comes, one signal ends the run: before main() by its default, then by our hand. Nothing is left.
void RecoveryTest::anEarlyStopIsNotLost() {
    QFETCH(const int, milliseconds);
    const QString plan = testing::writePlan(m_folder.path(), planOf(3));
    TrainerProcess trainer;
    trainer.start({"run", plan, "--data", "builtin:addition", "--steps", "100000", "--run-dir",
                   path(QString("early-%1").arg(milliseconds))});
    QTest::qSleep(milliseconds);
    kill(static_cast<pid_t>(trainer.pid()), SIGINT);
    const int code = trainer.waitForEnd(20000);
    QVERIFY2(!trainer.isRunning(), "the signal was lost");
    QVERIFY2(code == 130 || code == -1,
             qPrintable(QString("%1: %2").arg(code).arg(trainer.errors()))); // -1: ended by the signal itself
    QVERIFY(testing::waitUntilGone(trainer.workerPids()));
}

void RecoveryTest::aMissingRankIsGivenUpInTime_data() {
    QTest::addColumn<QString>("rank");
    QTest::newRow("rank 0 waits for rank 1") << "0";
    QTest::newRow("rank 1 waits for rank 0") << "1";
}

void RecoveryTest::aMissingRankIsGivenUpInTime() {
    QFETCH(const QString, rank);
    const QString plan = testing::writePlan(m_folder.path(), planOf(2));
    TrainerProcess worker({"RANK=" + rank, "WORLD_SIZE=2", "MASTER_PORT=" + QString::number(testing::freePort())});
    QElapsedTimer timer;
    timer.start();
    QCOMPARE(
        worker.run({"worker", plan, "--data", "builtin:addition", "--timeout", "1", "--run-dir", path("alone")}, 40000),
        5);
    QVERIFY2(timer.elapsed() < 20000, qPrintable(QString::number(timer.elapsed())));
    QVERIFY2(worker.errors().contains(rank == "0" ? "connected" : "nobody answers"), qPrintable(worker.errors()));
}

void RecoveryTest::checkpointsAreKeptAsAsked() {
    const QString plan = testing::writePlan(m_folder.path(), planOf(1));
    QCOMPARE(TrainerProcess().run({"run", plan, "--data", "builtin:addition", "--steps", "5", "--checkpoint-every", "1",
                                   "--keep-checkpoints", "3", "--run-dir", path("three")}),
             0);
    QCOMPARE(QDir(path("three/checkpoints")).entryList(QDir::Dirs | QDir::NoDotAndDotDot | QDir::Hidden),
             QStringList({"step-00000003", "step-00000004", "step-00000005"}));
}

QTEST_GUILESS_MAIN(RecoveryTest)
#include "tst_recovery.moc"
