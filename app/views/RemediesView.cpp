// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/views/RemediesView.h"

#include "app/document/Verdict.h"
#include "app/look/Units.h"
#include "app/views/Card.h"

#include <QHBoxLayout>
#include <QLabel>
#include <QPushButton>
#include <QScrollArea>
#include <QVBoxLayout>

namespace shardscope::app {

namespace {

constexpr std::size_t kMostRemedies = 12;

} // namespace

RemediesView::RemediesView(QWidget* parent)
    : QWidget(parent), m_title(makeLabel({}, "title", this)), m_text(makeLabel({}, "secondary", this)),
      m_list(new QWidget(this)), m_rows(new QVBoxLayout(m_list)) {
    m_text->setWordWrap(true);
    m_list->setObjectName("scrolled");
    m_rows->setContentsMargins(0, 0, 8, 0);
    m_rows->setSpacing(6);
    auto* scroll = new QScrollArea(this);
    scroll->setWidgetResizable(true);
    scroll->setFrameShape(QFrame::NoFrame);
    scroll->setHorizontalScrollBarPolicy(Qt::ScrollBarAlwaysOff);
    scroll->setWidget(m_list);
    scroll->setFocusPolicy(Qt::NoFocus);
    scroll->viewport()->setAutoFillBackground(false);
    auto* column = new QVBoxLayout(this);
    column->setContentsMargins(0, 4, 0, 0);
    column->setSpacing(2);
    column->addWidget(m_title);
    column->addWidget(m_text);
    column->addSpacing(6);
    column->addWidget(scroll, 1);
}

void RemediesView::clearRows() {
    while (QLayoutItem* item = m_rows->takeAt(0)) {
        if (item->widget())
            item->widget()->deleteLater();
        delete item;
    }
}

void RemediesView::addRow(const QString& what, const QStringList& facts, const QString& button,
                          const std::function<void()>& act) {
    auto* line = new QWidget(m_list);
    auto* row = new QHBoxLayout(line);
    row->setContentsMargins(0, 0, 0, 0);
    row->setSpacing(14);
    auto* apply = new QPushButton(button, line);
    apply->setFixedWidth(84);
    apply->setAccessibleName(button + ' ' + what);
    connect(apply, &QPushButton::clicked, this, act);
    row->addWidget(apply);
    auto* words = new QVBoxLayout;
    words->setSpacing(0);
    auto* title = new QLabel(what, line);
    title->setWordWrap(true);
    words->addWidget(title);
    if (!facts.isEmpty()) {
        auto* text = makeLabel(facts.join(QStringLiteral(" · ")), "small", line);
        text->setWordWrap(true);
        words->addWidget(text);
    }
    row->addLayout(words, 1);
    m_rows->addWidget(line);
}

void RemediesView::addNote(const QString& text) {
    auto* note = makeLabel(text, "secondary", m_list);
    note->setWordWrap(true);
    m_rows->addWidget(note);
}

void RemediesView::setAnswer(const AnswerPointer& answer, const RemediesPointer& remedies) {
    clearRows();
    if (!answer || !answer->plan || answer->plan->feasible)
        return;
    const Verdict verdict = verdictOf(*answer, nullptr);
    m_title->setText(tr("Nothing fits %1").arg(gibText(answer->plan->limitBytes, 2)));
    m_text->setText(verdict.rate);
    if (const std::int64_t smallest = answer->plan->smallestFeasibleBytes; smallest > 0) {
        QStringList facts;
        if (smallest > answer->choices->cardBytes())
            facts << tr("more than the %1 has").arg(memoryOwnerWord(answer->choices->cluster));
        addRow(tr("a budget of %1").arg(gibText(smallest, 2)), facts, tr("Go there"),
               [this, smallest] { Q_EMIT smallestRequested(smallest); });
    }
    if (remedies && remedies->generation == answer->generation) {
        for (std::size_t i = 0; i < remedies->list.size() && i < kMostRemedies; ++i) {
            const planner::Remedy& remedy = remedies->list[i];
            QStringList facts{tr("peak %1").arg(gibText(remedy.peakBytes, 2)),
                              rateText(remedy.samplesPerSecond * unitsPerSample(*remedy.request.graph)) + ' ' +
                                  rateUnit(*remedy.request.graph)};
            if (remedy.changesNumerics)
                facts << tr("changes numerics");
            addRow(QString::fromStdString(remedy.change), facts, tr("Apply"),
                   [this, i] { Q_EMIT remedyChosen(static_cast<int>(i)); });
        }
        if (remedies->list.empty())
            addNote(tr("No change, and no two of them, make it fit."));
    } else {
        addNote(tr("Looking for changes that fit …"));
    }
    m_rows->addStretch();
}

} // namespace shardscope::app
