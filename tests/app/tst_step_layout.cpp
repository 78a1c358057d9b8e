// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/layout/LaneBars.h"
#include "app/layout/MapRows.h"
#include "app/layout/MemoryBands.h"
#include "app/layout/PointLabels.h"
#include "app/layout/TimeWindow.h"
#include "app/layout/WaterfallBars.h"
#include "app/look/Colors.h"
#include "app/support/Samples.h"

#include <QTest>

#include <numeric>

using namespace shardscope;
using namespace shardscope::app;

class StepLayoutTest : public QObject {
    Q_OBJECT
private:
    static std::vector<planner::Interval> regular(int count, std::int64_t length, std::int64_t period) {
        std::vector<planner::Interval> intervals;
        for (int i = 0; i < count; ++i) {
            planner::Interval interval;
            interval.op = i;
            interval.begin = i * period;
            interval.end = interval.begin + length;
            intervals.push_back(interval);
        }
        return intervals;
    }

private Q_SLOTS:
    void wideIntervalsAreDrawnExactly() {
        const Lane lane = makeLanes(regular(4, 60, 100))[0];
        const auto bars = layoutLane(lane, 0, 400, 10, 400);
        QCOMPARE(bars.size(), std::size_t{4});
        QCOMPARE(bars[2].left, 210.0);
        QCOMPARE(bars[2].right, 270.0);
        QCOMPARE(bars[2].interval, 2);
    }
    void crowdedPixelsKeepTheirShareOfBusyTime() {
        const Lane lane = makeLanes(regular(100'000, 25, 100))[0];
        const auto bars = layoutLane(lane, 0, 1e7, 0, 500);
        QVERIFY(bars.size() <= 1000);
        double busy = 0;
        for (const LaneBar& bar : bars)
            busy += (bar.right - bar.left) * bar.cover;
        QVERIFY2(qAbs(busy / 500 - 0.25) < 0.02, qPrintable(QString::number(busy / 500)));
    }
    void barsDoNotOverlapAndStayInside() {
        std::vector<planner::Interval> intervals;
        std::int64_t now = 0;
        for (int i = 0; i < 5000; ++i) {
            planner::Interval interval;
            interval.op = i;
            interval.begin = now + (i * 7919) % 13;
            interval.end = interval.begin + 1 + (i * 104729) % (i % 50 == 0 ? 4000 : 40);
            now = interval.end;
            intervals.push_back(interval);
        }
        const Lane lane = makeLanes(intervals)[0];
        const auto end = static_cast<double>(now);
        for (const auto& [from, to] : {std::pair(0.0, end), std::pair(end * 0.2, end * 0.21)}) {
            const auto bars = layoutLane(lane, from, to, 0, 700);
            QVERIFY(!bars.empty());
            for (std::size_t i = 0; i < bars.size(); ++i) {
                QVERIFY(bars[i].left >= -1e-6 && bars[i].right <= 701);
                QVERIFY(i == 0 || bars[i].left >= bars[i - 1].right - 1);
                QVERIFY(bars[i].cover >= 0 && bars[i].cover <= 1);
            }
        }
    }
    void theIntervalUnderTheMouseIsFound() {
        const Lane lane = makeLanes(regular(10, 60, 100))[0];
        QCOMPARE(intervalAt(lane, 230, 0), 2);
        QCOMPARE(intervalAt(lane, 275, 0), -1);
        QCOMPARE(intervalAt(lane, 275, 20), 2);
        QCOMPARE(intervalAt(lane, -50, 20), -1);
        QCOMPARE(intervalAt(Lane{}, 5, 20), -1);
    }
    void zoomKeepsWhatIsUnderTheMouse() {
        const TimeWindow half = zoomed({}, 0.5, 0.3, 1e-6);
        QVERIFY(qAbs(half.width() - 0.5) < 1e-12);
        QVERIFY(qAbs((0.3 - half.begin) / half.width() - 0.3) < 1e-12);
        QCOMPARE(zoomed(half, 100, 0.9, 1e-6), TimeWindow());
        const TimeWindow narrow = zoomed(half, 1e-12, 0.3, 1e-6);
        QVERIFY(qAbs(narrow.width() - 1e-6) < 1e-12);
        QVERIFY(panned(half, 5).end <= 1 && panned(half, -5).begin >= 0);
    }
    void memoryColumnsLoseNoPeak() {
        std::vector<MemoryBand> bands(10'000);
        for (std::size_t i = 0; i < bands.size(); ++i) {
            bands[i].parts[0] = bands[i].total = i == 7123 ? 900 : 100;
            bands[i].picoseconds = static_cast<std::int64_t>(i);
        }
        const auto columns = bandsOfColumns(bands, {}, 300);
        QCOMPARE(columns.size(), std::size_t{300});
        QVERIFY(std::find(columns.begin(), columns.end(), std::size_t{7123}) != columns.end());
        const QRectF plot(10, 10, 300, 100);
        const auto areas = stackBands(bands, columns, plot, 1000);
        QCOMPARE(areas[0].boundingRect().top(), 20.0);
        QCOMPARE(areas[0].boundingRect().bottom(), 110.0);
        QVERIFY(areas[1].isEmpty());
    }
    void waterfallBarsSumToTheDifference() {
        planner::PlanDiff diff;
        diff.a.globalBatch = diff.b.globalBatch = 8;
        diff.a.time.picoseconds = {100, 20, 30, 0, 5, 1};
        diff.b.time.picoseconds = {100, 0, 90, 10, 5, 2};
        const WaterfallSteps steps = waterfallSteps(diff);
        QVERIFY(!steps.perSample);
        const double sum = std::accumulate(steps.differences.begin(), steps.differences.end(), 0.0);
        QVERIFY(qAbs(sum - (steps.to - steps.from)) < 1e-24);
        const auto bars = waterfallBars(steps);
        QCOMPARE(bars.size(), std::size_t{8});
        double level = bars.front().high;
        for (std::size_t i = 1; i + 1 < bars.size(); ++i) {
            QVERIFY(qAbs((bars[i].difference >= 0 ? bars[i].low : bars[i].high) - level) < 1e-24);
            level += bars[i].difference;
        }
        QVERIFY(qAbs(level - bars.back().high) < 1e-24);
        const WaterfallAxis axis = waterfallAxis(bars);
        for (const WaterfallBar& bar : bars)
            QVERIFY(bar.high <= axis.high && (bar.isWhole || bar.low >= axis.low));
    }
    void otherBatchesAreComparedPerSample() {
        planner::PlanDiff diff;
        diff.a.globalBatch = 8;
        diff.b.globalBatch = 16;
        diff.a.time.picoseconds = {80, 0, 0, 0, 0, 0};
        diff.b.time.picoseconds = {160, 0, 0, 0, 0, 0};
        const WaterfallSteps steps = waterfallSteps(diff);
        QVERIFY(steps.perSample);
        QVERIFY(qAbs(steps.to - steps.from) < 1e-20);
    }
    void labelsAvoidEachOtherAndTheCurve() {
        const QPolygonF curve{QPointF(0, 60), QPointF(150, 50), QPointF(150, 40), QPointF(400, 38)};
        const std::vector<QPointF> points{{200, 44}, {203, 46}, {206, 47}, {208, 52}, {210, 60}};
        const std::vector<QSizeF> sizes(points.size(), QSizeF(60, 14));
        LabelRoom room{QRectF(0, 0, 400, 200), {}, curve};
        for (const QPointF& point : points)
            room.taken.emplace_back(point.x() - 5, point.y() - 5, 10, 10);
        const auto places = placeLabels(points, sizes, room);
        for (std::size_t i = 0; i < places.size(); ++i) {
            QVERIFY(places[i].has_value());
            QVERIFY(room.area.contains(*places[i]));
            QVERIFY(!QPolygonF(*places[i]).contains(QPointF(300, 39)));
            QVERIFY(places[i]->top() > 40 || places[i]->bottom() < 40);
            for (std::size_t j = 0; j < i; ++j)
                QVERIFY(!places[i]->intersects(*places[j]));
        }
    }
    void coalescedBlocksAreRunsOfTheirOwn() {
        auto plan = std::make_shared<planner::PlanResult>(*test::samplePlan(6, 6));
        for (std::size_t i = 1; i <= 8; ++i) // the first four of six blocks
            plan->operators[i].coalesced = true;
        const auto rows = mapRows(*plan);
        const MapColumns columns = foldColumns(rows, true);
        QCOMPARE(columns.groups.size(), std::size_t{4});
        const auto runs = coalescedRuns(rows, columns);
        QCOMPARE(runs.size(), std::size_t{1});
        QCOMPARE(runs[0].first, columns.groups[1].firstColumn);
        QCOMPARE(runs[0].last, columns.groups[1].lastColumn);
    }
    void phasesAreVisibleOnTheirGround() {
        for (const Colors* colors : {&lightColors(), &darkColors()})
            for (const QColor& mark : {colors->forward, colors->backward, colors->gather})
                QVERIFY2(contrastRatio(mark, colors->card) >= 3, qPrintable(mark.name()));
    }
};

QTEST_MAIN(StepLayoutTest)
#include "tst_step_layout.moc"
