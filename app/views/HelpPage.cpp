// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/views/HelpPage.h"

#include "app/look/Theme.h"
#include "app/views/Card.h"
#include "app/views/Tabs.h"
#include "app/views/ValidationView.h"

#include <QEvent>
#include <QFile>
#include <QHBoxLayout>
#include <QKeyEvent>
#include <QPushButton>
#include <QStackedWidget>
#include <QTextBrowser>
#include <QTextDocument>
#include <QTextTable>
#include <QVBoxLayout>

namespace shardscope::app {

namespace {

QString resourceText(const QString& name) {
    QFile file(QStringLiteral(":/help/") + name);
    return file.open(QIODevice::ReadOnly) ? QString::fromUtf8(file.readAll()) : QString();
}

QString markdownOf(int topic, const QString& keys) {
    return topic == HelpPage::Keys
               ? keys
               : resourceText(topic == HelpPage::Using ? QStringLiteral("using.md") : QStringLiteral("words.md"));
}

/// Markdown tables have no grid of their own; a little room between cells reads better than lines.
void loosenTables(QTextDocument& document) {
    for (QTextFrame* frame : document.rootFrame()->childFrames())
        if (auto* table = qobject_cast<QTextTable*>(frame)) {
            QTextTableFormat format = table->format();
            format.setBorder(0);
            format.setCellPadding(3);
            format.setCellSpacing(0);
            table->setFormat(format);
        }
}

} // namespace

HelpPage::HelpPage(QWidget* parent)
    : QWidget(parent), m_tabs(new TabStrip(this)), m_pages(new QStackedWidget(this)),
      m_validation(new ValidationView(this)) {
    auto* card = new Card({}, this);
    card->layout()->setContentsMargins(kCardMargin, 2, kCardMargin, kCardMargin);
    for (const QString& title : {tr("Using Shardscope"), tr("Keys"), tr("Words"), tr("Published tables")})
        m_tabs->addTab(title);
    const QString names[Published] = {tr("Using Shardscope"), tr("Keys"), tr("Words")};
    for (int i = 0; i < Published; ++i) {
        m_texts[i] = new QTextBrowser(this);
        m_texts[i]->setFrameShape(QFrame::NoFrame);
        m_texts[i]->setOpenLinks(false);
        m_texts[i]->setAccessibleName(names[i]);
        // Lines of a whole wide window are hard to read.
        m_texts[i]->setMaximumWidth(820);
        auto* page = new QWidget(this);
        auto* row = new QHBoxLayout(page);
        row->setContentsMargins(0, 0, 0, 0);
        row->addWidget(m_texts[i], 1);
        row->addStretch(0);
        m_pages->addWidget(page);
    }
    m_pages->addWidget(m_validation);
    auto* close = new QPushButton(tr("Close"), this);
    close->setToolTip(tr("Back to where you were (Escape)"));
    connect(close, &QPushButton::clicked, this, &HelpPage::closeRequested);
    auto* head = new QHBoxLayout;
    head->addWidget(m_tabs, 1);
    head->addWidget(close);
    card->body()->addLayout(head);
    card->body()->addSpacing(6);
    card->body()->addWidget(m_pages, 1);
    auto* column = new QVBoxLayout(this);
    column->setContentsMargins(0, 0, 0, 0);
    column->addWidget(card);
    connect(m_tabs, &TabStrip::currentChanged, this, [this](int index) {
        m_pages->setCurrentIndex(index);
        if (isVisible())
            fill();
    });
}

void HelpPage::fill() {
    // Only what is read: laying out a long text takes a while.
    const int shown = topic();
    if (shown >= Published)
        return;
    // Read before it is shown: a text in a window is laid out anew with every row that a table gets.
    auto* document = new QTextDocument(m_texts[shown]);
    document->setDefaultFont(bodyFont());
    document->setMarkdown(markdownOf(shown, m_keys));
    loosenTables(*document);
    // The browser deletes the first document, which is its own.
    QTextDocument* const before = m_texts[shown]->document();
    const bool isOurs = before->parent() == m_texts[shown];
    m_texts[shown]->setDocument(document);
    if (isOurs)
        delete before;
}

void HelpPage::setKeys(const std::vector<KeyLine>& lines) {
    m_keys = tr("# Keys") + QStringLiteral("\n\n");
    QString group;
    for (const KeyLine& line : lines) {
        if (line.group != group) {
            group = line.group;
            m_keys += QStringLiteral("\n## %1\n\n| %2 | %3 |\n|---|---|\n").arg(group, tr("what"), tr("keys"));
        }
        m_keys += QStringLiteral("| %1 | %2 |\n").arg(line.name, line.keys);
    }
    if (isVisible())
        fill();
}

void HelpPage::showTopic(int topic) {
    m_tabs->setCurrent(topic);
    m_pages->setCurrentIndex(m_tabs->current());
    m_tabs->setFocus(Qt::OtherFocusReason);
}

int HelpPage::topic() const {
    return m_tabs->current();
}

QString HelpPage::text(int topic) const {
    if (topic < 0 || topic >= Published)
        return {};
    QTextDocument document;
    document.setMarkdown(markdownOf(topic, m_keys));
    return document.toPlainText();
}

void HelpPage::keyPressEvent(QKeyEvent* event) {
    if (event->key() == Qt::Key_Escape)
        Q_EMIT closeRequested();
    else
        QWidget::keyPressEvent(event);
}

void HelpPage::changeEvent(QEvent* event) {
    QWidget::changeEvent(event);
    // Colours of headings and tables are fixed when the text is read.
    if (event->type() == QEvent::PaletteChange && isVisible())
        fill();
}

void HelpPage::showEvent(QShowEvent* event) {
    QWidget::showEvent(event);
    fill();
}

void HelpPage::hideEvent(QHideEvent* event) {
    QWidget::hideEvent(event);
    // A text that nobody reads would be laid out anew with every change of the lightness.
    for (QTextBrowser* text : m_texts)
        text->clear();
}

} // namespace shardscope::app
