// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/views/PlacementCard.h"

#include "app/look/Theme.h"

#include <QMouseEvent>
#include <QPainter>

namespace shardscope::app {

namespace {

constexpr int kRowHeight = 19;
constexpr int kTotalGap = 7;

} // namespace

PlacementCard::PlacementCard(const QString& title, const QString& known, QWidget* parent)
    : QAbstractButton(parent), m_known(known) {
    setText(title);
    setCheckable(true);
    setAutoExclusive(false);
    setCursor(Qt::PointingHandCursor);
    setFocusPolicy(Qt::StrongFocus);
    setAccessibleName(title + ", " + known);
    setFixedHeight(42);
}

void PlacementCard::setPartly(bool partly) {
    m_partly = partly;
    update();
}

void PlacementCard::paintEvent(QPaintEvent*) {
    const Colors& colors = colorsOf(this);
    QPainter painter(this);
    painter.setRenderHint(QPainter::Antialiasing);
    const bool isOn = isChecked();
    painter.setPen(QPen(isOn || hasFocus() ? colors.accent : colors.line, isOn ? 1.5 : 1));
    painter.setBrush(isOn ? colors.accentWash : underMouse() && isEnabled() ? colors.grid : colors.field);
    painter.drawRoundedRect(QRectF(rect()).adjusted(0.75, 0.75, -0.75, -0.75), 6, 6);
    const QPointF center(18, height() / 2.0);
    painter.setPen(QPen(isOn ? colors.accent : colors.secondary, 1.5));
    painter.setBrush(colors.card);
    painter.drawEllipse(center, 6, 6);
    if (isOn || m_partly) {
        painter.setPen(Qt::NoPen);
        painter.setBrush(isOn ? colors.accent : colors.secondary);
        if (isOn)
            painter.drawEllipse(center, 3, 3);
        else
            painter.drawRect(QRectF(center.x() - 3, center.y() - 1, 6, 2));
    }
    const double left = 33;
    painter.setFont(bodyBoldFont());
    painter.setPen(isEnabled() ? colors.text : colors.secondary);
    painter.drawText(QRectF(left, 4, width() - left, 18), Qt::AlignLeft | Qt::AlignVCenter, text());
    painter.setFont(smallFont());
    painter.setPen(colors.secondary);
    painter.drawText(QRectF(left, 21, width() - left - 6, 16), Qt::AlignLeft | Qt::AlignVCenter,
                     QFontMetricsF(painter.font()).elidedText(m_known, Qt::ElideRight, width() - left - 6));
}

ValueRows::ValueRows(QWidget* parent) : QWidget(parent) {
    setMouseTracking(true);
    setSizePolicy(QSizePolicy::Preferred, QSizePolicy::Fixed);
}

void ValueRows::setRows(std::vector<Row> rows) {
    m_rows = std::move(rows);
    QStringList described;
    for (const Row& row : m_rows)
        described << row.name + ' ' + row.value;
    setAccessibleDescription(described.join(QStringLiteral(", ")));
    updateGeometry();
    update();
}

QSize ValueRows::sizeHint() const {
    int height = 0;
    for (const Row& row : m_rows)
        height += kRowHeight + (row.isTotal ? kTotalGap : 0);
    return {200, height};
}

int ValueRows::rowAt(double y) const {
    double top = 0;
    for (std::size_t i = 0; i < m_rows.size(); ++i) {
        top += kRowHeight + (m_rows[i].isTotal ? kTotalGap : 0);
        if (y < top)
            return static_cast<int>(i);
    }
    return -1;
}

void ValueRows::paintEvent(QPaintEvent*) {
    const Colors& colors = colorsOf(this);
    QPainter painter(this);
    double y = 0;
    for (std::size_t i = 0; i < m_rows.size(); ++i) {
        const Row& row = m_rows[i];
        if (row.isTotal) {
            painter.setRenderHint(QPainter::Antialiasing, false);
            painter.setPen(colors.line);
            painter.drawLine(QPointF(0, y + 3), QPointF(width(), y + 3));
            y += kTotalGap;
        }
        painter.setRenderHint(QPainter::Antialiasing);
        if (static_cast<int>(i) == m_hovered && row.key >= 0) {
            painter.setPen(Qt::NoPen);
            painter.setBrush(colors.grid);
            painter.drawRoundedRect(QRectF(-2, y, width() + 4, kRowHeight), 4, 4);
        }
        double x = 0;
        if (row.swatch.style() != Qt::NoBrush) {
            painter.setPen(Qt::NoPen);
            painter.setBrush(row.swatch);
            painter.drawRoundedRect(QRectF(0, y + kRowHeight / 2.0 - 4.5, 9, 9), 2, 2);
            x = 16;
        }
        painter.setFont(row.isTotal ? bodyBoldFont() : bodyFont());
        const QFontMetricsF metrics(painter.font());
        const double valueWidth = metrics.horizontalAdvance(row.value);
        painter.setPen(colors.text);
        painter.drawText(QRectF(width() - valueWidth - 1, y, valueWidth + 1, kRowHeight),
                         Qt::AlignRight | Qt::AlignVCenter, row.value);
        painter.setPen(row.key >= 0 ? colors.text : colors.secondary);
        painter.setFont(bodyFont());
        painter.drawText(
            QRectF(x, y, width() - valueWidth - x - 8, kRowHeight), Qt::AlignLeft | Qt::AlignVCenter,
            QFontMetricsF(painter.font()).elidedText(row.name, Qt::ElideMiddle, width() - valueWidth - x - 8));
        y += kRowHeight;
    }
}

void ValueRows::mousePressEvent(QMouseEvent* event) {
    const int row = rowAt(event->position().y());
    if (row >= 0 && m_rows[static_cast<std::size_t>(row)].key >= 0)
        Q_EMIT clicked(m_rows[static_cast<std::size_t>(row)].key);
}

void ValueRows::mouseMoveEvent(QMouseEvent* event) {
    const int row = rowAt(event->position().y());
    if (row == m_hovered)
        return;
    m_hovered = row;
    const bool isLink = row >= 0 && m_rows[static_cast<std::size_t>(row)].key >= 0;
    setCursor(isLink ? Qt::PointingHandCursor : Qt::ArrowCursor);
    setToolTip(row >= 0 ? m_rows[static_cast<std::size_t>(row)].hint : QString());
    update();
}

void ValueRows::leaveEvent(QEvent*) {
    m_hovered = -1;
    update();
}

} // namespace shardscope::app
