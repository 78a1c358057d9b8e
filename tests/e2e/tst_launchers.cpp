// SPDX-License-Identifier: GPL-3.0-or-later
#include "e2e/support/TrainerProcess.h"
#include "e2e/support/TwoHosts.h"
#include "support/PrivateSlurm.h"

#include <QtCore/QProcessEnvironment>
#include <QtCore/QStandardPaths>
#include <QtCore/QTemporaryDir>
#include <QtTest/QtTest>

#include <unistd.h>

using namespace shardscope;
using shardscope::testing::PlanRecipe;

/// The same worker under other people's launchers, each of which says in its own variables who is who.
class LauncherTest : public QObject {
    Q_OBJECT

private Q_SLOTS:
    void torchrun();
    void mpirun();
    void srun();
    void twoHosts();

private:
    /// The plan that all launchers run, sharded over two ranks.
    QString plan() const;
    static QStringList worker(const QString& plan, const QString& runFolder);
    /// Steps that rank 0 tells of.
    static int stepsIn(const QByteArray& output);
    /// Starts `launcher` with its arguments, then the worker; checks the steps that rank 0 tells of.
    void train(const QString& launcher, const QStringList& arguments, const QString& name);
    QTemporaryDir m_folder;
};

QString LauncherTest::plan() const {
    PlanRecipe recipe;
    recipe.ranks = 2;
    recipe.placement = [](int, const std::string&) { return std::string("shard"); };
    return testing::writePlan(m_folder.path(), testing::makePlan(recipe));
}

QStringList LauncherTest::worker(const QString& plan, const QString& runFolder) {
    return {SHARDSCOPE_BIN_DIR "/shardscope-train",
            "worker",
            plan,
            "--data",
            "builtin:addition",
            "--steps",
            "5",
            "--run-dir",
            runFolder};
}

int LauncherTest::stepsIn(const QByteArray& output) {
    int steps = 0;
    for (const QByteArray& line : output.split('\n'))
        if (const auto event = contract::parseEvent(line.toStdString());
            event && std::holds_alternative<contract::StepEvent>(event->body))
            ++steps;
    return steps;
}

void LauncherTest::train(const QString& launcher, const QStringList& arguments, const QString& name) {
    QProcess process;
    QProcessEnvironment environment = QProcessEnvironment::systemEnvironment();
    if (name != "torchrun") { // which hands out its own
        environment.insert("MASTER_ADDR", "127.0.0.1");
        environment.insert("MASTER_PORT", QString::number(testing::freePort()));
    }
    process.setProcessEnvironment(environment);
    process.start(launcher, arguments + worker(plan(), m_folder.filePath(name)));
    QVERIFY2(process.waitForFinished(240000), qPrintable(process.errorString()));
    QVERIFY2(process.exitCode() == 0, process.readAllStandardError().constData());
    QCOMPARE(stepsIn(process.readAllStandardOutput()), 5);
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

/// Under a Slurm of our own: controller and node are this machine, on loopback and free ports, without a password
/// service.
void LauncherTest::srun() {
    const QString launcher = QStandardPaths::findExecutable("srun");
    const QStringList system{"/usr/sbin", "/usr/local/sbin"};
    const QString controller = QStandardPaths::findExecutable("slurmctld", system);
    const QString node = QStandardPaths::findExecutable("slurmd", system);
    if (launcher.isEmpty() || controller.isEmpty() || node.isEmpty())
        QSKIP("Slurm is not installed (Debian: slurm-client slurmctld slurmd)");
    if (::geteuid() != 0)
        QSKIP("a Slurm node of our own needs root");
    const testing::PrivateSlurm slurm(controller, node, m_folder.filePath("slurm"));
    QVERIFY2(slurm.isUp(), qPrintable(slurm.log()));
    qputenv("SLURM_CONF", slurm.configuration().toLocal8Bit());
    train(launcher, {"--immediate=60", "-n", "2", "--overcommit"}, "srun");
    qunsetenv("SLURM_CONF");
}

/// Two network namespaces are two hosts: each has its own loopback, and only the link between them is shared.
void LauncherTest::twoHosts() {
    const QString ip = QStandardPaths::findExecutable("ip", {"/usr/sbin", "/sbin", "/usr/bin"});
    if (ip.isEmpty())
        QSKIP("ip is not installed (Debian: iproute2)");
    const testing::TwoHosts hosts(ip);
    if (!hosts.areUp())
        QSKIP(qPrintable("network namespaces cannot be made here: " + hosts.error()));
    QProcess workers[2];
    for (int rank = 0; rank < 2; ++rank) {
        QProcessEnvironment environment = QProcessEnvironment::systemEnvironment();
        environment.insert("RANK", QString::number(rank));
        environment.insert("WORLD_SIZE", "2");
        environment.insert("MASTER_ADDR", hosts.address(0));
        environment.insert("MASTER_PORT", "29500"); // the host is ours alone
        workers[rank].setProcessEnvironment(environment);
        workers[rank].start(ip, QStringList{"netns", "exec", hosts.name(rank)} +
                                    worker(plan(), m_folder.filePath("hosts")));
    }
    for (QProcess& process : workers) {
        QVERIFY2(process.waitForFinished(240000), qPrintable(process.errorString()));
        QVERIFY2(process.exitCode() == 0, process.readAllStandardError().constData());
    }
    QCOMPARE(stepsIn(workers[0].readAllStandardOutput()), 5);
}

QTEST_GUILESS_MAIN(LauncherTest)
#include "tst_launchers.moc"
