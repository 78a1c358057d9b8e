// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/views/BudgetField.h"

#include "app/look/Theme.h"
#include "app/look/Units.h"
#include "planner/cluster/Clusters.h"
#include "runtime/contract/Bytes.h"

#include <QKeyEvent>
#include <QMenu>
#include <QStyle>
#include <QWheelEvent>

#include <algorithm>

namespace shardscope::app {

BudgetField::BudgetField(QWidget* parent)
    : QLineEdit(parent), m_cards(addAction(glyphIcon(Glyph::ChevronDown, colorsOf(this).secondary), TrailingPosition)) {
    m_cards->setText(tr("As much memory as a card has"));
    m_cards->setToolTip(tr("As much memory as a card has (Alt+Down)"));
    connect(m_cards, &QAction::triggered, this, &BudgetField::openCards);
    setAccessibleName(tr("Memory budget of a device"));
    setToolTip(tr("Memory budget of a device: 16, 16 GiB, 500 MiB or 24 GB"));
    setFixedWidth(122);
    connect(this, &QLineEdit::editingFinished, this, [this] {
        if (isModified())
            take();
    });
}

void BudgetField::setBytes(std::int64_t bytes) {
    m_bytes = bytes;
    if (hasFocus() && isModified())
        return;
    setText(gibText(bytes, bytes < contract::kGiB ? 3 : 2));
    setProperty("invalid", false);
}

void BudgetField::take() {
    const auto bytes = readBytes(text());
    setProperty("invalid", !bytes);
    style()->unpolish(this);
    style()->polish(this);
    if (!bytes)
        return;
    setModified(false);
    Q_EMIT bytesPicked(*bytes);
}

void BudgetField::step(int steps) {
    const std::int64_t size = m_bytes >= 4 * contract::kGiB   ? contract::kGiB / 10
                              : m_bytes >= contract::kGiB / 2 ? contract::kGiB / 100
                                                              : contract::kMiB;
    setModified(false);
    Q_EMIT bytesPicked(std::max<std::int64_t>(contract::kMiB, m_bytes + steps * size));
}

void BudgetField::openCards() {
    auto* menu = new QMenu(this);
    menu->setAttribute(Qt::WA_DeleteOnClose);
    for (const planner::CardMemory& card : planner::bundledCards())
        menu->addAction(QStringLiteral("%1\t%2").arg(QString::fromStdString(card.name), gibText(card.bytes, 2)), this,
                        [this, bytes = card.bytes] {
                            setModified(false);
                            Q_EMIT bytesPicked(bytes);
                        });
    menu->popup(mapToGlobal(QPoint(0, height() + 2)));
}

void BudgetField::changeEvent(QEvent* event) {
    if (event->type() == QEvent::PaletteChange)
        m_cards->setIcon(glyphIcon(Glyph::ChevronDown, colorsOf(this).secondary));
    QLineEdit::changeEvent(event);
}

void BudgetField::keyPressEvent(QKeyEvent* event) {
    if (event->key() == Qt::Key_Down && event->modifiers() & Qt::AltModifier) {
        openCards();
        return;
    }
    switch (event->key()) {
    case Qt::Key_Up:
        step(1);
        return;
    case Qt::Key_Down:
        step(-1);
        return;
    case Qt::Key_PageUp:
        step(10);
        return;
    case Qt::Key_PageDown:
        step(-10);
        return;
    default:
        QLineEdit::keyPressEvent(event);
    }
}

void BudgetField::wheelEvent(QWheelEvent* event) {
    if (!hasFocus()) {
        event->ignore();
        return;
    }
    step(event->angleDelta().y() > 0 ? 1 : -1);
    event->accept();
}

} // namespace shardscope::app
