// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/views/MessageStrip.h"

#include "app/look/Theme.h"
#include "app/views/Card.h"

#include <QAccessible>
#include <QHBoxLayout>
#include <QKeyEvent>
#include <QLabel>
#include <QPainter>
#include <QPushButton>

namespace shardscope::app {

MessageStrip::MessageStrip(QWidget* parent) : QWidget(parent), m_text(new QLabel(this)), m_buttons(new QHBoxLayout) {
    auto* row = new QHBoxLayout(this);
    row->setContentsMargins(40, 6, 8, 6);
    row->setSpacing(8);
    m_text->setWordWrap(true);
    m_text->setTextInteractionFlags(Qt::TextSelectableByMouse);
    row->addWidget(m_text, 1);
    row->addLayout(m_buttons);
    setMinimumHeight(40);
    hide();
}

QString MessageStrip::text() const {
    return isHidden() ? QString() : m_text->text();
}

void MessageStrip::showMessage(const QString& text, const std::vector<Choice>& choices) {
    while (QLayoutItem* item = m_buttons->takeAt(0)) {
        if (item->widget())
            item->widget()->deleteLater();
        delete item;
    }
    m_text->setText(text);
    QPushButton* first = nullptr;
    for (const Choice& choice : choices) {
        auto* button = new QPushButton(choice.text, this);
        if (choice.isPrimary)
            button->setObjectName("primary");
        connect(button, &QPushButton::clicked, this, [this, act = choice.act] {
            hide();
            if (act)
                act();
        });
        m_buttons->addWidget(button);
        first = first ? first : button;
    }
    auto* close = new QPushButton(this);
    close->setObjectName("flat");
    close->setIcon(glyphIcon(Glyph::Close, colorsOf(this).secondary));
    close->setToolTip(tr("Close"));
    close->setAccessibleName(tr("Close this message"));
    connect(close, &QPushButton::clicked, this, &QWidget::hide);
    m_buttons->addWidget(close);
    setAccessibleName(text);
    show();
    if (first)
        first->setFocus(Qt::OtherFocusReason);
    QAccessibleEvent alert(this, QAccessible::Alert);
    QAccessible::updateAccessibility(&alert);
}

void MessageStrip::keyPressEvent(QKeyEvent* event) {
    if (event->key() == Qt::Key_Escape)
        hide();
    else
        QWidget::keyPressEvent(event);
}

void MessageStrip::paintEvent(QPaintEvent*) {
    const Colors& colors = colorsOf(this);
    QPainter painter(this);
    paintCard(painter, *this);
    const QRectF mark(14, height() / 2.0 - 8, 16, 16);
    painter.setPen(Qt::NoPen);
    painter.setBrush(colors.limit);
    painter.drawEllipse(mark);
    drawGlyph(painter, Glyph::Warning, mark, colors.card);
}

} // namespace shardscope::app
