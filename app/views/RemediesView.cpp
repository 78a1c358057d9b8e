// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/views/RemediesView.h"

#include "app/document/Verdict.h"
#include "app/look/Units.h"
#include "app/views/Card.h"

#include <QGridLayout>
#include <QLabel>
#include <QPushButton>
#include <QVBoxLayout>

namespace shardscope::app {

RemediesView::RemediesView(QWidget* parent)
    : QWidget(parent), m_title(makeLabel({}, "title", this)), m_text(makeLabel({}, "secondary", this)),
      m_rows(new QVBoxLayout) {
    m_text->setWordWrap(true);
    auto* column = new QVBoxLayout(this);
    column->setContentsMargins(0, 4, 0, 0);
    column->setSpacing(4);
    column->addWidget(m_title);
    column->addWidget(m_text);
    column->addSpacing(6);
    column->addLayout(m_rows);
    column->addStretch();
}

void RemediesView::clearRows() {
    while (QLayoutItem* item = m_rows->takeAt(0)) {
        if (item->widget())
            item->widget()->deleteLater();
        delete item;
    }
}

void RemediesView::setAnswer(const AnswerPointer& answer, const RemediesPointer& remedies) {
    clearRows();
    if (!answer || !answer->plan || answer->plan->feasible)
        return;
    const Verdict verdict = verdictOf(*answer, nullptr);
    m_title->setText(tr("Nothing fits %1").arg(gibText(answer->plan->limitBytes, 2)));
    m_text->setText(verdict.rate);
    auto* table = new QWidget(this);
    auto* grid = new QGridLayout(table);
    grid->setContentsMargins(0, 0, 0, 0);
    grid->setHorizontalSpacing(18);
    grid->setVerticalSpacing(4);
    grid->setColumnStretch(4, 1);
    int row = 0;
    const auto add = [&](const QString& what, const QString& peak, const QString& rate, const QString& note,
                         const QString& button, auto act) {
        auto* apply = new QPushButton(button, table);
        apply->setAccessibleName(button + ' ' + what);
        connect(apply, &QPushButton::clicked, this, act);
        grid->addWidget(apply, row, 0);
        grid->addWidget(new QLabel(what, table), row, 1);
        auto* peakLabel = makeLabel(peak, "secondary", table);
        peakLabel->setAlignment(Qt::AlignRight | Qt::AlignVCenter);
        grid->addWidget(peakLabel, row, 2);
        auto* rateLabel = makeLabel(rate, "secondary", table);
        rateLabel->setAlignment(Qt::AlignRight | Qt::AlignVCenter);
        grid->addWidget(rateLabel, row, 3);
        grid->addWidget(makeLabel(note, "secondary", table), row, 4);
        ++row;
    };
    if (answer->plan->smallestFeasibleBytes > 0)
        add(tr("a budget of %1").arg(gibText(answer->plan->smallestFeasibleBytes, 2)), {}, {},
            answer->plan->smallestFeasibleBytes > answer->choices->cardBytes()
                ? tr("more than the %1 has").arg(memoryOwnerWord(answer->choices->cluster))
                : QString(),
            tr("Go there"), [this, bytes = answer->plan->smallestFeasibleBytes] { Q_EMIT smallestRequested(bytes); });
    if (remedies && remedies->generation == answer->generation) {
        for (std::size_t i = 0; i < remedies->list.size() && i < 7; ++i) {
            const planner::Remedy& remedy = remedies->list[i];
            add(QString::fromStdString(remedy.change), tr("peak %1").arg(gibText(remedy.peakBytes, 2)),
                rateText(remedy.samplesPerSecond * unitsPerSample(*remedy.request.graph)) + ' ' +
                    rateUnit(*remedy.request.graph),
                remedy.changesNumerics ? tr("changes numerics") : QString(), tr("Apply"),
                [this, i] { Q_EMIT remedyChosen(static_cast<int>(i)); });
        }
        if (remedies->list.empty())
            grid->addWidget(makeLabel(tr("No change, and no two of them, make it fit."), "secondary", table), row, 0, 1,
                            5);
    } else {
        grid->addWidget(makeLabel(tr("Looking for changes that fit …"), "secondary", table), row, 0, 1, 5);
    }
    m_rows->addWidget(table);
}

} // namespace shardscope::app
