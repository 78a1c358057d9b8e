// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/layout/FrontierAxis.h"
#include "app/layout/Gallop.h"
#include "app/layout/MapRows.h"
#include "app/layout/PeakBar.h"
#include "app/layout/Ticks.h"
#include "app/look/Colors.h"
#include "app/look/Units.h"
#include "app/support/Samples.h"
#include "app/views/LossChart.h"
#include "app/views/OperatorMap.h"
#include "runtime/contract/Bytes.h"

#include <QPainter>
#include <QPicture>
#include <QTest>

#include <numeric>
#include <random>

using namespace shardscope;
using namespace shardscope::app;

class LayoutTest : public QObject {
    Q_OBJECT
private Q_SLOTS:
    void ticksAreRoundAndInside() {
        const Ticks ticks = niceTicks(3.2, 23.7, 6);
        QCOMPARE(ticks.step, 5.0);
        QCOMPARE(ticks.values, (std::vector<double>{5, 10, 15, 20}));
        QCOMPARE(niceTicks(0, 0.35, 5).decimals, 1);
        QVERIFY(niceTicks(1, 1, 5).values.empty());
        QVERIFY(niceTicks(0, 1e300, 1).values.size() <= 1);
    }
    void gallopingFindsWhatBisectionFinds() {
        for (int size = 0; size < 40; ++size) {
            std::vector<int> numbers(static_cast<std::size_t>(size));
            std::iota(numbers.begin(), numbers.end(), 0);
            for (int from = 0; from <= size; ++from)
                for (int bound = 0; bound <= size + 1; ++bound) {
                    const auto isBefore = [bound](int number) { return number < bound; };
                    QCOMPARE(gallop(numbers.begin() + from, numbers.end(), isBefore),
                             std::partition_point(numbers.begin() + from, numbers.end(), isBefore));
                }
        }
    }
    void equalBlocksFoldToRuns() {
        const auto rows = mapRows(*test::samplePlan(20, 8));
        const MapColumns folded = foldColumns(rows, true);
        QCOMPARE(folded.groups.size(), std::size_t{4});
        QCOMPARE(folded.groups[1].label, QStringLiteral("h.0–7"));
        QCOMPARE(folded.groups[1].blocks, 8);
        QCOMPARE(folded.groups[2].blocks, 12);
        QCOMPARE(folded.columns.size(), std::size_t{6});
        const MapColumns plain = foldColumns(rows, false);
        QCOMPARE(plain.columns.size(), rows.size());
    }
    /// On a screen thousands of columns are filled pixel by pixel; a drawing keeps them as rectangles.
    void aCrowdedMapLooksTheSameInPixelsAndInRectangles_data() {
        QTest::addColumn<int>("operators");
        for (const int operators : {40, 700, 1100, 30'000})
            QTest::addRow("%d", operators) << operators;
    }
    void aCrowdedMapLooksTheSameInPixelsAndInRectangles() {
        QFETCH(int, operators);
        const auto few = mapRows(*test::samplePlan(9, 4));
        std::mt19937 random(5);
        std::vector<MapRow> rows;
        for (int i = 0; i < operators; ++i) {
            MapRow row = few[random() % few.size()];
            row.op = i;
            row.block = i / 2;
            for (std::int64_t& bytes : row.memory)
                bytes = static_cast<std::int64_t>(random() % (1U << 30));
            // A recorded texture has lost its scale.
            row.memory[static_cast<std::size_t>(MemoryPart::Logits)] = 0;
            row.memory[static_cast<std::size_t>(MemoryPart::Reserve)] = 0;
            row.memoryBytes = std::accumulate(row.memory.begin(), row.memory.end(), std::int64_t{0});
            rows.push_back(row);
        }
        OperatorMap map;
        map.resize(900, 220);
        map.setFolded(false);
        map.setRows(rows, operators / 2);
        QImage pixels(map.size(), QImage::Format_RGB32), rectangles(map.size(), QImage::Format_RGB32);
        pixels.fill(Qt::white);
        rectangles.fill(Qt::white);
        map.render(&pixels);
        QPicture picture;
        QPainter recorder(&picture);
        map.render(&recorder);
        recorder.end();
        QPainter painter(&rectangles);
        picture.play(&painter);
        painter.end();
        int differing = 0, coloured = 0;
        for (int y = 0; y < pixels.height(); ++y)
            for (int x = 0; x < pixels.width(); ++x) {
                differing += pixels.pixel(x, y) != rectangles.pixel(x, y) ? 1 : 0;
                coloured += qGray(pixels.pixel(x, y)) < 250 ? 1 : 0;
            }
        QVERIFY(coloured > 20'000);
        // Texts have other hints, edges other roundings.
        QVERIFY2(differing < coloured / 20, qPrintable(QString("%1 of %2").arg(differing).arg(coloured)));
    }
    void everyOperatorIsInOneColumn() {
        const auto rows = mapRows(*test::samplePlan(31, 7));
        for (const bool fold : {false, true}) {
            std::vector<int> seen(rows.size(), 0);
            for (const MapColumn& column : foldColumns(rows, fold).columns)
                for (const std::int32_t row : column.rows)
                    ++seen[static_cast<std::size_t>(row)];
            QVERIFY(std::all_of(seen.begin(), seen.end(), [](int count) { return count == 1; }));
        }
    }
    void columnsFillTheWidthAndKeepTheirMinimum() {
        const auto rows = mapRows(*test::samplePlan(48, 20));
        const MapColumns columns = foldColumns(rows, true);
        const auto spans = placeColumns(columns, 800, 17, 8);
        QCOMPARE(spans.front().begin, 0.0);
        QVERIFY(qAbs(spans.back().end - 800) < 1e-6);
        for (std::size_t i = 0; i < spans.size(); ++i) {
            QVERIFY(spans[i].width() >= 17 - 1e-6);
            QVERIFY(i == 0 || spans[i].begin >= spans[i - 1].end - 1e-9);
        }
        QCOMPARE(columnAt(spans, -1), -1);
        QCOMPARE(columnAt(spans, 5), 0);
        QCOMPARE(columnAt(spans, 801), -1);
    }
    void manyColumnsStillFit() {
        const auto rows = mapRows(*test::samplePlan(3000, 1500));
        const auto spans = placeColumns(foldColumns(rows, false), 300, 17, 8);
        QVERIFY(qAbs(spans.back().end - 300) < 1e-6);
    }
    void peakBarSumsToThePeak() {
        const auto plan = test::samplePlan(12, 4);
        const PeakBarLayout layout = layoutPeakBar(plan->ledger, 16 * contract::kGiB, 24 * contract::kGiB, 480);
        std::int64_t sum = 0;
        for (const PeakSegment& segment : layout.segments)
            sum += segment.bytes;
        QCOMPARE(sum, plan->ledger.total());
        QCOMPARE(layout.cardX, 480.0);
        QCOMPARE(layout.budgetX, 320.0);
    }
    void frontierAxisMapsBothWays() {
        const FrontierAxis axis = frontierAxis(test::sampleFrontier(), {}, 24 * contract::kGiB, 16 * contract::kGiB,
                                               QRectF(50, 10, 700, 100));
        const double bytes = 13.5 * static_cast<double>(contract::kGiB);
        QVERIFY(qAbs(axis.bytesAt(axis.xOf(bytes)) - bytes) < 1024);
        QVERIFY(axis.xOf(24.0 * contract::kGiB) < axis.plot.right());
        const QPolygonF curve = frontierCurve(test::sampleFrontier(), axis);
        for (int i = 1; i < curve.size(); ++i) {
            QVERIFY(curve[i].x() >= curve[i - 1].x());
            QVERIFY(curve[i].y() <= curve[i - 1].y() + 1e-9);
        }
    }
    void flipsAreWherePlacementCountsChange() {
        const auto flips = flipBudgets(test::sampleFrontier());
        QVERIFY(!flips.empty());
        QCOMPARE(nextFlip(flips, flips.front() - 1), std::optional(flips.front()));
        QCOMPARE(previousFlip(flips, flips.front()), std::nullopt);
        QCOMPARE(nextFlip(flips, flips.back()), std::nullopt);
    }
    void unitsAreBinaryAndNamed() {
        QCOMPARE(gibText(16 * contract::kGiB, 2), QStringLiteral("16.00 GiB"));
        QCOMPARE(bytesText(123 * contract::kMiB), QStringLiteral("123 MiB"));
        QCOMPARE(bytesText(512), QStringLiteral("512 B"));
        QCOMPARE(countText(1557611200), QStringLiteral("1,557,611,200"));
        QCOMPARE(countText(-1234), QStringLiteral("-1,234"));
        QCOMPARE(secondsText(0.2424), QStringLiteral("242 ms"));
        QCOMPARE(secondsText(1.254), QStringLiteral("1.25 s"));
        QCOMPARE(readBytes(QStringLiteral("16")), std::optional(16 * contract::kGiB));
        QCOMPARE(readBytes(QStringLiteral("500MiB")), std::optional(500 * contract::kMiB));
        QCOMPARE(readBytes(QStringLiteral("nonsense")), std::nullopt);
        QCOMPARE(readBytes(QStringLiteral("-3")), std::nullopt);
    }
    void textContrastIsAtLeastFourAndAHalf() {
        for (const Colors* colors : {&lightColors(), &darkColors()}) {
            for (const QColor& ground : {colors->window, colors->card, colors->field, colors->accentWash,
                                         colors->safeZone, colors->beyondZone}) {
                QVERIFY(contrastRatio(colors->text, ground) >= 4.5);
                QVERIFY2(contrastRatio(colors->secondary, ground) >= 4.5, qPrintable(ground.name()));
            }
            QVERIFY(contrastRatio(colors->onAccent, colors->accent) >= 4.5);
            QVERIFY(contrastRatio(colors->onShardStripe, colors->shardStripe) >= 4.5);
            QVERIFY(contrastRatio(colors->accent, colors->card) >= 4.5);
        }
    }
    void decimationKeepsExtremes() {
        QList<QPointF> points;
        for (int i = 0; i < 100000; ++i)
            points << QPointF(i, i == 54321 ? 99.0 : i % 7);
        const auto few = decimate(points, 400);
        QVERIFY(few.size() <= 800);
        QVERIFY(std::any_of(few.begin(), few.end(), [](const QPointF& point) { return point.y() == 99.0; }));
    }
    void aLossCurveKeepsExtremesOfAnyLength() {
        LossCurve curve;
        for (int i = 0; i < 100; ++i)
            curve.append(i, i % 7);
        QCOMPARE(curve.points().size(), 100); // a short one is kept whole
        constexpr int kPoints = 1'000'000;
        for (int i = 100; i < kPoints; ++i)
            curve.append(i, i == 654321 ? 99.0 : i == 123456 ? -5.0 : i % 7);
        const QList<QPointF> points = curve.points();
        QCOMPARE(curve.size(), std::size_t{kPoints});
        QVERIFY(points.size() <= static_cast<qsizetype>(2 * LossCurve::kMostBuckets));
        QVERIFY(points.contains(QPointF(654321, 99)) && points.contains(QPointF(123456, -5)));
        QVERIFY(std::is_sorted(points.begin(), points.end(),
                               [](const QPointF& a, const QPointF& b) { return a.x() < b.x(); }));
        QCOMPARE(curve.highest(), 99.0);
        QCOMPARE(curve.lowest(), -5.0);
        QCOMPARE(curve.last(), QPointF(kPoints - 1, (kPoints - 1) % 7));
    }
};

QTEST_MAIN(LayoutTest)
#include "tst_layout.moc"
