// SPDX-License-Identifier: GPL-3.0-or-later
// Runs in the window: closing, failing, running out of memory, measuring, and the real trainer.
#include "app/support/WindowFixture.h"
#include "app/views/HelpPage.h"
#include "app/views/MessageStrip.h"
#include "app/views/OomCard.h"
#include "app/views/RunPage.h"
#include "app/views/ValidationView.h"
#include "app/window/MainWindow.h"
#include "runtime/contract/Bytes.h"

#include <QAbstractItemModelTester>
#include <QClipboard>
#include <QPushButton>
#include <QSignalSpy>
#include <QTest>

#include <csignal>

using namespace shardscope;
using namespace shardscope::app;

class RunsTest : public test::WindowFixture {
    Q_OBJECT
private Q_SLOTS:
    void initTestCase() { prepare(); }
    void init() { renew(); }
    void cleanup() { m_window.reset(); }

    void closingNeverWaits_data() {
        QTest::addColumn<int>("moment");
        QTest::newRow("loading") << 0;
        QTest::newRow("planning") << 1;
        QTest::newRow("simulating") << 2;
        QTest::newRow("exporting") << 3;
        QTest::newRow("measuring") << 4;
        QTest::newRow("reproducing tables") << 5;
    }
    void closingNeverWaits() {
        QFETCH(int, moment);
        if (moment > 1)
            QVERIFY(open("gpt2-xl"));
        if (moment == 0)
            document().open("llama-3.1-405b", "64x8-h100", 0);
        else if (moment == 1) {
            document().open("llama-3.1-70b", "16x8-h100", 0);
            QTest::qWait(60);
        } else if (moment == 2) {
            document().setBudget(9 * contract::kGiB);
            QTRY_VERIFY_WITH_TIMEOUT(document().answer()->choices == document().choicesPointer(), 60000);
        } else if (moment == 3) {
            m_window->exportEverything(m_window->exportContent(), path("closing"));
        } else if (moment == 4) {
            QVERIFY(QFile::copy(QStringLiteral(SHARDSCOPE_SOURCE_DIR "/tests/app/support/fake-measure.sh"),
                                path("slow.sh")));
            m_window->measuring().setProgram(path("slow.sh"));
            m_window->toggleMeasuring();
            QVERIFY(m_window->measuring().isRunning());
        } else {
            m_window->showHelp(HelpPage::Published);
        }
        // No bound on seconds: a close that waits for its work never comes back within the test's own limit.
        m_window->close();
        m_window.reset();
        QVERIFY(!m_window);
    }
    void closingAsksWhenARunGoesOn() {
        m_window->trainer().setProgram(m_fake);
        train(settings("stall", "asks"));
        QTRY_VERIFY_WITH_TIMEOUT(!m_window->trainer().record().steps().empty(), 20000);
        m_window->close();
        QVERIFY(m_window->isVisible());
        QVERIFY(button("Leave it running") && button("Do not close"));
        QTest::mouseClick(button("Stop and save"), Qt::LeftButton);
        QTRY_VERIFY_WITH_TIMEOUT(!m_window->isVisible(), 20000);
        QCOMPARE(m_window->trainer().record().bye()->status, std::string("stopped"));
    }
    void aRunOutlivesTheWindowAndIsAttachedAgain() {
        m_window->trainer().setProgram(m_fake);
        train(settings("stall-to-file", "outlives"));
        QTRY_VERIFY_WITH_TIMEOUT(!m_window->trainer().record().steps().empty(), 20000);
        const auto pid = static_cast<pid_t>(m_window->trainer().record().hello()->pid);
        m_window->close();
        QTest::mouseClick(button("Leave it running"), Qt::LeftButton);
        m_window.reset();
        QCOMPARE(::kill(pid, 0), 0);
        renew();
        m_window->trainer().attach(path("outlives"));
        m_window->showMode(1);
        QTRY_VERIFY_WITH_TIMEOUT(!m_window->trainer().record().steps().empty(), 10000);
        QVERIFY(m_window->trainer().isActive() && !m_window->trainer().isOwn());
        m_window->trainer().stop();
        QTRY_COMPARE_WITH_TIMEOUT(m_window->trainer().state(), Trainer::State::Ended, 20000);
        QTRY_VERIFY_WITH_TIMEOUT(::kill(pid, 0) != 0, 10000);
    }
    void failuresComeToTheWindow_data() {
        QTest::addColumn<QString>("behaviour");
        QTest::addColumn<QString>("words");
        QTest::newRow("crash") << "crash"
                               << "Rank 1 failed";
        QTest::newRow("half a last line") << "half"
                                          << "ended with code 0";
        QTest::newRow("nothing at all") << "silent"
                                        << "code 4";
    }
    void failuresComeToTheWindow() {
        QFETCH(QString, behaviour);
        QFETCH(QString, words);
        m_window->trainer().setProgram(m_fake);
        train(settings(behaviour, behaviour));
        QTRY_COMPARE_WITH_TIMEOUT(m_window->trainer().state(), Trainer::State::Ended, 20000);
        QTRY_VERIFY2(m_window->messages().text().contains(words), qPrintable(m_window->messages().text()));
        m_window->trainer().setProgram(path("missing/shardscope-train"));
        train(settings("normal", "missing"));
        QTRY_VERIFY_WITH_TIMEOUT(m_window->messages().text().contains("missing/shardscope-train"), 20000);
    }
    void anOutOfMemoryRunOffersMoreReserve() {
        QVERIFY(open("demo-small", "local"));
        m_window->trainer().setProgram(m_fake);
        train(settings("crash", "oom-run"));
        QTRY_COMPARE_WITH_TIMEOUT(m_window->trainer().state(), Trainer::State::Ended, 20000);
        QTRY_VERIFY(button("more in reserve"));
        const std::int64_t before = document().choices().cluster.reserveBytes();
        QTest::mouseClick(button("more in reserve"), Qt::LeftButton);
        QVERIFY(document().choices().cluster.reserveBytes() > before);
        QVERIFY(settle());
        QCOMPARE(document().answer()->plan->ledger[contract::Category::Context],
                 document().choices().cluster.reserveBytes());
        document().undoStack().undo();
        QCOMPARE(document().choices().cluster.reserveBytes(), before);
    }
    void aPastedMessageIsLaidAgainstThePlan() {
        QVERIFY(open("gpt2-xl", "8x-titan-pcie3", 16 * contract::kGiB));
        QGuiApplication::clipboard()->setText("nothing of interest");
        QTest::keyClick(m_window.get(), Qt::Key_V, Qt::ControlModifier);
        QTest::qWait(50);
        QVERIFY(!m_window->oomCard().isVisible());
        QGuiApplication::clipboard()->setText(
            "CUDA out of memory. Tried to allocate 1.96 GiB. GPU 0 has a total capacity of 15.78 GiB of which 0.10 GiB "
            "is "
            "free. Including non-PyTorch memory, this process has 15.60 GiB memory in use. Of the allocated memory "
            "13.00 "
            "GiB is allocated by PyTorch, and 0.50 GiB is reserved by PyTorch but unallocated.");
        QTest::keyClick(m_window.get(), Qt::Key_V, Qt::ControlModifier);
        QTRY_VERIFY_WITH_TIMEOUT(m_window->oomCard().isVisible(), 20000);
        const std::int64_t surplus = m_window->oomCard().comparison().surplusBytes;
        QVERIFY(surplus > 0);
        const std::int64_t before = document().choices().cluster.reserveBytes();
        QTest::mouseClick(button("more in reserve"), Qt::LeftButton);
        QCOMPARE(document().choices().cluster.reserveBytes(), before + surplus);
        QTest::keyClick(m_window.get(), Qt::Key_V, Qt::ControlModifier);
        QTRY_VERIFY_WITH_TIMEOUT(m_window->oomCard().isVisible(), 20000);
        QTest::mouseClick(button("Plan for 15.8 GiB"), Qt::LeftButton);
        QCOMPARE(document().choices().cardBytes(), std::llround(15.78 * 1024 * 1024 * 1024));
        QVERIFY(settle());
    }
    void helpAndPublishedTables() {
        m_window->showHelp(HelpPage::Using);
        QVERIFY(m_window->helpPage().text(HelpPage::Using).contains("Drag the budget"));
        QVERIFY(m_window->helpPage().text(HelpPage::Words).contains("ZeRO-3"));
        const QString keys = m_window->helpPage().text(HelpPage::Keys);
        for (const char* part : {"Ctrl+K", "Page Up", "Ctrl+E, M", "replicate, keep or shard"})
            QVERIFY2(keys.contains(part), part);
        m_window->showHelp(HelpPage::Published);
        ValidationView& view = m_window->helpPage().validation();
        const QAbstractItemModelTester summary(&view.summary(), QAbstractItemModelTester::FailureReportingMode::QtTest);
        const QAbstractItemModelTester rows(&view.rows(), QAbstractItemModelTester::FailureReportingMode::QtTest);
        QTRY_VERIFY_WITH_TIMEOUT(view.tables(), 60000);
        QCOMPARE(view.summary().rowCount(), static_cast<int>(view.tables()->size()));
        QTRY_VERIFY(view.rows().rowCount() > 0);
        QTest::keyClick(&m_window->helpPage(), Qt::Key_Escape);
        QVERIFY(!m_window->helpPage().isVisible());
    }
    void measuringThisMachine() {
        const QString script = QStringLiteral(SHARDSCOPE_SOURCE_DIR "/tests/app/support/fake-measure.sh");
        QVERIFY(open("demo-small", "local"));
        QSignalSpy finished(&m_window->measuring(), &Measuring::finished),
            failed(&m_window->measuring(), &Measuring::failed);
        m_window->measuring().setProgram(script);
        QTest::keyClick(m_window.get(), Qt::Key_M, Qt::ControlModifier);
        QTRY_COMPARE_WITH_TIMEOUT(finished.count(), 1, 20000);
        QVERIFY(QFile::copy(script, path("broken-measure.sh")));
        m_window->measuring().setProgram(path("broken-measure.sh"));
        m_window->toggleMeasuring();
        QTRY_COMPARE_WITH_TIMEOUT(failed.count(), 1, 20000);
        QVERIFY(failed[0][0].toString().contains("no core to measure on"));
        QVERIFY(QFile::copy(script, path("slow-measure.sh")));
        m_window->measuring().setProgram(path("slow-measure.sh"));
        m_window->toggleMeasuring();
        QVERIFY(m_window->measuring().isRunning());
        m_window->toggleMeasuring();
        QTRY_VERIFY_WITH_TIMEOUT(!m_window->measuring().isRunning(), 20000);
        QCOMPARE(failed.count(), 1);
        m_window->measuring().setProgram("/nowhere/shardscope-train");
        m_window->toggleMeasuring();
        QTRY_COMPARE_WITH_TIMEOUT(failed.count(), 2, 20000);
        QVERIFY(!m_window->measuring().isRunning());
    }
    /// Plans the demo for two workers, trains it, stops, resumes to the end; the loss falls.
    void theRealTrainer() {
        const QString program = QStringLiteral(SHARDSCOPE_BIN_DIR "/shardscope-train");
        if (!QFile::exists(program))
            QSKIP("shardscope-train is not built");
        document().open("demo-small", "local", 0, 4);
        QTRY_VERIFY_WITH_TIMEOUT(document().isOpen(), 20000);
        QVERIFY(settle());
        m_window->trainer().setProgram(program);
        TrainSettings chosen = settings("builtin:addition", "real");
        chosen.steps = 60;
        chosen.learningRate = 1e-3;
        chosen.checkpointEvery = 5;
        m_window->trainer().start(planner::emitPlan(*document().answer()->plan, "test"), chosen);
        QTRY_VERIFY_WITH_TIMEOUT(m_window->trainer().record().checkpoint().has_value(), 240000);
        m_window->trainer().stop();
        QTRY_COMPARE_WITH_TIMEOUT(m_window->trainer().state(), Trainer::State::Ended, 60000);
        QCOMPARE(m_window->trainer().record().bye()->status, std::string("stopped"));
        const std::size_t before = m_window->trainer().record().steps().size();
        m_window->showMode(1);
        QTRY_VERIFY(m_window->runPage().resumeButton().isVisible());
        QTest::mouseClick(&m_window->runPage().resumeButton(), Qt::LeftButton);
        QVERIFY(m_window->trainer().isActive());
        QTRY_COMPARE_WITH_TIMEOUT(m_window->trainer().state(), Trainer::State::Ended, 240000);
        const RunRecord& record = m_window->trainer().record();
        QVERIFY2(record.bye()->status == "done", record.bye()->reason.c_str());
        QVERIFY(record.steps().size() > before);
        QCOMPARE(record.steps().back().step, 60);
        double early = 0, late = 0;
        for (std::size_t i = 0; i < 5; ++i) {
            early += record.steps()[i].loss;
            late += record.steps()[record.steps().size() - 1 - i].loss;
        }
        QVERIFY2(late < 0.9 * early, qPrintable(QStringLiteral("%1 to %2").arg(early / 5).arg(late / 5)));
        QVERIFY(record.memorySurplus().has_value());
    }
};

QTEST_MAIN(RunsTest)
#include "tst_runs.moc"
