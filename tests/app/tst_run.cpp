// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/run/Trainer.h"
#include "app/tables/RunTables.h"
#include "app/views/RunPage.h"

#include <QSignalSpy>
#include <QTemporaryDir>
#include <QTest>

#include <csignal>

using namespace shardscope;
using namespace shardscope::app;

class RunTest : public QObject {
    Q_OBJECT
private:
    QTemporaryDir m_folder;
    const QString m_fake = QStringLiteral(SHARDSCOPE_SOURCE_DIR "/tests/app/support/fake-trainer.sh");

    TrainSettings settings(const QString& behaviour) {
        TrainSettings settings;
        settings.data = behaviour;
        settings.steps = 5;
        settings.runDirectory = m_folder.filePath(behaviour);
        return settings;
    }
    void runToEnd(Trainer& trainer, const QString& behaviour) {
        trainer.setProgram(m_fake);
        trainer.start({}, settings(behaviour));
        QTRY_COMPARE_WITH_TIMEOUT(trainer.state(), Trainer::State::Ended, 20000);
    }

private Q_SLOTS:
    void aNormalRunEndsDone() {
        Trainer trainer;
        runToEnd(trainer, "normal");
        QCOMPARE(trainer.record().bye()->status, std::string("done"));
        QCOMPARE(trainer.record().steps().size(), std::size_t{5});
        QCOMPARE(trainer.record().workers().size(), std::size_t{2});
        QVERIFY(qAbs(*trainer.record().memorySurplus() - 0.03) < 1e-9);
        QVERIFY(QFile::exists(m_folder.filePath("normal/plan.json")));
        QVERIFY(trainer.record().headline().contains("3.0 % over prediction"));
    }
    void garbageIsCountedAndLogged() {
        Trainer trainer;
        runToEnd(trainer, "garbage");
        QCOMPARE(trainer.record().garbageLines(), 2);
        QCOMPARE(trainer.record().bye()->status, std::string("done"));
    }
    void theLastLineMayLackItsNewline() {
        Trainer trainer;
        runToEnd(trainer, "half");
        QCOMPARE(trainer.record().steps().size(), std::size_t{2});
        QCOMPARE(trainer.record().bye()->status, std::string("failed"));
    }
    void aCrashIsAFailureWithItsRank() {
        Trainer trainer;
        runToEnd(trainer, "crash");
        QVERIFY(trainer.record().failureText().contains("Rank 1 failed in the backward of step 2"));
    }
    void stopLetsTheStepFinish() {
        Trainer trainer;
        trainer.setProgram(m_fake);
        trainer.start({}, settings("stall"));
        QTRY_VERIFY_WITH_TIMEOUT(!trainer.record().steps().empty(), 20000);
        trainer.stop();
        QCOMPARE(trainer.state(), Trainer::State::Stopping);
        QTRY_COMPARE_WITH_TIMEOUT(trainer.state(), Trainer::State::Ended, 20000);
        QCOMPARE(trainer.record().bye()->status, std::string("stopped"));
    }
    void aSecondStopKills() {
        Trainer trainer;
        trainer.setProgram(m_fake);
        trainer.start({}, settings("deaf"));
        QTRY_VERIFY_WITH_TIMEOUT(trainer.record().hello().has_value(), 20000);
        trainer.stop();
        QTest::qWait(100);
        QVERIFY(trainer.isActive());
        trainer.stop();
        QTRY_COMPARE_WITH_TIMEOUT(trainer.state(), Trainer::State::Ended, 20000);
    }
    void aMissingProgramIsAMessage() {
        Trainer trainer;
        QSignalSpy failed(&trainer, &Trainer::failed);
        trainer.setProgram("/nowhere/shardscope-train");
        trainer.start({}, settings("normal"));
        QTRY_COMPARE_WITH_TIMEOUT(failed.count(), 1, 20000);
        QCOMPARE(trainer.state(), Trainer::State::Idle);
        QVERIFY(failed[0][0].toString().contains("/nowhere/shardscope-train"));
    }
    void destroyingEndsTheChild() {
        auto trainer = std::make_unique<Trainer>();
        trainer->setProgram(m_fake);
        trainer->start({}, settings("stall"));
        QTRY_VERIFY_WITH_TIMEOUT(trainer->record().hello().has_value(), 20000);
        const auto pid = static_cast<pid_t>(trainer->record().hello()->pid);
        trainer.reset();
        QTRY_VERIFY(::kill(pid, 0) != 0);
    }
    void attachingReadsARunFolder() {
        QDir().mkpath(m_folder.filePath("old"));
        QFile file(m_folder.filePath("old/run.ndjson"));
        QVERIFY(file.open(QIODevice::WriteOnly));
        file.write(
            "{\"type\":\"step\",\"t\":1,\"rank\":0,\"seq\":1,\"step\":1,\"loss\":2.5,\"learning_rate\":0.001,"
            "\"gradient_norm\":1,\"tokens\":5,"
            "\"step_seconds\":0.1,\"compute_seconds\":0.1,\"exposed_communication_seconds\":0,\"tokens_per_second\":50}"
            "\n"
            "{\"type\":\"bye\",\"t\":2,\"rank\":-1,\"seq\":2,\"status\":\"done\",\"steps\":1,\"reason\":\"\"}\n");
        file.close();
        Trainer trainer;
        trainer.attach(m_folder.filePath("old"));
        QTRY_COMPARE_WITH_TIMEOUT(trainer.state(), Trainer::State::Ended, 5000);
        QCOMPARE(trainer.record().steps().size(), std::size_t{1});
    }
    void aRepeatedStepReplacesTheOlderOne() {
        RunRecord record;
        for (const int step : {1, 2, 3, 2}) {
            contract::StepEvent event;
            event.step = step;
            event.loss = step * 10;
            record.takeEvent({{}, event});
        }
        QCOMPARE(record.steps().size(), std::size_t{2});
    }
    void devicesTellHowBusyTheyAre() {
        RunRecord record;
        QVERIFY(record.devicesText().isEmpty());
        contract::DeviceEvent first, second;
        first.utilization = 0.98;
        first.powerWatts = 640;
        first.temperatureCelsius = 61;
        first.memoryUsed = std::int64_t{40} << 30;
        second.utilization = 0.9;
        second.powerWatts = 660;
        record.takeEvent({{0, 0, 0}, first});
        record.takeEvent({{0, 1, 0}, second});
        QCOMPARE(record.devicesText(), QStringLiteral("94 % busy · 1.3 kW · 61 °C"));
        QCOMPARE(record.workers().front().statusText(), QStringLiteral("98 % busy, 640 W, 61 °C, 40.0 GiB in use"));
        WorkersTable table;
        table.setWorkers(record.workers());
        const QString tip = table.index(0, WorkersTable::DeviceColumn).data(Qt::ToolTipRole).toString();
        QVERIFY2(tip.contains("640 W"), qPrintable(tip));
    }
    void thePageShowsARun() {
        Trainer trainer;
        RunPage page(trainer);
        page.resize(1200, 700);
        page.show();
        runToEnd(trainer, "normal");
        QVERIFY(!page.grab().isNull());
    }
};

QTEST_MAIN(RunTest)
#include "tst_run.moc"
