// SPDX-License-Identifier: GPL-3.0-or-later
#include "e2e/support/TrainerProcess.h"

#include <QtCore/QProcessEnvironment>
#include <QtCore/QStandardPaths>
#include <QtCore/QTemporaryDir>
#include <QtTest/QtTest>

using namespace shardscope;
using shardscope::testing::PlanRecipe;

/// The same worker under other people's launchers, each of which says in its own variables who is who.
class LauncherTest : public QObject {
    Q_OBJECT

private Q_SLOTS:
    void torchrun();
    void mpirun();
    void srun();

private:
    /// Starts `launcher` with its arguments, then the worker; checks the steps that rank 0 tells of.
    void train(const QString& launcher, const QStringList& arguments, const QString& name);
    QTemporaryDir m_folder;
};

void LauncherTest::train(const QString& launcher, const QStringList& arguments, const QString& name) {
    PlanRecipe recipe;
    recipe.ranks = 2;
    recipe.placement = [](int, const std::string&) { return std::string("shard"); };
    const QString plan = testing::writePlan(m_folder.path(), testing::makePlan(recipe));
    QProcess process;
    QProcessEnvironment environment = QProcessEnvironment::systemEnvironment();
    if (name != "torchrun") { // which hands out its own
        environment.insert("MASTER_ADDR", "127.0.0.1");
        environment.insert("MASTER_PORT", QString::number(testing::freePort()));
    }
    process.setProcessEnvironment(environment);
    process.start(launcher,
                  arguments + QStringList{SHARDSCOPE_BIN_DIR "/shardscope-train", "worker", plan, "--data",
                                          "builtin:addition", "--steps", "5", "--run-dir", m_folder.filePath(name)});
    QVERIFY2(process.waitForFinished(240000), qPrintable(process.errorString()));
    const QByteArray output = process.readAllStandardOutput();
    QVERIFY2(process.exitCode() == 0, process.readAllStandardError().constData());
    int steps = 0;
    for (const QByteArray& line : output.split('\n'))
        if (const auto event = contract::parseEvent(line.toStdString());
            event && std::holds_alternative<contract::StepEvent>(event->body))
            ++steps;
    QCOMPARE(steps, 5);
}

void LauncherTest::torchrun() {
    const QString python = qEnvironmentVariable("SHARDSCOPE_PYTHON", "python3");
    QProcess probe;
    probe.start(python, {"-c", "import torch.distributed.run"});
    if (!probe.waitForFinished(240000) || probe.exitCode() != 0)
        QSKIP("PyTorch is not installed for python3 (SHARDSCOPE_PYTHON names another one)");
    train(python,
          {"-m", "torch.distributed.run", "--no-python", "--nproc-per-node", "2", "--master-addr", "127.0.0.1",
           "--master-port", QString::number(testing::freePort())},
          "torchrun");
}

void LauncherTest::mpirun() {
    const QString launcher = QStandardPaths::findExecutable("mpirun");
    if (launcher.isEmpty())
        QSKIP("mpirun is not installed (Debian: openmpi-bin)");
    train(launcher, {"--allow-run-as-root", "--oversubscribe", "-n", "2"}, "mpirun");
}

void LauncherTest::srun() {
    const QString launcher = QStandardPaths::findExecutable("srun");
    if (launcher.isEmpty())
        QSKIP("srun is not installed (Debian: slurm-wlm)");
    QProcess probe;
    probe.start(launcher, {"--immediate=5", "-n", "1", "true"});
    if (!probe.waitForFinished(30000) || probe.exitCode() != 0)
        QSKIP("srun is installed, but no Slurm controller answers");
    train(launcher, {"-n", "2", "--overcommit"}, "srun");
}

QTEST_GUILESS_MAIN(LauncherTest)
#include "tst_launchers.moc"
