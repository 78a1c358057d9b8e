// SPDX-License-Identifier: GPL-3.0-or-later
#include "e2e/support/TrainerProcess.h"

#include <QtCore/QDir>
#include <QtCore/QDirIterator>
#include <QtCore/QFile>
#include <QtCore/QTemporaryDir>
#include <QtTest/QtTest>

#include <random>
#include <signal.h>

using namespace shardscope;
using shardscope::testing::PlanRecipe;
using shardscope::testing::TrainerProcess;

namespace {

constexpr int kSteps = 60;
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

/// Kills at random moments, during checkpoints too: the run ends with the weights of an undisturbed one.
/// SHARDSCOPE_KILLS sets how many workers and coordinators are killed (many need QTEST_FUNCTION_TIMEOUT too, in
/// milliseconds); SHARDSCOPE_KILL_SEED when.
class KillTest : public QObject {
    Q_OBJECT

private Q_SLOTS:
    void initTestCase();
    void killedWorkersAreReplaced();
    void killedCoordinatorsAreResumed();

private:
    QStringList options(const QString& name) const {
        return {"run",
                m_plan,
                "--data",
                "builtin:addition",
                "--steps",
                QString::number(kSteps),
                "--checkpoint-every",
                "3",
                "--run-dir",
                m_folder.filePath(name)};
    }
    /// Waits until the run is somewhere between its first step and its last.
    bool waitSomewhere(TrainerProcess& trainer) {
        const auto step = std::uniform_int_distribution<std::int64_t>(1, kSteps - 15)(m_random);
        const bool there = trainer.waitFor(
            [step](const contract::Event& event) {
                const auto* body = std::get_if<contract::StepEvent>(&event.body);
                return body != nullptr && body->step >= step;
            },
            kPatience);
        QTest::qSleep(std::uniform_int_distribution<int>(0, 20)(m_random));
        return there;
    }
    QTemporaryDir m_folder;
    QString m_plan;
    QByteArray m_undisturbed;
    int m_kills = 3;
    std::mt19937 m_random{1};
};

void KillTest::initTestCase() {
    PlanRecipe recipe;
    recipe.ranks = 3;
    recipe.placement = [](int index, const std::string&) { return std::string(index % 2 == 0 ? "shard" : "keep"); };
    recipe.coalesce = true;
    m_plan = testing::writePlan(m_folder.path(), testing::makePlan(recipe));
    bool given = false;
    if (const int kills = qEnvironmentVariableIntValue("SHARDSCOPE_KILLS", &given); given)
        m_kills = kills;
    if (const int seed = qEnvironmentVariableIntValue("SHARDSCOPE_KILL_SEED", &given); given)
        m_random.seed(static_cast<unsigned>(seed));
    QCOMPARE(TrainerProcess().run(options("undisturbed"), kPatience), 0);
    m_undisturbed = finalWeights(m_folder.filePath("undisturbed"));
    QVERIFY(!m_undisturbed.isEmpty());
}

void KillTest::killedWorkersAreReplaced() {
    for (int kill = 0; kill < m_kills; ++kill) {
        const QString name = QString("worker-%1").arg(kill);
        TrainerProcess trainer;
        trainer.start(options(name) + QStringList{"--max-restarts", "1"});
        QVERIFY(waitSomewhere(trainer));
        const int rank = std::uniform_int_distribution<int>(0, 2)(m_random);
        const auto pids = trainer.workerPids();
        QCOMPARE(pids.size(), std::size_t{3});
        QCOMPARE(::kill(static_cast<pid_t>(pids[static_cast<std::size_t>(rank)]), SIGKILL), 0);
        QCOMPARE(trainer.waitForEnd(kPatience), 0);
        QVERIFY(testing::waitUntilGone(pids));
        for (const contract::Event& event : trainer.events())
            if (const auto* failure = std::get_if<contract::FailureEvent>(&event.body); failure && failure->first) {
                QCOMPARE(event.header.rank, rank);
                QVERIFY2(failure->cause.find("signal 9") != std::string::npos, failure->cause.c_str());
            }
        QVERIFY2(finalWeights(m_folder.filePath(name)) == m_undisturbed, qPrintable(name));
        QCOMPARE(leftovers(m_folder.filePath(name)), QStringList());
    }
}

void KillTest::killedCoordinatorsAreResumed() {
    for (int kill = 0; kill < m_kills; ++kill) {
        const QString name = QString("coordinator-%1").arg(kill);
        std::vector<qint64> pids;
        {
            TrainerProcess trainer;
            trainer.start(options(name));
            QVERIFY(waitSomewhere(trainer));
            pids = trainer.workerPids();
            ::kill(static_cast<pid_t>(trainer.pid()), SIGKILL);
            QCOMPARE(trainer.waitForEnd(20000), -1);
        }
        QVERIFY(testing::waitUntilGone(pids)); // no worker outlives it
        QCOMPARE(TrainerProcess().run(options(name) + QStringList{"--resume"}, kPatience), 0);
        QVERIFY2(finalWeights(m_folder.filePath(name)) == m_undisturbed, qPrintable(name));
        QCOMPARE(leftovers(m_folder.filePath(name)), QStringList());
    }
}

QTEST_GUILESS_MAIN(KillTest)
#include "tst_kills.moc"
