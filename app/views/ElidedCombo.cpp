// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/views/ElidedCombo.h"

#include <QHelpEvent>
#include <QStylePainter>
#include <QToolTip>

namespace shardscope::app {

namespace {

/// The text keeps clear of the arrow and of the frame.
constexpr int kBeside = 14;

} // namespace

ElidedCombo::ElidedCombo(QWidget* parent) : QComboBox(parent) {
    setSizeAdjustPolicy(QComboBox::AdjustToMinimumContentsLengthWithIcon);
    setMinimumContentsLength(6);
}

void ElidedCombo::paintEvent(QPaintEvent*) {
    QStylePainter painter(this);
    QStyleOptionComboBox option;
    initStyleOption(&option);
    const QRect field = style()->subControlRect(QStyle::CC_ComboBox, &option, QStyle::SC_ComboBoxEditField, this);
    const QString text = currentIndex() < 0 ? placeholderText() : currentText();
    option.currentText = fontMetrics().elidedText(text, Qt::ElideRight, field.width() - kBeside);
    painter.setPen(palette().color(currentIndex() < 0 ? QPalette::PlaceholderText : QPalette::Text));
    painter.drawComplexControl(QStyle::CC_ComboBox, option);
    painter.drawControl(QStyle::CE_ComboBoxLabel, option);
}

bool ElidedCombo::event(QEvent* event) {
    if (event->type() == QEvent::ToolTip && currentIndex() >= 0) {
        QToolTip::showText(static_cast<QHelpEvent*>(event)->globalPos(),
                           QStringLiteral("%1: %2").arg(toolTip(), currentText()), this);
        return true;
    }
    return QComboBox::event(event);
}

} // namespace shardscope::app
