// SPDX-License-Identifier: GPL-3.0-or-later
#include "e2e/support/TrainerProcess.h"

#include <QtCore/QDir>
#include <QtCore/QDirIterator>
#include <QtCore/QFile>
#include <QtCore/QTemporaryDir>
#include <QtTest/QtTest>

#include <algorithm>
#include <memory>
#include <random>
#include <signal.h>

using namespace shardscope;
using shardscope::testing::PlanRecipe;
using shardscope::testing::TrainerProcess;

namespace {

constexpr int kSteps = 60;
constexpr int kRanks = 3;
constexpr int kPatience = 240000; // milliseconds: every checkpoint waits for a disk that others use too

QByteArray finalWeights(const QString& runDirectory) {
    QFile file(runDirectory + QString("/checkpoints/step-%1/model.safetensors").arg(kSteps, 8, 10, QChar('0')));
    return file.open(QIODevice::ReadOnly) ? file.readAll() : QByteArray();
}

/// Files and folders that only exist while something is being written.
QStringList leftovers(const QString& runDirectory) {
    QStringList found;
    QDirIterator it(runDirectory, QDir::AllEntries | QDir::NoDotAndDotDot | QDir::Hidden, QDirIterator::Subdirectories);
    while (it.hasNext()) {
        const QString path = it.next();
        if (path.endsWith(".partial") || path.contains(".tmp-"))
            found << path;
    }
    return found;
}

} // namespace

/// Workers and coordinators killed at random moments of the same run, during checkpoints and restarts too: it ends with
/// the weights of an undisturbed one. SHARDSCOPE_KILL_RUNS sets how many runs, SHARDSCOPE_KILLS how often each is
/// killed, SHARDSCOPE_KILL_SEED when.
class KillTest : public QObject {
    Q_OBJECT

private Q_SLOTS:
    void initTestCase();
    void killedRunsEndAlike_data();
    void killedRunsEndAlike();
    void cleanupTestCase();

private:
    QStringList options() const {
        return {"run",
                m_plan,
                "--data",
                "builtin:addition",
                "--steps",
                QString::number(kSteps),
                "--checkpoint-every",
                "3",
                "--max-restarts",
                QString::number(m_kills),
                "--run-dir",
                m_runDirectory};
    }
    int below(int n) { return std::uniform_int_distribution<int>(0, n - 1)(m_random); }
    void startTrainer(const QStringList& more = {});
    void waitForStep(std::int64_t step);
    void killWorker();
    void killCoordinator();

    QTemporaryDir m_folder;
    QString m_plan;
    QString m_runDirectory;
    QByteArray m_undisturbed;
    int m_runs = 2;
    int m_kills = 3;
    std::mt19937 m_random{1};
    std::unique_ptr<TrainerProcess> m_trainer;
    std::size_t m_seen = 0; ///< of its events
    int m_workersKilled = 0, m_coordinatorsKilled = 0, m_inCheckpoints = 0;
};

void KillTest::initTestCase() {
    PlanRecipe recipe;
    recipe.ranks = kRanks;
    recipe.placement = [](int index, const std::string&) { return std::string(index % 2 == 0 ? "shard" : "keep"); };
    recipe.coalesce = true;
    m_plan = testing::writePlan(m_folder.path(), testing::makePlan(recipe));
    const auto set = [](const char* name, int& value) {
        bool given = false;
        if (const int wanted = qEnvironmentVariableIntValue(name, &given); given)
            value = wanted;
    };
    set("SHARDSCOPE_KILL_RUNS", m_runs);
    set("SHARDSCOPE_KILLS", m_kills);
    int seed = 1;
    set("SHARDSCOPE_KILL_SEED", seed);
    m_random.seed(static_cast<unsigned>(seed));
    m_runDirectory = m_folder.filePath("undisturbed");
    QCOMPARE(TrainerProcess().run(options(), kPatience), 0);
    m_undisturbed = finalWeights(m_runDirectory);
    QVERIFY(!m_undisturbed.isEmpty());
}

void KillTest::startTrainer(const QStringList& more) {
    m_trainer = std::make_unique<TrainerProcess>();
    m_seen = 0;
    m_trainer->start(options() + more);
}

void KillTest::waitForStep(std::int64_t step) {
    const bool there = m_trainer->waitFor(
        [step](const contract::Event& event) {
            const auto* body = std::get_if<contract::StepEvent>(&event.body);
            return body != nullptr && body->step >= step;
        },
        kPatience, &m_seen);
    QVERIFY2(there, qPrintable(m_trainer->errors()));
}

void KillTest::killWorker() {
    const int rank = below(kRanks);
    const auto pids = m_trainer->workerPids();
    QCOMPARE(pids.size(), std::size_t{kRanks});
    QCOMPARE(::kill(static_cast<pid_t>(pids[static_cast<std::size_t>(rank)]), SIGKILL), 0);
    ++m_workersKilled;
    const contract::FailureEvent* first = nullptr;
    int told = -1;
    QVERIFY(m_trainer->waitFor(
        [&](const contract::Event& event) {
            const auto* failure = std::get_if<contract::FailureEvent>(&event.body);
            first = failure != nullptr && failure->first ? failure : nullptr;
            told = event.header.rank;
            return first != nullptr;
        },
        kPatience, &m_seen));
    QCOMPARE(told, rank);
    QVERIFY2(first->cause.find("signal 9") != std::string::npos, first->cause.c_str());
    m_inCheckpoints += first->phase == "checkpoint" ? 1 : 0;
    QVERIFY(testing::waitUntilGone(pids)); // the others end within seconds
}

void KillTest::killCoordinator() {
    const auto pids = m_trainer->workerPids();
    ++m_coordinatorsKilled;
    ::kill(static_cast<pid_t>(m_trainer->pid()), SIGKILL);
    QCOMPARE(m_trainer->waitForEnd(20000), -1);
    QVERIFY(testing::waitUntilGone(pids)); // no worker outlives it
    startTrainer({"--resume"});
}

void KillTest::killedRunsEndAlike_data() {
    QTest::addColumn<int>("run");
    for (int run = 0; run < m_runs; ++run)
        QTest::addRow("run %d", run) << run;
}

void KillTest::killedRunsEndAlike() {
    QFETCH(const int, run);
    m_runDirectory = m_folder.filePath(QString("run-%1").arg(run));
    startTrainer();
    for (int kill = 0; kill < m_kills && !QTest::currentTestFailed(); ++kill) {
        const bool coordinator = (kill + run) % 2 == 0;
        if (coordinator && below(3) == 0) { // while it starts as well
            QTest::qSleep(below(500));
        } else {
            waitForStep(1 + (kSteps - 15) * kill / m_kills + below(std::max(1, (kSteps - 15) / m_kills)));
            QTest::qSleep(below(20));
        }
        if (QTest::currentTestFailed())
            return;
        coordinator ? killCoordinator() : killWorker();
    }
    if (QTest::currentTestFailed())
        return;
    const auto pids = m_trainer->workerPids();
    QCOMPARE(m_trainer->waitForEnd(kPatience), 0);
    QVERIFY(testing::waitUntilGone(pids));
    QVERIFY(finalWeights(m_runDirectory) == m_undisturbed);
    QCOMPARE(leftovers(m_runDirectory), QStringList());
    m_trainer.reset();
    QDir(m_runDirectory).removeRecursively();
}

void KillTest::cleanupTestCase() {
    m_trainer.reset();
    qInfo("%d workers (%d of them in checkpoints) and %d coordinators killed", m_workersKilled, m_inCheckpoints,
          m_coordinatorsKilled);
    QVERIFY(m_workersKilled + m_coordinatorsKilled >= m_runs * m_kills || QTest::currentTestFailed());
}

QTEST_GUILESS_MAIN(KillTest)
#include "tst_kills.moc"
