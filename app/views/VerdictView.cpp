// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/views/VerdictView.h"

#include "app/look/Theme.h"
#include "app/look/Units.h"
#include "app/views/PartsLabel.h"
#include "app/views/PeakBarView.h"

#include <QHBoxLayout>
#include <QLabel>
#include <QPainter>
#include <QPushButton>

namespace shardscope::app {

namespace {

/// Room for the mark before the sentence.
constexpr int kMark = 28;

} // namespace

VerdictView::VerdictView(QWidget* parent)
    : Card({}, parent), m_headline(new QLabel(this)), m_detail(new PartsLabel(this)), m_rate(new QLabel(this)),
      m_numbers(new PartsLabel(this)), m_remedy(new QPushButton(this)), m_bar(new PeakBarView(this)) {
    setAccessibleName(tr("Verdict"));
    setFixedHeight(72);
    m_headline->setStyleSheet(QStringLiteral("font-size: 18px; font-weight: 600;"));
    m_rate->setProperty("role", "value");
    m_detail->setStrong(true);
    m_remedy->hide();
    connect(m_remedy, &QPushButton::clicked, this, [this] {
        if (m_verdict.kind == VerdictKind::Tight)
            Q_EMIT testStepRequested();
        else
            Q_EMIT smallestRequested(m_verdict.remedyBytes);
    });

    auto* first = new QHBoxLayout;
    first->setSpacing(10);
    first->addWidget(m_headline);
    first->addWidget(m_detail, 1);
    auto* second = new QHBoxLayout;
    second->setSpacing(10);
    second->addWidget(m_rate);
    second->addWidget(m_numbers, 1);
    auto* words = new QVBoxLayout;
    words->setSpacing(3);
    words->setContentsMargins(kMark, 0, 0, 0);
    words->addLayout(first);
    words->addLayout(second);
    auto* row = new QHBoxLayout;
    row->setSpacing(20);
    row->addLayout(words, 1);
    row->addWidget(m_remedy);
    row->addWidget(m_bar);
    body()->addLayout(row);
    layout()->setContentsMargins(kCardMargin, 6, kCardMargin, 8);
    static_cast<QVBoxLayout*>(layout())->setSpacing(0);
}

void VerdictView::setAnswer(const AnswerPointer& answer, const ComparisonPointer& comparison) {
    m_verdict = answer ? verdictOf(*answer, comparison.get()) : Verdict{};
    m_headline->setText(answer ? m_verdict.headline : tr("Planning"));
    std::vector<PartsLabel::Part> detail{{m_verdict.detail, 1}};
    if (!m_verdict.proof.isEmpty())
        detail.push_back({m_verdict.proof, 0});
    m_detail->setParts(std::move(detail));
    m_rate->setText(m_verdict.rate);
    std::vector<PartsLabel::Part> numbers;
    for (const VerdictNumber& number : m_verdict.numbers)
        numbers.push_back({number.text, number.importance});
    m_numbers->setParts(std::move(numbers));
    m_rate->setVisible(!m_verdict.rate.isEmpty());
    showButton();
    m_bar->setPlan(answer ? answer->plan : nullptr, answer ? answer->choices->cluster : contract::Cluster{});
    m_bar->setVisible(answer && answer->plan && answer->plan->feasible);
    setAccessibleDescription(m_verdict.headline + ' ' + m_detail->fullText() + ". " + m_verdict.rate + ' ' +
                             m_numbers->fullText());
    update();
}

void VerdictView::setCanTest(bool canTest) {
    m_canTest = canTest;
    showButton();
}

void VerdictView::showButton() {
    const bool isTight = m_verdict.kind == VerdictKind::Tight;
    m_remedy->setVisible(isTight ? m_canTest : m_verdict.kind == VerdictKind::DoesNotFit && m_verdict.remedyBytes > 0);
    m_remedy->setText(isTight ? tr("Run a test step")
                              : tr("Go to the smallest, %1").arg(gibText(m_verdict.remedyBytes, 2)));
    m_remedy->setToolTip(isTight ? tr("Trains one step here and says what it held beside the prediction") : QString());
}

void VerdictView::paintEvent(QPaintEvent* event) {
    Card::paintEvent(event);
    const Colors& colors = colorsOf(this);
    QPainter painter(this);
    painter.setRenderHint(QPainter::Antialiasing);
    QColor fill = colors.secondary;
    Glyph glyph = Glyph::Check;
    switch (m_verdict.kind) {
    case VerdictKind::Waiting:
        return;
    case VerdictKind::Fits:
        fill = colors.good;
        break;
    case VerdictKind::Tight:
        fill = colors.tight;
        glyph = Glyph::Warning;
        break;
    case VerdictKind::Beyond:
    case VerdictKind::DoesNotFit:
    case VerdictKind::Contradiction:
        fill = colors.limit;
        glyph = Glyph::Error;
        break;
    }
    const QRectF circle(kCardMargin, m_headline->geometry().center().y() - 8.0, 18, 18);
    painter.setPen(Qt::NoPen);
    painter.setBrush(fill);
    painter.drawEllipse(circle);
    drawGlyph(painter, glyph, circle, colors.dark ? colors.card : QColor(Qt::white));
}

} // namespace shardscope::app
