// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/views/PeakBarView.h"

#include "app/document/Verdict.h"
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
    setSizePolicy(QSizePolicy::Preferred, QSizePolicy::Preferred);
    setMaximumWidth(460);
}

void PeakBarView::setPlan(const planner::PlanResultPointer& plan, const contract::Cluster& cluster) {
    m_plan = plan;
    m_cardBytes = cluster.device.memoryBytes;
    m_owner = memoryOwnerWord(cluster);
    if (plan && plan->feasible)
        setAccessibleDescription(tr("%1 of %2 on the %3").arg(gibText(plan->peakBytes), gibText(m_cardBytes), m_owner));
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
    painter.setFont(smallFont());
    const QFontMetricsF metrics(painter.font());
    const QString cardText = QStringLiteral("%1 %2").arg(m_owner, unit.text(m_cardBytes));
    const double cardWidth = metrics.horizontalAdvance(cardText);
    const auto widthOf = [](const Text& text) {
        return QFontMetricsF(text.isBold ? smallBoldFont() : smallFont()).horizontalAdvance(text.text) + 16;
    };
    const auto widthOfAll = [&] {
        double width = 0;
        for (const Text& peak : peaks)
            width += widthOf(peak);
        return width;
    };
    // The largest peak stays; the others are in the tooltip where there is no room.
    while (peaks.size() > 1 && widthOfAll() + cardWidth > bar.width())
        peaks.erase(std::find_if(peaks.begin(), peaks.end(), [](const Text& peak) { return !peak.isBold; }));
    double x = bar.left();
    for (const Text& peak : peaks) {
        painter.setFont(peak.isBold ? smallBoldFont() : smallFont());
        painter.setPen(peak.isBold ? colors.text : colors.secondary);
        painter.drawText(QRectF(x, y, widthOf(peak), 16), Qt::AlignLeft | Qt::AlignVCenter, peak.text);
        x += widthOf(peak);
    }
    painter.setFont(smallFont());
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
        const auto line = [&text](const QString& name, std::int64_t bytes) {
            text +=
                QStringLiteral("<tr><td>%1&nbsp;&nbsp;</td><td align=right>%2</td></tr>").arg(name, bytesText(bytes));
        };
        line(tr("<b>peak</b>"), m_plan->peakBytes);
        line(tr("first step"), m_plan->peaks.firstStep);
        line(tr("resumed"), m_plan->peaks.resume);
        line(tr("optimizer step"), m_plan->peaks.optimizerStep);
        text += QStringLiteral("</table>");
        QToolTip::showText(help->globalPos(), text, this);
        return true;
    }
    return QWidget::event(event);
}

} // namespace shardscope::app
