// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/views/PeakBarView.h"

#include "app/layout/PeakBar.h"
#include "app/look/Theme.h"
#include "app/look/Units.h"

#include <QHelpEvent>
#include <QPainter>
#include <QPainterPath>
#include <QToolTip>

#include <algorithm>
#include <array>

namespace shardscope::app {

namespace {

constexpr double kBarHeight = 20;

} // namespace

PeakBarView::PeakBarView(QWidget* parent) : QWidget(parent) {
    setAccessibleName(tr("Peak memory of a device"));
    setMouseTracking(true);
}

void PeakBarView::setPlan(const planner::PlanResultPointer& plan, std::int64_t cardBytes) {
    m_plan = plan;
    m_cardBytes = cardBytes;
    if (plan && plan->feasible)
        setAccessibleDescription(tr("%1 of %2 on the card").arg(gibText(plan->peakBytes), gibText(cardBytes)));
    update();
}

void PeakBarView::paintEvent(QPaintEvent*) {
    if (!m_plan || m_cardBytes <= 0)
        return;
    const Colors& colors = colorsOf(this);
    QPainter painter(this);
    painter.setRenderHint(QPainter::Antialiasing);
    const contract::Ledger ledger = m_plan->feasible ? m_plan->ledger : contract::Ledger{};
    const PeakBarLayout layout = layoutPeakBar(ledger, m_plan->limitBytes, m_cardBytes, width() - 2.0);
    const QRectF bar(1, 2, width() - 2.0, kBarHeight);
    const QRectF card(bar.left(), bar.top(), layout.cardX, kBarHeight);

    QPainterPath outline;
    outline.addRoundedRect(card, 4, 4);
    painter.setPen(Qt::NoPen);
    painter.setBrush(colors.field);
    painter.drawPath(outline);
    QPainterPath clip;
    clip.addRoundedRect(bar, 4, 4);
    painter.save();
    painter.setClipPath(clip);
    for (const PeakSegment& segment : layout.segments)
        painter.fillRect(
            QRectF(bar.left() + segment.span.begin, bar.top(), std::max(0.0, segment.span.width() - 1), kBarHeight),
            partBrush(segment.part, colors));
    painter.restore();
    painter.setPen(QPen(colors.line, 1));
    painter.setBrush(Qt::NoBrush);
    painter.drawPath(outline);

    const double budget = bar.left() + layout.budgetX, cardX = bar.left() + layout.cardX;
    if (layout.cardX < bar.width() - 1) {
        painter.setPen(QPen(colors.limit, 2));
        painter.drawLine(QPointF(cardX, 0), QPointF(cardX, kBarHeight + 4));
    }
    painter.setPen(QPen(colors.accent, 2));
    painter.drawLine(QPointF(std::min(budget, bar.right()), 0), QPointF(std::min(budget, bar.right()), kBarHeight + 4));

    struct Text {
        QString text;
        bool isBold;
    };
    const MemoryUnit unit = memoryUnit(std::max(m_cardBytes, m_plan->limitBytes));
    std::vector<Text> peaks;
    if (m_plan->feasible) {
        const contract::Peaks& p = m_plan->peaks;
        const std::int64_t largest = std::max({p.firstStep, p.resume, p.optimizerStep});
        peaks = {{tr("first step %1").arg(unit.number(p.firstStep)), p.firstStep == largest},
                 {tr("resumed %1").arg(unit.number(p.resume)), p.resume == largest && p.firstStep != largest},
                 {tr("optimizer step %1").arg(unit.number(p.optimizerStep)),
                  p.optimizerStep == largest && p.firstStep != largest && p.resume != largest}};
    }
    const double y = kBarHeight + 7;
    double x = bar.left();
    for (const Text& peak : peaks) {
        painter.setFont(peak.isBold ? smallBoldFont() : smallFont());
        painter.setPen(peak.isBold ? colors.text : colors.secondary);
        const double width = QFontMetricsF(painter.font()).horizontalAdvance(peak.text);
        painter.drawText(QRectF(x, y, width + 2, 16), Qt::AlignLeft | Qt::AlignVCenter, peak.text);
        x += width + 18;
    }
    painter.setFont(smallFont());
    const QFontMetricsF metrics(painter.font());
    const QString cardText = tr("card %1").arg(unit.text(m_cardBytes));
    const double cardWidth = metrics.horizontalAdvance(cardText);
    const double cardLeft = std::clamp(cardX - cardWidth, x, std::max(x, bar.right() - cardWidth));
    painter.setPen(colors.secondary);
    painter.drawText(QRectF(cardLeft, y, cardWidth + 2, 16), Qt::AlignLeft | Qt::AlignVCenter, cardText);
    const QString budgetText = tr("budget %1").arg(unit.number(m_plan->limitBytes));
    const double budgetWidth = metrics.horizontalAdvance(budgetText);
    const double budgetLeft = budget - budgetWidth / 2;
    if (budgetLeft > x && budgetLeft + budgetWidth + 12 < cardLeft) {
        painter.setPen(colors.accent);
        painter.drawText(QRectF(budgetLeft, y, budgetWidth + 2, 16), Qt::AlignLeft | Qt::AlignVCenter, budgetText);
    }
}

bool PeakBarView::event(QEvent* event) {
    if (event->type() == QEvent::ToolTip && m_plan && m_plan->feasible) {
        const auto* help = static_cast<QHelpEvent*>(event);
        QString text = QStringLiteral("<table cellspacing=0 cellpadding=0>");
        const MemoryParts parts = partsOf(m_plan->ledger);
        for (int i = 0; i < kMemoryPartCount; ++i)
            if (parts[static_cast<std::size_t>(i)] > 0)
                text += QStringLiteral("<tr><td>%1&nbsp;&nbsp;</td><td align=right>%2</td></tr>")
                            .arg(partName(static_cast<MemoryPart>(i)), bytesText(parts[static_cast<std::size_t>(i)]));
        text +=
            tr("<tr><td><b>peak</b></td><td align=right><b>%1</b></td></tr></table>").arg(bytesText(m_plan->peakBytes));
        QToolTip::showText(help->globalPos(), text, this);
        return true;
    }
    return QWidget::event(event);
}

namespace {

struct LegendItem {
    QString text;
    QBrush brush;
};

std::vector<LegendItem> legendItems(const Colors& colors) {
    std::vector<LegendItem> items;
    for (const MemoryPart part : {MemoryPart::Parameters, MemoryPart::Gradients, MemoryPart::Optimizer,
                                  MemoryPart::Activations, MemoryPart::Slots})
        items.push_back({partName(part), partBrush(part, colors)});
    items.push_back({Legend::tr("exposed"), colors.exposed});
    items.push_back({Legend::tr("hidden"), colors.hidden});
    return items;
}

} // namespace

Legend::Legend(QWidget* parent) : QWidget(parent) {
    setAccessibleName(tr("Legend"));
}

QSize Legend::sizeHint() const {
    const QFontMetricsF metrics(smallFont());
    double width = 0;
    for (const LegendItem& item : legendItems(colorsOf(this)))
        width += metrics.horizontalAdvance(item.text) + 28;
    return {static_cast<int>(width) + 2, 16};
}

void Legend::paintEvent(QPaintEvent*) {
    const Colors& colors = colorsOf(this);
    QPainter painter(this);
    painter.setRenderHint(QPainter::Antialiasing);
    painter.setFont(smallFont());
    const QFontMetricsF metrics(painter.font());
    double x = 0;
    for (const LegendItem& item : legendItems(colors)) {
        const double width = metrics.horizontalAdvance(item.text);
        if (x + width + 15 > this->width())
            break;
        painter.setPen(Qt::NoPen);
        painter.setBrush(item.brush);
        painter.drawRoundedRect(QRectF(x, height() / 2.0 - 4.5, 9, 9), 2, 2);
        painter.setPen(colors.secondary);
        painter.drawText(QRectF(x + 14, 0, width + 2, height()), Qt::AlignLeft | Qt::AlignVCenter, item.text);
        x += width + 28;
    }
}

} // namespace shardscope::app
