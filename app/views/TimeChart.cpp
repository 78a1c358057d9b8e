// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/views/TimeChart.h"

#include "app/layout/Ticks.h"
#include "app/look/Theme.h"
#include "app/look/Units.h"

#include <QHelpEvent>
#include <QKeyEvent>
#include <QMouseEvent>
#include <QPainter>
#include <QToolTip>
#include <QWheelEvent>

#include <algorithm>
#include <cmath>

namespace shardscope::app {

namespace {

constexpr double kLeft = 96;
constexpr double kRight = 12;
constexpr double kAxis = 20;
/// A millionth of a step: a few microseconds of the longest ones.
constexpr double kNarrowest = 1e-6;
/// A press that moves less than this is a click.
constexpr double kClick = 4;

} // namespace

TimeChart::TimeChart(QWidget* parent) : QWidget(parent) {
    setFocusPolicy(Qt::StrongFocus);
    setMouseTracking(true);
}

void TimeChart::setPicture(const StepPicturePointer& picture) {
    m_picture = picture;
    m_isBusy = false;
    update();
}

void TimeChart::setBusy(bool busy) {
    if (m_isBusy == busy)
        return;
    m_isBusy = busy;
    update();
}

void TimeChart::setWindow(const TimeWindow& window) {
    if (window == m_window)
        return;
    m_window = window;
    update();
}

void TimeChart::takeWindow(const TimeWindow& window) {
    if (window == m_window)
        return;
    setWindow(window);
    Q_EMIT windowChanged(m_window);
}

QRectF TimeChart::plot() const {
    return {kLeft, 4, std::max(10.0, width() - kLeft - kRight), std::max(10.0, height() - 4 - kAxis)};
}

double TimeChart::beginPicoseconds() const {
    return m_picture ? m_window.begin * static_cast<double>(m_picture->spanPicoseconds()) : 0;
}

double TimeChart::endPicoseconds() const {
    return m_picture ? m_window.end * static_cast<double>(m_picture->spanPicoseconds()) : 1;
}

double TimeChart::xOf(double picoseconds) const {
    const QRectF area = plot();
    return area.left() + (picoseconds - beginPicoseconds()) / (endPicoseconds() - beginPicoseconds()) * area.width();
}

double TimeChart::picosecondsAt(double x) const {
    const QRectF area = plot();
    return beginPicoseconds() + (x - area.left()) / area.width() * (endPicoseconds() - beginPicoseconds());
}

void TimeChart::paintEvent(QPaintEvent*) {
    const Colors& colors = colorsOf(this);
    QPainter painter(this);
    painter.fillRect(rect(), colors.card);
    painter.setFont(smallFont());
    if (!hasPicture()) {
        painter.setPen(colors.secondary);
        const QString text = m_picture && !m_picture->error.isEmpty()
                                 ? m_picture->error
                                 : (m_isBusy ? tr("Simulating one step …") : tr("There is no plan to simulate"));
        painter.drawText(QRectF(rect()).adjusted(12, 0, -12, 0), Qt::AlignCenter | Qt::TextWordWrap, text);
        return;
    }
    paintAxis(painter, colors);
    painter.setOpacity(m_isBusy ? 0.45 : 1); // what is shown belongs to an older plan
    paintChart(painter, colors);
    painter.setOpacity(1);
    if (m_isBusy) {
        painter.setFont(smallBoldFont());
        const QString text = tr("simulating …");
        const double width = QFontMetricsF(painter.font()).horizontalAdvance(text) + 20;
        const QRectF box(plot().center().x() - width / 2, plot().center().y() - 10, width, 20);
        painter.setRenderHint(QPainter::Antialiasing);
        painter.setPen(Qt::NoPen);
        painter.setBrush(colors.accent);
        painter.drawRoundedRect(box, 10, 10);
        painter.setPen(colors.onAccent);
        painter.drawText(box, Qt::AlignCenter, text);
    }
    if (hasFocus()) {
        painter.setRenderHint(QPainter::Antialiasing);
        painter.setBrush(Qt::NoBrush);
        painter.setPen(QPen(colors.accent, 1));
        painter.drawRoundedRect(QRectF(rect()).adjusted(0.5, 0.5, -0.5, -0.5), 4, 4);
    }
}

void TimeChart::paintAxis(QPainter& painter, const Colors& colors) const {
    const QRectF area = plot();
    const QFontMetricsF metrics(painter.font());
    const double begin = beginPicoseconds() * 1e-12, end = endPicoseconds() * 1e-12;
    const TimeUnit unit = timeUnit(end);
    const Ticks ticks =
        niceTicks(begin / unit.seconds, end / unit.seconds, std::max(2, static_cast<int>(area.width() / 80)));
    painter.setPen(colors.line);
    painter.drawLine(QPointF(area.left(), area.bottom() + 0.5), QPointF(area.right(), area.bottom() + 0.5));
    // The unit stands in the axis' own column, where no tick can meet it.
    painter.setPen(colors.secondary);
    painter.drawText(QRectF(0, area.bottom() + 4, area.left() - 10, 15), Qt::AlignRight | Qt::AlignVCenter, unit.name);
    double lastEnd = area.left() - 4;
    for (const double value : ticks.values) {
        const double x = std::round(xOf(value * unit.seconds * 1e12)) + 0.5;
        painter.setPen(colors.grid);
        painter.drawLine(QPointF(x, area.top()), QPointF(x, area.bottom()));
        const QString text = tickText(value, ticks.decimals);
        const double width = metrics.horizontalAdvance(text);
        if (x - width / 2 < lastEnd + 4 || x + width / 2 > this->width() - 2)
            continue;
        painter.setPen(colors.secondary);
        painter.drawText(QRectF(x - width / 2, area.bottom() + 4, width + 2, 15), Qt::AlignLeft | Qt::AlignVCenter,
                         text);
        lastEnd = x + width / 2;
    }
}

void TimeChart::wheelEvent(QWheelEvent* event) {
    if (!hasPicture())
        return;
    const QPoint delta = event->angleDelta();
    if (event->modifiers() & Qt::ShiftModifier || std::abs(delta.x()) > std::abs(delta.y())) {
        const double moved = delta.x() != 0 ? delta.x() : delta.y();
        takeWindow(panned(m_window, -moved / 1200 * m_window.width()));
    } else {
        const QRectF area = plot();
        const double center =
            m_window.begin +
            std::clamp((event->position().x() - area.left()) / area.width(), 0.0, 1.0) * m_window.width();
        takeWindow(zoomed(m_window, std::pow(1.0015, -delta.y()), center, kNarrowest));
    }
    event->accept();
}

void TimeChart::mousePressEvent(QMouseEvent* event) {
    if (event->button() != Qt::LeftButton)
        return;
    m_pressed = event->position();
    m_pressedWindow = m_window;
    m_isPanning = false;
}

void TimeChart::mouseMoveEvent(QMouseEvent* event) {
    if (!(event->buttons() & Qt::LeftButton)) {
        if (QToolTip::isVisible())
            QToolTip::showText(event->globalPosition().toPoint(), describe(event->position()), this);
        return;
    }
    const double moved = event->position().x() - m_pressed.x();
    if (std::abs(moved) >= kClick)
        m_isPanning = true;
    if (m_isPanning)
        takeWindow(panned(m_pressedWindow, -moved / plot().width() * m_pressedWindow.width()));
}

void TimeChart::mouseReleaseEvent(QMouseEvent* event) {
    if (event->button() == Qt::LeftButton && !m_isPanning && hasPicture())
        clicked(event->position(), event->modifiers() & Qt::ControlModifier);
    m_isPanning = false;
}

void TimeChart::clicked(const QPointF&, bool) {}

void TimeChart::keyPressEvent(QKeyEvent* event) {
    const double center = (m_window.begin + m_window.end) / 2;
    switch (event->key()) {
    case Qt::Key_Left:
        takeWindow(panned(m_window, -0.1 * m_window.width()));
        return;
    case Qt::Key_Right:
        takeWindow(panned(m_window, 0.1 * m_window.width()));
        return;
    case Qt::Key_Plus:
    case Qt::Key_Equal:
        takeWindow(zoomed(m_window, 0.7, center, kNarrowest));
        return;
    case Qt::Key_Minus:
        takeWindow(zoomed(m_window, 1 / 0.7, center, kNarrowest));
        return;
    case Qt::Key_Home:
        takeWindow({});
        return;
    default:
        QWidget::keyPressEvent(event);
    }
}

bool TimeChart::event(QEvent* event) {
    if (event->type() == QEvent::ToolTip) {
        const auto* help = static_cast<QHelpEvent*>(event);
        const QString text = hasPicture() && !m_isBusy ? describe(help->pos()) : QString();
        if (text.isEmpty())
            QToolTip::hideText();
        else
            QToolTip::showText(help->globalPos(), text, this);
        return true;
    }
    return QWidget::event(event);
}

} // namespace shardscope::app
