// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/views/Tabs.h"

#include "app/look/Theme.h"

#include <QKeyEvent>
#include <QMouseEvent>
#include <QPainter>

#include <algorithm>
#include <cmath>
#include <numeric>

namespace shardscope::app {

TabStrip::TabStrip(QWidget* parent) : QWidget(parent) {
    setFocusPolicy(Qt::TabFocus);
    setFixedHeight(32);
}

void TabStrip::addTab(const QString& title) {
    m_titles << title;
    m_widths.push_back(QFontMetricsF(bodyBoldFont()).horizontalAdvance(title));
    setAccessibleName(m_titles.value(m_current));
    update();
}

void TabStrip::setNote(const QString& note) {
    m_note = note;
    setToolTip(note);
    update();
}

void TabStrip::setCurrent(int index) {
    if (index < 0 || index >= m_titles.size() || index == m_current)
        return;
    m_current = index;
    setAccessibleName(m_titles.value(m_current));
    update();
    Q_EMIT currentChanged(index);
}

double TabStrip::gap() const {
    const double words = std::accumulate(m_widths.begin(), m_widths.end(), 12.0);
    const auto between = static_cast<double>(m_titles.size() - 1);
    return between < 1 ? 26 : std::clamp((width() - words) / between, 8.0, 26.0);
}

QRectF TabStrip::tabRect(int index) const {
    const auto before = m_widths.begin() + index;
    const double x = std::accumulate(m_widths.begin(), before, index * gap());
    return {x, 0, *before + 12, static_cast<double>(height())};
}

void TabStrip::paintEvent(QPaintEvent*) {
    const Colors& colors = colorsOf(this);
    QPainter painter(this);
    painter.setPen(colors.line);
    painter.drawLine(0, height() - 1, width(), height() - 1);
    double right = 0;
    for (int i = 0; i < m_titles.size(); ++i) {
        const QRectF box = tabRect(i);
        const bool isCurrent = i == m_current;
        painter.setFont(isCurrent ? bodyBoldFont() : bodyFont());
        painter.setPen(isCurrent ? colors.text : colors.secondary);
        painter.drawText(box, Qt::AlignCenter, m_titles[i]);
        if (isCurrent)
            painter.fillRect(QRectF(box.left(), height() - 2, box.width(), 2), colors.accent);
        if (isCurrent && hasFocus()) {
            painter.setRenderHint(QPainter::Antialiasing);
            painter.setPen(QPen(colors.accent, 1));
            painter.drawRoundedRect(box.adjusted(0.5, 4.5, -0.5, -5.5), 4, 4);
            painter.setRenderHint(QPainter::Antialiasing, false);
        }
        right = box.right();
    }
    painter.setFont(smallFont());
    painter.setPen(colors.secondary);
    const double room = width() - right - 20;
    if (room < 60)
        return;
    // Whole parts of the note, as many as there is room for.
    const QFontMetricsF metrics(painter.font());
    QStringList parts = m_note.split(QStringLiteral(" · "));
    while (parts.size() > 1 && metrics.horizontalAdvance(parts.join(QStringLiteral(" · "))) > room)
        parts.removeLast();
    painter.drawText(QRectF(right + 20, 0, room, height()), Qt::AlignRight | Qt::AlignVCenter,
                     metrics.elidedText(parts.join(QStringLiteral(" · ")), Qt::ElideRight, room));
}

void TabStrip::mousePressEvent(QMouseEvent* event) {
    for (int i = 0; i < m_titles.size(); ++i)
        if (tabRect(i).contains(event->position()))
            setCurrent(i);
}

void TabStrip::keyPressEvent(QKeyEvent* event) {
    if (event->key() == Qt::Key_Left)
        setCurrent(m_current - 1);
    else if (event->key() == Qt::Key_Right)
        setCurrent(m_current + 1);
    else
        QWidget::keyPressEvent(event);
}

SegmentedSwitch::SegmentedSwitch(const QStringList& titles, QWidget* parent, Size size)
    : QWidget(parent), m_size(size) {
    setFocusPolicy(Qt::StrongFocus);
    setTitles(titles);
    setAccessibleName(titles.join(QStringLiteral(" or ")));
}

void SegmentedSwitch::setTitles(const QStringList& titles) {
    if (titles == m_titles)
        return;
    m_titles = titles;
    setFixedSize(sizeHint());
    setAccessibleDescription(titles.value(m_current));
    update();
}

double SegmentedSwitch::segmentWidth(int index) const {
    // As wide as its title in bold, whether it is chosen or not.
    return m_size == Size::Normal ? 66
                                  : std::ceil(QFontMetricsF(smallBoldFont()).horizontalAdvance(m_titles[index])) + 14;
}

QSize SegmentedSwitch::sizeHint() const {
    double width = 4;
    for (int i = 0; i < m_titles.size(); ++i)
        width += segmentWidth(i);
    return {static_cast<int>(width), m_size == Size::Normal ? 28 : 20};
}

void SegmentedSwitch::setCurrent(int index) {
    if (index < 0 || index >= m_titles.size() || index == m_current)
        return;
    m_current = index;
    setAccessibleDescription(m_titles.value(index));
    update();
    Q_EMIT currentChanged(index);
}

void SegmentedSwitch::paintEvent(QPaintEvent*) {
    const Colors& colors = colorsOf(this);
    QPainter painter(this);
    painter.setRenderHint(QPainter::Antialiasing);
    painter.setPen(QPen(hasFocus() ? colors.accent : colors.line, 1));
    painter.setBrush(colors.window);
    painter.drawRoundedRect(QRectF(rect()).adjusted(0.5, 0.5, -0.5, -0.5), 7, 7);
    const bool isSmall = m_size == Size::Small;
    double left = 2;
    for (int i = 0; i < m_titles.size(); ++i) {
        const QRectF box(left, 2, segmentWidth(i), height() - 4.0);
        left += box.width();
        if (i == m_current) {
            painter.setPen(QPen(colors.line, 1));
            painter.setBrush(colors.card);
            painter.drawRoundedRect(box.adjusted(0.5, 0.5, -0.5, -0.5), 5, 5);
        }
        if (isSmall)
            painter.setFont(i == m_current ? smallBoldFont() : smallFont());
        else
            painter.setFont(i == m_current ? bodyBoldFont() : bodyFont());
        painter.setPen(i == m_current ? colors.text : colors.secondary);
        painter.drawText(box, Qt::AlignCenter, m_titles[i]);
    }
}

void SegmentedSwitch::mousePressEvent(QMouseEvent* event) {
    double right = 2;
    for (int i = 0; i < m_titles.size(); ++i) {
        right += segmentWidth(i);
        if (event->position().x() < right || i + 1 == m_titles.size()) {
            setCurrent(i);
            return;
        }
    }
}

void SegmentedSwitch::keyPressEvent(QKeyEvent* event) {
    if (event->key() == Qt::Key_Left)
        setCurrent(m_current - 1);
    else if (event->key() == Qt::Key_Right)
        setCurrent(m_current + 1);
    else if (event->key() == Qt::Key_Space)
        setCurrent((m_current + 1) % static_cast<int>(m_titles.size()));
    else
        QWidget::keyPressEvent(event);
}

} // namespace shardscope::app
