// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/views/Card.h"

#include "app/look/Theme.h"

#include <QGraphicsDropShadowEffect>
#include <QHBoxLayout>
#include <QPainter>
#include <QVBoxLayout>

#include <algorithm>

namespace shardscope::app {

Card::Card(const QString& title, QWidget* parent)
    : QFrame(parent), m_title(makeLabel(title, "title", this)), m_header(new QHBoxLayout), m_body(new QVBoxLayout) {
    m_header->setSpacing(8);
    m_header->addWidget(m_title);
    m_title->setVisible(!title.isEmpty());
    m_body->setSpacing(0);
    auto* layout = new QVBoxLayout(this);
    layout->setContentsMargins(kCardMargin, 10, kCardMargin, 10);
    layout->setSpacing(6);
    layout->addLayout(m_header);
    layout->addLayout(m_body, 1);
    setAccessibleName(title);
}

void Card::setTitle(const QString& title) {
    m_title->setText(title);
    m_title->setVisible(!title.isEmpty());
    setAccessibleName(title);
}

void castShadow(QWidget& widget) {
    auto* shadow = new QGraphicsDropShadowEffect(&widget);
    shadow->setBlurRadius(28);
    shadow->setOffset(0, 6);
    shadow->setColor(QColor(0, 0, 0, 30));
    widget.setGraphicsEffect(shadow);
}

void paintCard(QPainter& painter, const QWidget& widget) {
    const Colors& colors = colorsOf(&widget);
    painter.setRenderHint(QPainter::Antialiasing);
    painter.setPen(QPen(colors.line, 1));
    painter.setBrush(colors.card);
    painter.drawRoundedRect(QRectF(widget.rect()).adjusted(0.5, 0.5, -0.5, -0.5), kCorner, kCorner);
}

void Card::paintEvent(QPaintEvent*) {
    QPainter painter(this);
    paintCard(painter, *this);
}

void ElidedLabel::paintEvent(QPaintEvent*) {
    QPainter painter(this);
    painter.setPen(palette().color(foregroundRole()));
    const QString shown = fontMetrics().elidedText(text(), Qt::ElideRight, width());
    // Less than this tells nothing; the tip has it all.
    constexpr qsizetype kShortest = 12;
    if (shown.size() >= std::min(kShortest, text().size()))
        painter.drawText(rect(), static_cast<int>(alignment()), shown);
    setToolTip(shown != text() ? text() : QString());
}

QLabel* makeLabel(const QString& text, const char* role, QWidget* parent) {
    auto* label = new QLabel(text, parent);
    label->setProperty("role", QString::fromLatin1(role));
    return label;
}

} // namespace shardscope::app
