// SPDX-License-Identifier: GPL-3.0-or-later
// Runs on other machines and in Slurm clusters: the commands, a stand-in for ssh, an ssh server and a Slurm of our own.
#include "app/run/TrainCheck.h"
#include "app/run/Trainer.h"
#include "app/support/WindowFixture.h"
#include "app/views/RunPage.h"
#include "app/views/TrainCard.h"
#include "support/PlanRecipe.h"
#include "support/PrivateSlurm.h"
#include "support/PrivateSsh.h"

#include <QComboBox>
#include <QLineEdit>
#include <QProcess>
#include <QSignalSpy>
#include <QTest>

#include <csignal>
#include <unistd.h>

using namespace shardscope;
using namespace shardscope::app;

namespace {

constexpr int kLong = 120000;
const QString kTrain = QStringLiteral(SHARDSCOPE_BIN_DIR "/shardscope-train");

/// Two ranks, whose cluster is this machine's cores.
contract::Plan twoRanks() {
    testing::PlanRecipe recipe;
    recipe.ranks = 2;
    recipe.placement = [](int, const std::string&) { return std::string("shard"); };
    contract::Plan plan = testing::makePlan(recipe);
    plan.cluster.isCpu = true;
    plan.target = "cpu";
    return plan;
}

QByteArray contentOf(const QString& path) {
    QFile file(path);
    return file.open(QIODevice::ReadOnly) ? file.readAll() : QByteArray();
}

bool isAlive(std::int64_t pid) {
    return ::kill(static_cast<pid_t>(pid), 0) == 0;
}

} // namespace

class ElsewhereTest : public test::WindowFixture {
    Q_OBJECT
private:
    QByteArray m_path;

    RunTarget ssh(const QString& host, const QString& folder) const {
        RunTarget target;
        target.kind = RunTarget::Kind::Ssh;
        target.host = host;
        target.program = kTrain;
        target.folder = folder;
        return target;
    }
    /// What is called `ssh` from now on.
    void useCommands(const QString& folder) { qputenv("PATH", folder.toLocal8Bit() + ':' + m_path); }
    /// The stand-in, with a home of its own.
    QString useFakeSsh(const QString& name) {
        const QString home = path(name + "-home"), commands = path("commands");
        QDir().mkpath(home);
        QDir().mkpath(commands);
        QFile::link(QStringLiteral(SHARDSCOPE_SOURCE_DIR "/tests/app/support/fake-ssh.sh"), commands + "/ssh");
        qputenv("FAKE_SSH_HOME", home.toLocal8Bit());
        useCommands(commands);
        return home;
    }
    TrainSettings choose(const QString& folder, int steps) const {
        TrainSettings settings;
        settings.steps = steps;
        settings.checkpointEvery = 5;
        settings.runDirectory = path(folder);
        return settings;
    }

private Q_SLOTS:
    void initTestCase() {
        prepare();
        m_path = qgetenv("PATH");
    }
    void cleanup() {
        qputenv("PATH", m_path);
        qunsetenv("FAKE_SSH_HOME");
        qunsetenv("SLURM_CONF");
        m_window.reset();
    }

    void wordsReachTheOtherShellUnchanged_data() {
        QTest::addColumn<QString>("word");
        for (const char* word : {"plain", "", "two words", "it's", "$(touch x)`y`", "a\"b\\c", "-dash", "*", "~",
                                 "a\nb", "ünïcode", "';rm -rf x;'"})
            QTest::newRow(word) << QString::fromUtf8(word);
    }
    void wordsReachTheOtherShellUnchanged() {
        QFETCH(QString, word);
        useFakeSsh("words");
        const RunTarget target = ssh("there", "x");
        const Call call = shellCall(target, QStringLiteral("printf '%s|' ") + shellQuoted(word));
        QProcess process;
        process.start(call.program, call.arguments);
        QVERIFY(process.waitForFinished(20000));
        QCOMPARE(QString::fromUtf8(process.readAllStandardOutput()), word + '|');
    }

    void whatCannotBeIsSaid_data() {
        QTest::addColumn<int>("kind");
        QTest::addColumn<QString>("host");
        QTest::addColumn<QString>("folder");
        QTest::addColumn<QString>("time");
        QTest::addColumn<QString>("partition");
        QTest::addColumn<bool>("isRight");
        QTest::newRow("ssh") << 1 << "me@box"
                             << "runs/a"
                             << "01:00:00"
                             << "" << true;
        QTest::newRow("no host") << 1 << ""
                                 << "runs/a"
                                 << "01:00:00"
                                 << "" << false;
        QTest::newRow("option as host") << 1 << "-oProxyCommand=x"
                                        << "runs/a"
                                        << "01:00:00"
                                        << "" << false;
        QTest::newRow("shell in host") << 1 << "a;b"
                                       << "runs/a"
                                       << "01:00:00"
                                       << "" << false;
        QTest::newRow("address") << 1 << "root@[::1]"
                                 << "runs/a"
                                 << "01:00:00"
                                 << "" << true;
        QTest::newRow("no folder") << 1 << "box"
                                   << ""
                                   << "01:00:00"
                                   << "" << false;
        QTest::newRow("slurm here") << 2 << ""
                                    << "runs/a b"
                                    << "30"
                                    << "gpu,long" << true;
        QTest::newRow("slurm there") << 2 << "login"
                                     << "/scratch/a"
                                     << "2-12:30:00"
                                     << "" << true;
        QTest::newRow("time") << 2 << ""
                              << "runs/a"
                              << "soon"
                              << "" << false;
        QTest::newRow("partition") << 2 << ""
                                   << "runs/a"
                                   << "30"
                                   << "a b" << false;
        QTest::newRow("line in folder") << 2 << ""
                                        << "runs/a\n#SBATCH -n 99"
                                        << "30"
                                        << "" << false;
        QTest::newRow("quote in folder") << 2 << ""
                                         << "runs/\"a"
                                         << "30"
                                         << "" << false;
    }
    void whatCannotBeIsSaid() {
        QFETCH(int, kind);
        QFETCH(QString, host);
        QFETCH(QString, folder);
        QFETCH(QString, time);
        QFETCH(QString, partition);
        QFETCH(bool, isRight);
        RunTarget target;
        target.kind = static_cast<RunTarget::Kind>(kind);
        target.host = host;
        target.folder = folder;
        target.timeLimit = time;
        target.partition = partition;
        QCOMPARE(target.problem().isEmpty(), isRight);
        // A file that says so is as little trusted.
        QFile file(path("target.json"));
        QVERIFY(file.open(QIODevice::WriteOnly));
        file.write(formatDistantRun({target, {}}));
        file.close();
        QCOMPARE(readDistantRun(file.fileName()).has_value(), isRight);
        if (isRight) {
            QCOMPARE(readDistantRun(file.fileName())->target.folder, folder);
            QCOMPARE(readDistantRun(file.fileName())->target.host, host);
        }
    }
    void aForeignFileIsRefused_data() {
        QTest::addColumn<QByteArray>("text");
        QTest::newRow("empty") << QByteArray();
        QTest::newRow("not ours") << QByteArray("{\"format\":\"other\"}");
        QTest::newRow("array") << QByteArray("[1,2]");
        QByteArray good = formatDistantRun({ssh("box", "a"), {}});
        QTest::newRow("kind") << QByteArray(good).replace("\"ssh\"", "\"telnet\"");
        QTest::newRow("job") << QByteArray(good).replace("\"job\": \"\"", "\"job\": \"1; rm -rf x\"");
    }
    void aForeignFileIsRefused() {
        QFETCH(QByteArray, text);
        QDir().mkpath(path("foreign"));
        QFile file(path("foreign/target.json"));
        QVERIFY(file.open(QIODevice::WriteOnly));
        file.write(text);
        file.close();
        Trainer trainer;
        QSignalSpy failed(&trainer, &Trainer::failed);
        trainer.attach(path("foreign"));
        QCOMPARE(failed.count(), 1);
        QVERIFY2(failed[0][0].toString().contains("target.json"), qPrintable(failed[0][0].toString()));
        QCOMPARE(trainer.state(), Trainer::State::Idle);
    }

    void aBatchScriptAsksForTheDevicesOfThePlan() {
        RunTarget target;
        target.kind = RunTarget::Kind::Slurm;
        target.folder = "runs/it's here";
        target.partition = "gpu";
        target.prelude = "module load cuda";
        contract::Cluster cluster;
        cluster.nodes = 2;
        cluster.devicesPerNode = 8;
        const QString script = batchScript(target, choose("x", 7), cluster, false);
        for (const char* line : {"#SBATCH --nodes=2\n", "#SBATCH --ntasks-per-node=8\n", "#SBATCH --gpus-per-node=8\n",
                                 "#SBATCH --partition=gpu\n", "#SBATCH --time=01:00:00\n", "{ module load cuda\n",
                                 "--device cuda", "exec srun shardscope-train worker", "--steps 7"})
            QVERIFY2(script.contains(line), line);
        QProcess check;
        check.start("/bin/sh", {"-n"});
        check.write(script.toUtf8());
        check.closeWriteChannel();
        QVERIFY(check.waitForFinished(20000));
        QVERIFY2(check.exitCode() == 0, check.readAllStandardError().constData());
        cluster.isCpu = true;
        QVERIFY(!batchScript(target, choose("x", 7), cluster, true).contains("gpus"));
        QVERIFY(batchScript(target, choose("x", 7), cluster, true).contains("--resume"));
    }

    void aRunOverSshIsRecordedHereAndResumed() {
        const QString home = useFakeSsh("recorded");
        Trainer trainer;
        trainer.start(twoRanks(), choose("recorded", 8), ssh("there", "runs/a b"));
        QTRY_COMPARE_WITH_TIMEOUT(trainer.state(), Trainer::State::Ended, kLong);
        QVERIFY2(trainer.record().bye()->status == "done", qPrintable(trainer.record().failureText()));
        QCOMPARE(trainer.record().steps().size(), std::size_t{8});
        QCOMPARE(contentOf(path("recorded/run.ndjson")), contentOf(home + "/runs/a b/run.ndjson"));
        QCOMPARE(contentOf(path("recorded/plan.json")), contentOf(home + "/runs/a b/plan.json"));

        // Another window finds it by its folder here, and goes on with it there.
        Trainer later;
        later.attach(path("recorded"));
        QTRY_COMPARE_WITH_TIMEOUT(later.state(), Trainer::State::Ended, kLong);
        QCOMPARE(later.record().steps().size(), std::size_t{8});
        QVERIFY(later.canResume());
        later.resume(12);
        QTRY_COMPARE_WITH_TIMEOUT(later.state(), Trainer::State::Ended, kLong);
        QVERIFY2(later.record().bye()->status == "done", qPrintable(later.record().failureText()));
        QCOMPARE(later.record().steps().size(), std::size_t{12});
        QCOMPARE(contentOf(path("recorded/run.ndjson")), contentOf(home + "/runs/a b/run.ndjson"));
    }
    void stoppingThereSavesAndAgainKills() {
        useFakeSsh("stops");
        for (const bool atOnce : {false, true}) {
            Trainer trainer;
            trainer.start(twoRanks(), choose(atOnce ? "kills" : "stops", 1000000), ssh("there", atOnce ? "k" : "s"));
            QTRY_VERIFY_WITH_TIMEOUT(trainer.record().steps().size() > 3, kLong);
            const std::vector<RunWorker> workers = trainer.record().workers();
            trainer.stop();
            if (atOnce)
                trainer.stop();
            QTRY_COMPARE_WITH_TIMEOUT(trainer.state(), Trainer::State::Ended, kLong);
            QCOMPARE(trainer.record().bye()->status, std::string("stopped"));
            QCOMPARE(trainer.canResume(), !atOnce || trainer.record().checkpoint().has_value());
            for (const RunWorker& worker : workers)
                QTRY_VERIFY_WITH_TIMEOUT(!isAlive(worker.pid), 20000);
        }
    }
    void aBrokenConnectionIsTakenUpAgain() {
        useFakeSsh("breaks");
        Trainer trainer;
        trainer.setPause(50);
        trainer.start(twoRanks(), choose("breaks", 400), ssh("breaks", "b"));
        QTRY_COMPARE_WITH_TIMEOUT(trainer.state(), Trainer::State::Ended, kLong);
        QVERIFY2(trainer.record().bye()->status == "done", qPrintable(trainer.record().failureText()));
        QCOMPARE(trainer.record().steps().size(), std::size_t{400});
        bool isTold = false;
        for (const RunLogLine& line : trainer.record().log())
            isTold |= line.text.contains("broke");
        QVERIFY(isTold);
    }
    void aLostConnectionIsNoEndOfTheRun() {
        useFakeSsh("lost");
        Trainer trainer;
        trainer.setPause(5);
        trainer.start(twoRanks(), choose("lost", 1000000), ssh("breaks-for-good", "l"));
        QTRY_COMPARE_WITH_TIMEOUT(trainer.state(), Trainer::State::Ended, kLong);
        QVERIFY(trainer.isLost());
        QVERIFY(!trainer.canResume());
        QVERIFY2(trainer.record().failureText().contains("may go on"), qPrintable(trainer.record().failureText()));
        const std::int64_t pid = trainer.record().hello()->pid;
        QVERIFY(isAlive(pid));
        ::kill(static_cast<pid_t>(-pid), SIGKILL);
        QTRY_VERIFY_WITH_TIMEOUT(!isAlive(pid), 20000);
    }
    void aRunThereOutlivesTheWindow() {
        useFakeSsh("outlives");
        {
            Trainer trainer;
            trainer.start(twoRanks(), choose("there", 300), ssh("there", "o"));
            QTRY_VERIFY_WITH_TIMEOUT(trainer.record().steps().size() > 3, kLong);
        }
        Trainer later;
        later.attach(path("there"));
        QVERIFY(later.isActive());
        QTRY_COMPARE_WITH_TIMEOUT(later.state(), Trainer::State::Ended, kLong);
        QVERIFY2(later.record().bye()->status == "done", qPrintable(later.record().failureText()));
        QCOMPARE(later.record().steps().size(), std::size_t{300});
    }
    void noConnectionIsSaid() {
        useFakeSsh("nowhere");
        Trainer trainer;
        trainer.start(twoRanks(), choose("nowhere", 5), ssh("nowhere", "n"));
        QTRY_COMPARE_WITH_TIMEOUT(trainer.state(), Trainer::State::Ended, kLong);
        const QString text = trainer.record().failureText();
        QVERIFY2(text.contains("no connection to nowhere") && text.contains("Could not resolve"), qPrintable(text));
    }
    void aMissingProgramThereIsSaid() {
        useFakeSsh("missing");
        RunTarget target = ssh("there", "m");
        target.program = "no-such-program";
        Trainer trainer;
        trainer.start(twoRanks(), choose("missing", 5), target);
        QTRY_COMPARE_WITH_TIMEOUT(trainer.state(), Trainer::State::Ended, kLong);
        QVERIFY2(trainer.record().failureText().contains("no-such-program"),
                 qPrintable(trainer.record().failureText()));
    }

    void overAnSshServer() {
        const testing::PrivateSsh server(path("sshd"));
        if (!server.isUp())
            QSKIP(qPrintable(server.error()));
        useCommands(server.commandFolder());
        Trainer trainer;
        trainer.start(twoRanks(), choose("real", 1000000), ssh("private", path("real there")));
        QTRY_VERIFY2_WITH_TIMEOUT(trainer.record().steps().size() > 20 || !trainer.isActive(),
                                  qPrintable(trainer.record().failureText()), kLong);
        trainer.stop();
        QTRY_COMPARE_WITH_TIMEOUT(trainer.state(), Trainer::State::Ended, kLong);
        QVERIFY2(trainer.record().bye()->status == "stopped", qPrintable(trainer.record().failureText()));
        QVERIFY(trainer.canResume());
        const std::int64_t reached = trainer.record().steps().back().step;
        trainer.resume(reached + 5);
        QTRY_COMPARE_WITH_TIMEOUT(trainer.state(), Trainer::State::Ended, kLong);
        QVERIFY2(trainer.record().bye()->status == "done", qPrintable(trainer.record().failureText()));
        QCOMPARE(trainer.record().steps().back().step, reached + 5);
        QCOMPARE(contentOf(path("real/run.ndjson")), contentOf(path("real there/run.ndjson")));
    }

    void inASlurmCluster() {
        const QStringList system{"/usr/sbin", "/usr/local/sbin"};
        const QString controller = QStandardPaths::findExecutable("slurmctld", system);
        const QString node = QStandardPaths::findExecutable("slurmd", system);
        if (controller.isEmpty() || node.isEmpty() || QStandardPaths::findExecutable("sbatch").isEmpty())
            QSKIP("Slurm is not installed (Debian: slurm-client slurmctld slurmd)");
        if (::geteuid() != 0)
            QSKIP("a Slurm node of our own needs root");
        const testing::PrivateSlurm slurm(controller, node, path("slurm"));
        QVERIFY2(slurm.isUp(), qPrintable(slurm.log()));
        qputenv("SLURM_CONF", slurm.configuration().toLocal8Bit());
        RunTarget target;
        target.kind = RunTarget::Kind::Slurm;
        target.program = kTrain;
        target.timeLimit = "10";
        contract::Plan plan = twoRanks();
        plan.cluster.nodes = 1;
        plan.cluster.devicesPerNode = 1; // a node of one core is enough
        {
            testing::PlanRecipe recipe;
            plan = testing::makePlan(recipe);
            plan.cluster.isCpu = true;
        }
        const auto start = [&](Trainer& trainer, const QString& name, int steps) {
            target.folder = path("job " + name);
            trainer.start(plan, choose(name, steps), target);
        };
        Trainer trainer;
        start(trainer, "long", 1000000);
        QTRY_VERIFY2_WITH_TIMEOUT(trainer.record().steps().size() > 20 || !trainer.isActive(),
                                  qPrintable(trainer.record().failureText()), kLong);
        // While it holds the node, others wait, and can be given up.
        std::vector<std::unique_ptr<Trainer>> waiting;
        for (int i = 0; i < sysconf(_SC_NPROCESSORS_ONLN); ++i) {
            waiting.push_back(std::make_unique<Trainer>());
            start(*waiting.back(), "waits" + QString::number(i), 1000000);
        }
        Trainer* last = waiting.back().get();
        QTRY_VERIFY2_WITH_TIMEOUT(last->record().headline().contains("pending"),
                                  qPrintable(last->record().headline() + last->record().failureText()), kLong);
        for (auto& other : waiting) {
            other->stop();
            other->stop();
        }
        for (auto& other : waiting)
            QTRY_COMPARE_WITH_TIMEOUT(other->state(), Trainer::State::Ended, kLong);

        trainer.stop();
        QTRY_COMPARE_WITH_TIMEOUT(trainer.state(), Trainer::State::Ended, kLong);
        QVERIFY2(trainer.record().bye()->status == "stopped", qPrintable(trainer.record().failureText()));
        QVERIFY(trainer.canResume());
        const std::int64_t reached = trainer.record().steps().back().step;
        Trainer later; // another window
        later.attach(path("long"));
        QTRY_COMPARE_WITH_TIMEOUT(later.state(), Trainer::State::Ended, kLong);
        later.resume(reached + 5);
        QTRY_COMPARE_WITH_TIMEOUT(later.state(), Trainer::State::Ended, kLong);
        QVERIFY2(later.record().bye()->status == "done", qPrintable(later.record().failureText()));
        QCOMPARE(later.record().steps().back().step, reached + 5);
    }

    void theCardOffersOtherMachines() {
        renew();
        useFakeSsh("card");
        QVERIFY(open("gpt2", "8x-titan-pcie3"));
        QVERIFY(!checkTraining(document().answer()).isPossible());
        QVERIFY(checkTraining(document().answer()).isElsewhere);
        QPushButton* link = button("Elsewhere");
        QVERIFY(link);
        QTest::mouseClick(link, Qt::LeftButton);
        TrainCard& card = m_window->trainCard();
        QTRY_VERIFY(card.isVisible());
        QCOMPARE(card.target().kind, RunTarget::Kind::Ssh);
        // Without a machine nothing starts, and the card says why.
        QTest::keyClick(QApplication::focusWidget(), Qt::Key_Return);
        QVERIFY(card.isVisible());
        QVERIFY(card.findChild<QLabel*>("problem")->isVisible());
        type("there");
        QCOMPARE(card.target().host, QString("there"));
        QVERIFY(card.target().folder.startsWith("shardscope-runs/gpt2-"));
        QTest::keyClick(QApplication::focusWidget(), Qt::Key_Escape);
        QVERIFY(!card.isVisible());
        // This machine has none of these cards.
        m_window->openTrainCard();
        QVERIFY(!card.isVisible());
    }
};

QTEST_MAIN(ElsewhereTest)
#include "tst_elsewhere.moc"
