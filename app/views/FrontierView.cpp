// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/views/FrontierView.h"

#include "app/look/Units.h"
#include "runtime/contract/Bytes.h"

#include <QHelpEvent>
#include <QKeyEvent>
#include <QMouseEvent>
#include <QToolTip>

#include <algorithm>
#include <cmath>

namespace shardscope::app {

FrontierView::FrontierView(QWidget* parent) : QWidget(parent) {
    setFocusPolicy(Qt::StrongFocus);
    setMouseTracking(true);
    setCursor(Qt::SizeHorCursor);
    setAccessibleName(tr("Memory budget on the frontier of memory and throughput"));
    setAccessibleDescription(tr("Left and right change the budget, Page Up and Page Down go to the next budget where a "
                                "placement flips. The budget can be typed in the field above."));
}

void FrontierView::setPicture(FrontierPicture picture) {
    m_picture = std::move(picture);
    m_flips = flipBudgets(m_picture.frontier);
    update();
}

FrontierAxis FrontierView::axis() const {
    if (m_dragging)
        return m_dragAxis;
    const QRectF plot(56, 18, width() - 56.0 - 10, height() - 18.0 - 24);
    return frontierAxis(m_picture.frontier, m_picture.baselines, m_picture.cardBytes, m_picture.budgetBytes, plot);
}

std::vector<PlanPoint> FrontierView::points() const {
    std::vector<PlanPoint> points;
    for (const planner::Baseline& baseline : m_picture.baselines)
        if (baseline.feasible)
            points.push_back(
                {QString::fromStdString(baseline.name), baseline.peakBytes, baseline.samplesPerSecond, false});
    points.insert(points.end(), m_picture.saved.begin(), m_picture.saved.end());
    return points;
}

const PlanPoint* FrontierView::pointUnder(const std::vector<PlanPoint>& points, const QPointF& position) const {
    const FrontierAxis a = axis();
    for (const PlanPoint& point : points) {
        const QPointF at(a.xOf(static_cast<double>(point.peakBytes)), a.yOf(point.samplesPerSecond));
        if (std::hypot(at.x() - position.x(), at.y() - position.y()) < 8)
            return &point;
    }
    return nullptr;
}

qint64 FrontierView::bytesAt(double x) const {
    const FrontierAxis a = axis();
    const double bytes = std::clamp(a.bytesAt(x), std::max(a.lowBytes, 1.0), a.highBytes);
    // One pixel is the finest step a hand can mean; whole MiB read better.
    return std::max<qint64>(contract::kMiB, std::llround(bytes / contract::kMiB) * contract::kMiB);
}

void FrontierView::mousePressEvent(QMouseEvent* event) {
    if (event->button() != Qt::LeftButton || m_picture.cardBytes <= 0)
        return;
    const auto all = points();
    if (const PlanPoint* point = pointUnder(all, event->position())) {
        Q_EMIT budgetPicked(point->peakBytes);
        return;
    }
    m_dragAxis = axis();
    m_dragging = true;
    Q_EMIT dragStarted();
    Q_EMIT budgetDragged(bytesAt(event->position().x()));
}

void FrontierView::mouseMoveEvent(QMouseEvent* event) {
    if (m_dragging) {
        Q_EMIT budgetDragged(bytesAt(event->position().x()));
        return;
    }
    const auto all = points();
    setCursor(pointUnder(all, event->position()) ? Qt::PointingHandCursor : Qt::SizeHorCursor);
}

void FrontierView::mouseReleaseEvent(QMouseEvent* event) {
    if (event->button() != Qt::LeftButton || !m_dragging)
        return;
    m_dragging = false;
    Q_EMIT dragEnded();
    update();
}

void FrontierView::keyPressEvent(QKeyEvent* event) {
    const FrontierAxis a = axis();
    const bool isCoarse = event->modifiers() & Qt::ShiftModifier;
    const double span = a.highBytes - a.lowBytes;
    const qint64 step =
        std::max<qint64>(contract::kMiB, std::llround(span / (isCoarse ? 20 : 200) / contract::kMiB) * contract::kMiB);
    const qint64 now = m_picture.budgetBytes;
    switch (event->key()) {
    case Qt::Key_Left:
    case Qt::Key_Down:
        Q_EMIT budgetPicked(std::max<qint64>(contract::kMiB, now - step));
        return;
    case Qt::Key_Right:
    case Qt::Key_Up:
        Q_EMIT budgetPicked(now + step);
        return;
    case Qt::Key_PageUp:
        if (const auto flip = nextFlip(m_flips, now))
            Q_EMIT budgetPicked(*flip);
        return;
    case Qt::Key_PageDown:
        if (const auto flip = previousFlip(m_flips, now))
            Q_EMIT budgetPicked(*flip);
        return;
    case Qt::Key_Home:
        if (m_picture.smallestBytes > 0)
            Q_EMIT budgetPicked(m_picture.smallestBytes);
        return;
    case Qt::Key_End:
        if (m_picture.cardBytes > 0)
            Q_EMIT budgetPicked(m_picture.cardBytes);
        return;
    default:
        QWidget::keyPressEvent(event);
    }
}

bool FrontierView::event(QEvent* event) {
    if (event->type() == QEvent::ToolTip) {
        const auto* help = static_cast<QHelpEvent*>(event);
        const auto all = points();
        const PlanPoint* under = pointUnder(all, help->pos());
        QString text;
        if (under) {
            text = tr("<b>%1</b><br>peak %2<br>%3 %4")
                       .arg(under->name.toHtmlEscaped(), gibText(under->peakBytes, 2),
                            rateText(under->samplesPerSecond * m_picture.unitsPerSample), m_picture.unit);
        } else if (const auto* point = frontierPointAt(m_picture.frontier, bytesAt(help->pos().x()))) {
            text = tr("<b>%1</b> budget<br>peak %2<br>%3 %4<br>micro-batch %5")
                       .arg(gibText(bytesAt(help->pos().x()), 2), gibText(point->peakBytes, 2),
                            rateText(point->samplesPerSecond * m_picture.unitsPerSample), m_picture.unit)
                       .arg(point->microBatch);
        }
        QToolTip::showText(help->globalPos(), text, this);
        return true;
    }
    return QWidget::event(event);
}

} // namespace shardscope::app
