// SPDX-License-Identifier: GPL-3.0-or-later
// What the window learns from a traced step: measured lanes under simulated ones, and rates for the cluster.
#include "app/support/WindowFixture.h"
#include "app/tables/RunTables.h"
#include "app/views/MessageStrip.h"
#include "app/views/PlanPage.h"
#include "app/views/PlanTabs.h"
#include "app/views/RunPage.h"
#include "app/views/TimelineView.h"
#include "app/window/MainWindow.h"
#include "runtime/contract/Bytes.h"

#include <QAbstractItemModelTester>
#include <QTest>

using namespace shardscope;
using namespace shardscope::app;

namespace {

contract::Event operatorEvent(int rank, double start, double end, const char* name = "wte") {
    return {{0, rank, 0}, contract::OperatorEvent{name, "forward", "compute", start, end}};
}

contract::Event stepEvent(int step) {
    contract::StepEvent event;
    event.step = step;
    return {{0, 0, 0}, event};
}

} // namespace

class ReviewTest : public test::WindowFixture {
    Q_OBJECT
private:
    bool openDemo() {
        document().open("demo-small", "local", 0, 4);
        return QTest::qWaitFor([this] { return document().isOpen(); }, 20000) && settle();
    }

private Q_SLOTS:
    void initTestCase() {
        prepare();
        qputenv("XDG_CACHE_HOME", path("cache").toLocal8Bit());
    }
    void cleanup() { m_window.reset(); }

    void onlyWholeTracesCount() {
        RunRecord record;
        record.takeEvent(stepEvent(3));
        record.takeEvent(operatorEvent(0, 1.0, 1.1));
        record.takeEvent(operatorEvent(1, 1.0, 1.1)); // another rank's
        record.takeEvent(operatorEvent(0, 1.1, 1.2));
        QVERIFY(record.trace().empty()); // more may come
        record.takeEvent(stepEvent(4));
        QCOMPARE(record.trace().size(), std::size_t{2});
        QCOMPARE(record.traceStep(), std::int64_t{3});
        record.takeEvent(stepEvent(100));
        record.takeEvent(operatorEvent(0, 9.0, 9.5));
        QCOMPARE(record.traceStep(), std::int64_t{3});
        record.takeEvent({{}, contract::ByeEvent{"done", 100, ""}});
        QCOMPARE(record.trace().size(), std::size_t{1});
        QCOMPARE(record.traceStep(), std::int64_t{100});
    }
    void theLogIsFilteredByLevel() {
        LogTable log;
        LevelFilter filter(&log);
        filter.setParent(nullptr); // this one is on the stack
        QAbstractItemModelTester tester(&filter);
        log.setLog({{1, 0, "info", "a", false}, {2, 0, "warning", "b", false}, {3, 0, "error", "c", false}});
        QCOMPARE(filter.rowCount(), 3);
        filter.setLowest(LevelFilter::Warnings);
        QCOMPARE(filter.rowCount(), 2);
        filter.setLowest(LevelFilter::Errors);
        QCOMPARE(filter.rowCount(), 1);
        QCOMPARE(filter.index(0, LogTable::Text).data().toString(), QString("c"));
        log.setLog({{1, 0, "info", "a", false},
                    {2, 0, "warning", "b", false},
                    {3, 0, "error", "c", false},
                    {4, 0, "error", "d", false}});
        QCOMPARE(filter.rowCount(), 2);
        filter.setLowest(LevelFilter::Everything);
        QCOMPARE(filter.rowCount(), 4);
    }
    void aTestStepSaysWhatItHeld() {
        const QString program = QStringLiteral(SHARDSCOPE_BIN_DIR "/shardscope-train");
        if (!QFile::exists(program))
            QSKIP("shardscope-train is not built");
        renew();
        QVERIFY(openDemo());
        m_window->trainer().setProgram(program);
        command("Run a test step");
        QTRY_VERIFY_WITH_TIMEOUT(m_window->trainer().state() == Trainer::State::Ended, 120000);
        QCOMPARE(m_window->trainer().record().steps().size(), std::size_t{1});
        QTRY_VERIFY2(m_window->messages().text().contains("One step was trained"),
                     qPrintable(m_window->messages().text()));
        QVERIFY(m_window->planPage().isVisible());
    }
    void aTracedStepIsLaidUnderThePlanAndRecalibratesTheCluster() {
        const QString program = QStringLiteral(SHARDSCOPE_BIN_DIR "/shardscope-train");
        if (!QFile::exists(program))
            QSKIP("shardscope-train is not built");
        renew();
        QVERIFY(openDemo());
        const planner::PlanResultPointer trained = document().answer()->plan;
        m_window->trainer().setProgram(program);
        TrainSettings chosen = settings("builtin:addition", "traced");
        chosen.steps = 5;
        m_window->trainer().start(planner::emitPlan(*trained, "test"), chosen);
        QTRY_COMPARE_WITH_TIMEOUT(m_window->trainer().state(), Trainer::State::Ended, 240000);
        QTRY_VERIFY_WITH_TIMEOUT(m_window->reviewing().newest() != nullptr, 20000);
        const RunReviewPointer review = m_window->reviewing().newest();
        QCOMPARE(review->step, std::int64_t{3});
        QVERIFY(isPlanOf(*review, *trained));
        QVERIFY(!review->lanes[0].intervals.empty());
        // The step that was traced took as long as the run said.
        const double seconds = planner::toSeconds(review->endPicoseconds);
        const double said = m_window->trainer().record().steps()[2].stepSeconds;
        QVERIFY2(seconds > 0.5 * said && seconds < 1.5 * said, qPrintable(QString("%1 %2").arg(seconds).arg(said)));
        QVERIFY(review->ratio.compute > 0.01 && review->ratio.compute < 100);

        TimelineView& timeline = m_window->planPage().tabs().timeline();
        QTRY_VERIFY_WITH_TIMEOUT(timeline.picture() && timeline.picture()->measured == review, 20000);
        QVERIFY(timeline.laneRect(0, true).top() >= timeline.laneRect(0).bottom());
        QVERIFY(timeline.laneRect(1).top() >= timeline.laneRect(0, true).bottom());
        QVERIFY(timeline.summary().contains("measured"));
        QVERIFY(timeline.picture()->spanPicoseconds() >= review->endPicoseconds);

        // The cluster takes the rates of the run, and gives them back.
        const contract::Cluster before = document().choices().cluster;
        QVERIFY(m_window->runPage().recalibrateButton().isVisibleTo(&m_window->runPage()));
        m_window->recalibrate();
        QTRY_VERIFY_WITH_TIMEOUT(document().choices().cluster.source.starts_with("recalibrated"), 20000);
        const contract::Cluster after = document().choices().cluster;
        QVERIFY(qAbs(after.device.flopsFp32 * review->ratio.compute / before.device.flopsFp32 - 1) < 1e-9);
        QVERIFY(qAbs(after.inside.latencySeconds / review->ratio.communication / before.inside.latencySeconds - 1) <
                1e-9);
        QVERIFY(QFile::exists(path("cache/shardscope/local.cluster.json")));
        QTest::mouseClick(button("Undo"), Qt::LeftButton);
        QTRY_VERIFY_WITH_TIMEOUT(document().choices().cluster.source == before.source, 20000);
        QVERIFY(!QFile::exists(path("cache/shardscope/local.cluster.json")));

        // Another plan was not measured.
        document().change("another", [](Choices& choices) { choices.recompute = contract::RecomputePolicy::On; });
        QVERIFY(settle());
        QTRY_VERIFY_WITH_TIMEOUT(timeline.picture() && timeline.picture()->plan == document().answer()->plan, 20000);
        QVERIFY(!timeline.picture()->measured);
    }
};

QTEST_MAIN(ReviewTest)
#include "tst_review.moc"
