// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/views/CommandPalette.h"

#include "app/look/Theme.h"
#include "app/views/Card.h"

#include <QKeyEvent>
#include <QLineEdit>
#include <QListWidget>
#include <QPainter>
#include <QStyledItemDelegate>
#include <QVBoxLayout>

#include <algorithm>

namespace shardscope::app {

namespace {

constexpr int kMostShown = 60;
constexpr int kHintRole = Qt::UserRole + 1;

/// A name at the left, its shortcut at the right.
class EntryDelegate : public QStyledItemDelegate {
public:
    using QStyledItemDelegate::QStyledItemDelegate;
    QSize sizeHint(const QStyleOptionViewItem&, const QModelIndex&) const override { return {100, 28}; }
    void paint(QPainter* painter, const QStyleOptionViewItem& option, const QModelIndex& index) const override {
        const Colors& colors = colorsFor(option.palette);
        painter->save();
        painter->setRenderHint(QPainter::Antialiasing);
        if (option.state & QStyle::State_Selected) {
            painter->setPen(Qt::NoPen);
            painter->setBrush(colors.accentWash);
            painter->drawRoundedRect(QRectF(option.rect), 5, 5);
        }
        const QRect box = option.rect.adjusted(10, 0, -10, 0);
        painter->setFont(bodyFont());
        painter->setPen(colors.text);
        painter->drawText(box, Qt::AlignLeft | Qt::AlignVCenter, index.data().toString());
        painter->setFont(smallFont());
        painter->setPen(colors.secondary);
        painter->drawText(box, Qt::AlignRight | Qt::AlignVCenter, index.data(kHintRole).toString());
        painter->restore();
    }
};

} // namespace

int matchScore(const QString& query, const QString& text) {
    int score = 0;
    for (const QString& part : query.split(' ', Qt::SkipEmptyParts)) {
        const qsizetype at = text.indexOf(part, 0, Qt::CaseInsensitive);
        if (at < 0)
            return -1;
        const bool startsWord = at == 0 || !text[at - 1].isLetterOrNumber();
        score += (startsWord ? 20 : 5) + (at == 0 ? 10 : 0);
    }
    return score * 100 - static_cast<int>(std::min<qsizetype>(text.size(), 99));
}

CommandPalette::CommandPalette(QWidget* parent)
    : Card({}, parent), m_field(new QLineEdit(this)), m_list(new QListWidget(this)) {
    setFixedSize(520, 380);
    setAccessibleName(tr("Commands and operators"));
    m_field->setPlaceholderText(tr("Search operators and commands"));
    m_field->setAccessibleName(tr("Search operators and commands"));
    m_field->setMinimumHeight(30);
    m_field->installEventFilter(this);
    m_list->setItemDelegate(new EntryDelegate(m_list));
    m_list->setFrameShape(QFrame::NoFrame);
    m_list->setFocusPolicy(Qt::NoFocus);
    m_list->setAccessibleName(tr("Matches"));
    body()->setSpacing(6);
    body()->addWidget(m_field);
    body()->addWidget(m_list, 1);
    connect(m_field, &QLineEdit::textChanged, this, &CommandPalette::filter);
    connect(m_field, &QLineEdit::returnPressed, this, &CommandPalette::run);
    connect(m_list, &QListWidget::itemClicked, this, &CommandPalette::run);
    setProperty("overlay", true);
    castShadow(*this);
    hide();
}

void CommandPalette::open(std::vector<Entry> entries) {
    m_entries = std::move(entries);
    m_field->clear();
    filter({});
    show();
    raise();
    m_field->setFocus(Qt::PopupFocusReason);
}

void CommandPalette::filter(const QString& text) {
    std::vector<std::pair<int, int>> matches;
    for (std::size_t i = 0; i < m_entries.size(); ++i)
        if (const int score = matchScore(text, m_entries[i].name); score >= 0 || text.trimmed().isEmpty())
            matches.emplace_back(text.trimmed().isEmpty() ? 0 : -score, static_cast<int>(i));
    std::stable_sort(matches.begin(), matches.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
    m_list->clear();
    for (std::size_t i = 0; i < matches.size() && i < kMostShown; ++i) {
        const Entry& entry = m_entries[static_cast<std::size_t>(matches[i].second)];
        auto* item = new QListWidgetItem(entry.name, m_list);
        item->setData(kHintRole, entry.hint);
        item->setData(Qt::UserRole, matches[i].second);
    }
    m_list->setCurrentRow(0);
}

void CommandPalette::run() {
    const QListWidgetItem* item = m_list->currentItem();
    hide();
    if (!item)
        return;
    const auto act = m_entries[static_cast<std::size_t>(item->data(Qt::UserRole).toInt())].act;
    if (act)
        act();
}

bool CommandPalette::eventFilter(QObject* watched, QEvent* event) {
    if (watched == m_field && event->type() == QEvent::KeyPress) {
        const auto* key = static_cast<QKeyEvent*>(event);
        const int row = m_list->currentRow(), last = m_list->count() - 1;
        switch (key->key()) {
        case Qt::Key_Down:
            m_list->setCurrentRow(std::min(last, row + 1));
            return true;
        case Qt::Key_Up:
            m_list->setCurrentRow(std::max(0, row - 1));
            return true;
        case Qt::Key_Escape:
            hide();
            return true;
        default:
            break;
        }
    }
    if (watched == m_field && event->type() == QEvent::FocusOut && !isAncestorOf(focusWidget()))
        hide();
    return Card::eventFilter(watched, event);
}

} // namespace shardscope::app
