// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/layout/Ticks.h"
#include "app/look/Theme.h"
#include "app/look/Units.h"
#include "app/views/FrontierView.h"
#include "runtime/contract/Bytes.h"

#include <QPainter>
#include <QPainterPath>

#include <algorithm>
#include <array>
#include <cmath>

namespace shardscope::app {

namespace {

constexpr auto kGibUnit = static_cast<double>(contract::kGiB);

} // namespace

void FrontierView::paintEvent(QPaintEvent*) {
    const Colors& colors = colorsOf(this);
    QPainter painter(this);
    painter.fillRect(rect(), colors.card);
    painter.setFont(smallFont());
    if (m_picture.cardBytes <= 0)
        return;
    const FrontierAxis a = axis();
    paintZones(painter, a, colors);
    paintAxes(painter, a, colors);
    painter.setRenderHint(QPainter::Antialiasing);
    paintCurve(painter, a, colors);
    paintPoints(painter, a, colors);
    paintHandle(painter, a, colors);
}

void FrontierView::paintZones(QPainter& painter, const FrontierAxis& a, const Colors& colors) const {
    const QRectF& plot = a.plot;
    const std::int64_t error = estimateErrorBytes(m_picture.cardBytes, m_picture.isCpu);
    const double card = std::clamp(a.xOf(static_cast<double>(m_picture.cardBytes)), plot.left(), plot.right());
    const double tight = std::clamp(a.xOf(static_cast<double>(m_picture.cardBytes - error)), plot.left(), plot.right());
    const double smallest =
        m_picture.smallestBytes > 0
            ? std::clamp(a.xOf(static_cast<double>(m_picture.smallestBytes)), plot.left(), plot.right())
            : plot.left();
    painter.fillRect(QRectF(smallest, plot.top(), tight - smallest, plot.height()), colors.safeZone);
    painter.fillRect(QRectF(tight, plot.top(), card - tight, plot.height()), colors.tightZone);
    painter.fillRect(QRectF(card, plot.top(), plot.right() - card, plot.height()), colors.beyondZone);
    if (smallest > plot.left() + 2)
        // Under the smallest plan there is nothing.
        painter.fillRect(QRectF(plot.left(), plot.top(), smallest - plot.left(), plot.height()),
                         QBrush(colors.line, Qt::BDiagPattern));

    painter.setPen(colors.secondary);
    const auto label = [&](double left, double right, const QString& text) {
        const QFontMetricsF metrics(painter.font());
        if (metrics.horizontalAdvance(text) + 12 < right - left)
            painter.drawText(QRectF(left, plot.bottom() - 18, right - left, 16), Qt::AlignCenter, text);
    };
    label(smallest, tight, tr("safe"));
    label(card, plot.right(), tr("beyond the card"));
    painter.setPen(QPen(colors.limit, 1));
    painter.drawLine(QPointF(std::round(card) + 0.5, plot.top()), QPointF(std::round(card) + 0.5, plot.bottom()));
}

void FrontierView::paintAxes(QPainter& painter, const FrontierAxis& a, const Colors& colors) const {
    const QRectF& plot = a.plot;
    const QFontMetricsF metrics(painter.font());
    const double scale = m_picture.unitsPerSample;
    painter.setPen(colors.secondary);
    painter.drawText(QRectF(0, 0, plot.left() - 7, 14), Qt::AlignRight | Qt::AlignVCenter, m_picture.unit);
    if (!m_picture.frontier.points.empty()) {
        const Ticks rates =
            niceTicks(a.lowRate * scale, a.highRate * scale, std::max(2, static_cast<int>(plot.height() / 24)));
        for (const double value : rates.values) {
            const double y = std::round(a.yOf(value / scale)) + 0.5;
            if (y < plot.top() + 2 || (a.broken && y > plot.bottom() - 12))
                continue;
            painter.setPen(colors.grid);
            painter.drawLine(QPointF(plot.left(), y), QPointF(plot.right(), y));
            painter.setPen(colors.secondary);
            painter.drawText(QRectF(0, y - 8, plot.left() - 7, 16), Qt::AlignRight | Qt::AlignVCenter,
                             rates.step >= 1 ? countText(std::llround(value))
                                             : QString::number(value, 'f', rates.decimals));
        }
    }
    painter.setPen(colors.line);
    painter.drawLine(QPointF(plot.left(), plot.bottom() + 0.5), QPointF(plot.right(), plot.bottom() + 0.5));
    if (a.broken) {
        // The axis does not reach zero, and says so.
        painter.setRenderHint(QPainter::Antialiasing);
        QPainterPath zigzag(QPointF(plot.left() - 4, plot.bottom() - 3));
        zigzag.lineTo(plot.left() + 4, plot.bottom() - 6);
        zigzag.moveTo(plot.left() - 4, plot.bottom() - 7);
        zigzag.lineTo(plot.left() + 4, plot.bottom() - 10);
        painter.setPen(QPen(colors.secondary, 1.2));
        painter.drawPath(zigzag);
        painter.setRenderHint(QPainter::Antialiasing, false);
    }

    // Budgets where placements flip.
    painter.setPen(colors.secondary);
    double lastX = -10;
    for (const std::int64_t flip : m_flips) {
        const double x = std::round(a.xOf(static_cast<double>(flip))) + 0.5;
        if (x < plot.left() || x > plot.right() || x - lastX < 7)
            continue;
        painter.drawLine(QPointF(x, plot.bottom() + 1), QPointF(x, plot.bottom() + 4));
        lastX = x;
    }

    painter.setFont(smallBoldFont());
    const QString card = tr("card %1").arg(gibNumber(m_picture.cardBytes));
    const double cardWidth = QFontMetricsF(painter.font()).horizontalAdvance(card);
    const double cardX = a.xOf(static_cast<double>(m_picture.cardBytes));
    const double cardLeft = std::clamp(cardX - cardWidth / 2, plot.left(), plot.right() - cardWidth);
    painter.setPen(colors.text);
    painter.drawText(QRectF(cardLeft, plot.bottom() + 7, cardWidth + 2, 16), Qt::AlignLeft | Qt::AlignVCenter, card);
    painter.setFont(smallFont());

    const double handle = a.xOf(static_cast<double>(m_picture.budgetBytes));
    const Ticks ticks = a.logarithmic ? logarithmicTicks(a.lowBytes / kGibUnit, a.highBytes / kGibUnit)
                                      : niceTicks(a.lowBytes / kGibUnit, a.highBytes / kGibUnit,
                                                  std::max(2, static_cast<int>(plot.width() / 80)));
    painter.setPen(colors.secondary);
    for (const double value : ticks.values) {
        const double x = a.xOf(value * kGibUnit);
        const QString text =
            a.logarithmic ? QString::number(value, 'g', 3) : QString::number(value, 'f', ticks.decimals);
        const double width = metrics.horizontalAdvance(text);
        const bool hitsCard = x + width / 2 > cardLeft - 8 && x - width / 2 < cardLeft + cardWidth + 8;
        const bool hitsHandle = std::abs(x - handle) < width / 2 + 12;
        const bool hitsUnit = x + width / 2 > plot.right() - 28;
        if (!hitsCard && !hitsHandle && !hitsUnit)
            painter.drawText(QRectF(x - width / 2 - 1, plot.bottom() + 7, width + 4, 16),
                             Qt::AlignLeft | Qt::AlignVCenter, text);
    }
    if (cardLeft + cardWidth < plot.right() - 30 && handle < plot.right() - 36)
        painter.drawText(QRectF(plot.right() - 24, plot.bottom() + 7, 26, 16), Qt::AlignRight | Qt::AlignVCenter,
                         QStringLiteral("GiB"));
}

void FrontierView::paintCurve(QPainter& painter, const FrontierAxis& a, const Colors& colors) const {
    QPolygonF curve = frontierCurve(m_picture.frontier, a);
    if (curve.size() < 2)
        return;
    painter.save();
    painter.setClipRect(a.plot.adjusted(0, -6, 0, 0));
    QPolygonF area = curve;
    area << QPointF(curve.last().x(), a.plot.bottom()) << QPointF(curve.first().x(), a.plot.bottom());
    QColor wash = colors.accent;
    wash.setAlphaF(colors.dark ? 0.10F : 0.06F);
    painter.setPen(Qt::NoPen);
    painter.setBrush(wash);
    painter.drawPolygon(area);
    painter.setBrush(Qt::NoBrush);
    painter.setPen(
        QPen(colors.accent, 2, m_picture.isComplete ? Qt::SolidLine : Qt::DashLine, Qt::RoundCap, Qt::RoundJoin));
    painter.drawPolyline(curve);
    painter.restore();
}

void FrontierView::paintPoints(QPainter& painter, const FrontierAxis& a, const Colors& colors) const {
    painter.setFont(smallFont());
    const QFontMetricsF metrics(painter.font());
    const double handleX = a.xOf(static_cast<double>(m_picture.budgetBytes));
    std::vector<QRectF> taken{QRectF(handleX - 7, a.plot.top(), 14, a.plot.height())};
    const auto all = points();
    for (const PlanPoint& point : all)
        taken.emplace_back(a.xOf(static_cast<double>(point.peakBytes)) - 5, a.yOf(point.samplesPerSecond) - 5, 10, 10);
    for (const PlanPoint& point : all) {
        const QPointF at(a.xOf(static_cast<double>(point.peakBytes)), a.yOf(point.samplesPerSecond));
        if (!a.plot.adjusted(-1, -6, 1, 6).contains(at))
            continue;
        painter.setPen(QPen(colors.text, 1.6));
        painter.setBrush(colors.card);
        if (point.isSaved)
            painter.drawRect(QRectF(at.x() - 4, at.y() - 4, 8, 8));
        else
            painter.drawEllipse(at, 4.5, 4.5);
        const double width = metrics.horizontalAdvance(point.name);
        const std::array<QRectF, 6> places{
            QRectF(at.x() - width / 2, at.y() + 6, width, 14), QRectF(at.x() - width / 2, at.y() - 20, width, 14),
            QRectF(at.x() + 9, at.y() - 7, width, 14),         QRectF(at.x() - 9 - width, at.y() - 7, width, 14),
            QRectF(at.x() + 6, at.y() + 6, width, 14),         QRectF(at.x() - 6 - width, at.y() + 6, width, 14)};
        const QRectF room = a.plot.adjusted(2, -16, -2, -2);
        const auto isFree = [&](const QRectF& place) {
            return room.contains(place) && std::none_of(taken.begin(), taken.end(),
                                                        [&](const QRectF& other) { return other.intersects(place); });
        };
        const auto place = std::find_if(places.begin(), places.end(), isFree);
        if (place == places.end())
            continue;
        taken.push_back(place->adjusted(-3, -1, 3, 1));
        painter.setPen(colors.text);
        painter.drawText(place->adjusted(0, 0, 2, 0), Qt::AlignLeft | Qt::AlignVCenter, point.name);
    }
    // Policies that do not fit the card stand on the axis where they would begin.
    for (const planner::Baseline& baseline : m_picture.baselines) {
        const QPointF at(a.xOf(static_cast<double>(baseline.smallestFeasibleBytes)), a.plot.bottom() - 26);
        if (baseline.feasible || baseline.smallestFeasibleBytes <= 0 || !a.plot.contains(at))
            continue;
        painter.setPen(QPen(colors.secondary, 1.2, Qt::DotLine));
        painter.drawLine(at, QPointF(at.x(), a.plot.bottom()));
        painter.setPen(QPen(colors.secondary, 1.4));
        painter.setBrush(colors.card);
        painter.drawEllipse(at, 3.5, 3.5);
        const QString text =
            tr("%1 from %2").arg(QString::fromStdString(baseline.name), gibText(baseline.smallestFeasibleBytes));
        const double width = metrics.horizontalAdvance(text);
        const double left = std::min(at.x() - width / 2, a.plot.right() - width - 2);
        painter.setPen(colors.text);
        painter.drawText(QRectF(left, at.y() - 20, width + 2, 14), Qt::AlignLeft | Qt::AlignVCenter, text);
    }
}

void FrontierView::paintHandle(QPainter& painter, const FrontierAxis& a, const Colors& colors) const {
    const double x = a.xOf(static_cast<double>(m_picture.budgetBytes));
    if (x < a.plot.left() - 8 || x > a.plot.right() + 8)
        return;
    painter.setPen(QPen(colors.accent, 2));
    painter.drawLine(QPointF(x, a.plot.top() - 4), QPointF(x, a.plot.bottom()));
    if (m_picture.peakBytes > 0) {
        const double y = a.yOf(m_picture.samplesPerSecond);
        painter.setPen(QPen(colors.card, 1.5));
        painter.setBrush(colors.accent);
        painter.drawEllipse(QPointF(x, y), 5.5, 5.5);
    }
    if (hasFocus()) {
        QColor halo = colors.accent;
        halo.setAlphaF(0.22F);
        painter.setPen(Qt::NoPen);
        painter.setBrush(halo);
        painter.drawEllipse(QPointF(x, a.plot.bottom() + 1), 13, 13);
    }
    painter.setPen(QPen(colors.accent, 3));
    painter.setBrush(colors.card);
    painter.drawEllipse(QPointF(x, a.plot.bottom() + 1), 8, 8);
}

} // namespace shardscope::app
