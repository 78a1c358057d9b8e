// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/layout/PointLabels.h"
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
/// Above the axis there is room for the names of the zones.
constexpr double kZoneName = 20;

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
            painter.drawText(QRectF(left, plot.bottom() - kZoneName + 2, right - left, 16), Qt::AlignCenter, text);
    };
    painter.setPen(colors.text);
    label(smallest, tight, tr("safe"));
    label(card, plot.right(), tr("beyond the %1").arg(m_picture.owner));
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
    const QString card = QStringLiteral("%1 %2").arg(m_picture.owner, gibNumber(m_picture.cardBytes));
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
    const auto all = points();
    LabelRoom room{a.plot.adjusted(2, -16, -2, -20),
                   {QRectF(handleX - 7, a.plot.top(), 14, a.plot.height())},
                   frontierCurve(m_picture.frontier, a)};
    std::vector<const PlanPoint*> shown;
    std::vector<QPointF> at;
    std::vector<QSizeF> sizes;
    for (const PlanPoint& point : all) {
        const QPointF place(a.xOf(static_cast<double>(point.peakBytes)), a.yOf(point.samplesPerSecond));
        if (!a.plot.adjusted(-1, -6, 1, 6).contains(place))
            continue;
        shown.push_back(&point);
        at.push_back(place);
        sizes.emplace_back(metrics.horizontalAdvance(point.name) + 2, 14);
        room.taken.emplace_back(place.x() - 5, place.y() - 5, 10, 10);
    }
    // Policies that do not fit stand on the axis where they would begin.
    const std::size_t fitting = at.size();
    std::vector<QString> notFitting;
    for (const planner::Baseline& baseline : m_picture.baselines) {
        const QPointF place(a.xOf(static_cast<double>(baseline.smallestFeasibleBytes)), a.plot.bottom() - 26);
        if (baseline.feasible || baseline.smallestFeasibleBytes <= 0 || !a.plot.contains(place))
            continue;
        notFitting.push_back(
            tr("%1 from %2").arg(QString::fromStdString(baseline.name), gibText(baseline.smallestFeasibleBytes)));
        at.push_back(place);
        sizes.emplace_back(metrics.horizontalAdvance(notFitting.back()) + 2, 14);
        room.taken.emplace_back(place.x() - 5, place.y() - 5, 10, 31);
    }
    // The card's line is a mark, too.
    const double card = a.xOf(static_cast<double>(m_picture.cardBytes));
    room.taken.emplace_back(card - 3, a.plot.top() - 20, 6, a.plot.height() + 20);
    const auto places = placeLabels(at, sizes, room);
    for (std::size_t i = 0; i < shown.size(); ++i) {
        if (places[i]) {
            if (const auto end = leaderEnd(at[i], *places[i])) {
                painter.setPen(QPen(colors.secondary, 1));
                painter.drawLine(at[i], *end);
            }
        }
        painter.setPen(QPen(colors.text, 1.6));
        painter.setBrush(colors.card);
        if (shown[i]->isSaved)
            painter.drawRect(QRectF(at[i].x() - 4, at[i].y() - 4, 8, 8));
        else
            painter.drawEllipse(at[i], 4.5, 4.5);
        if (!places[i])
            continue;
        painter.setPen(colors.text);
        painter.drawText(places[i]->adjusted(0, 0, 2, 0), Qt::AlignLeft | Qt::AlignVCenter, shown[i]->name);
    }
    for (std::size_t i = fitting; i < at.size(); ++i) {
        painter.setPen(QPen(colors.secondary, 1.2, Qt::DotLine));
        // Down to the axis, but not through the name of the zone that stands on it.
        painter.drawLine(at[i], QPointF(at[i].x(), std::max(at[i].y(), a.plot.bottom() - kZoneName)));
        if (places[i])
            if (const auto end = leaderEnd(at[i], *places[i])) {
                painter.setPen(QPen(colors.secondary, 1));
                painter.drawLine(at[i], *end);
            }
        painter.setPen(QPen(colors.secondary, 1.4));
        painter.setBrush(colors.card);
        painter.drawEllipse(at[i], 3.5, 3.5);
        painter.setPen(colors.text);
        if (places[i])
            painter.drawText(places[i]->adjusted(0, 0, 2, 0), Qt::AlignLeft | Qt::AlignVCenter,
                             notFitting[i - fitting]);
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
