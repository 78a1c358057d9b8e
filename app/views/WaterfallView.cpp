// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/views/WaterfallView.h"

#include "app/look/Theme.h"
#include "app/look/Units.h"

#include <QPainter>

#include <algorithm>
#include <cmath>
#include <numeric>

namespace shardscope::app {

namespace {

QColor causeColor(planner::Cause cause, const Colors& colors) {
    switch (cause) {
    case planner::Cause::Compute:
        return colors.backward;
    case planner::Cause::Recomputation:
        return colors.forward;
    case planner::Cause::ExposedGather:
        return colors.gather;
    case planner::Cause::ExposedReduce:
        return colors.reduce;
    case planner::Cause::Optimizer:
        return colors.optimizer;
    case planner::Cause::Fixed:
        return colors.other;
    }
    return colors.other;
}

/// Less than this share of a step is not worth a word.
constexpr double kWorthSaying = 5e-4;

} // namespace

WaterfallView::WaterfallView(QWidget* parent) : QWidget(parent) {
    setAccessibleName(tr("Difference of two plans' step times by cause"));
}

void WaterfallView::setComparison(const StepComparisonPointer& comparison) {
    m_comparison = comparison;
    m_steps = comparison && comparison->error.isEmpty() ? waterfallSteps(comparison->diff) : WaterfallSteps{};
    setAccessibleDescription(sentence());
    update();
}

QString WaterfallView::sentence() const {
    if (!m_comparison || !m_comparison->error.isEmpty())
        return {};
    const double difference = m_steps.to - m_steps.from;
    if (std::abs(difference) < kWorthSaying * m_steps.from)
        return tr("%1 takes as long").arg(m_comparison->bName);
    const QString head =
        (m_steps.perSample ? tr("%1 takes %2 %3 a sample") : tr("%1 takes %2 %3 a step"))
            .arg(m_comparison->bName, secondsText(std::abs(difference)), difference > 0 ? tr("more") : tr("less"));
    std::vector<std::size_t> order(m_steps.differences.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::sort(order.begin(), order.end(), [this](std::size_t a, std::size_t b) {
        return std::abs(m_steps.differences[a]) > std::abs(m_steps.differences[b]);
    });
    QStringList parts;
    for (std::size_t i = 0; i < 2; ++i)
        if (std::abs(m_steps.differences[order[i]]) >= kWorthSaying * m_steps.from)
            parts << tr("%1 %2").arg(causeText(static_cast<planner::Cause>(order[i])),
                                     signedSecondsText(m_steps.differences[order[i]]));
    return parts.isEmpty() ? head : tr("%1: %2").arg(head, parts.join(QStringLiteral(", ")));
}

void WaterfallView::paintEvent(QPaintEvent*) {
    const Colors& colors = colorsOf(this);
    QPainter painter(this);
    painter.fillRect(rect(), colors.card);
    painter.setFont(smallFont());
    if (!m_comparison || !m_comparison->error.isEmpty()) {
        painter.setPen(colors.secondary);
        painter.drawText(QRectF(rect()).adjusted(12, 0, -12, 0), Qt::AlignCenter | Qt::TextWordWrap,
                         m_comparison ? m_comparison->error : tr("There is no other plan to compare with yet"));
        return;
    }
    const auto bars = waterfallBars(m_steps);
    const WaterfallAxis axis = waterfallAxis(bars);
    const QFontMetricsF metrics(painter.font());
    const QRectF plot(4, 18, width() - 8.0, std::max(12.0, height() - 18.0 - 20));
    const double each = plot.width() / static_cast<double>(bars.size());
    const double bar = std::clamp(each * 0.62, 6.0, 96.0);
    const auto yOf = [&](double seconds) {
        return plot.bottom() - (seconds - axis.low) / (axis.high - axis.low) * plot.height();
    };
    painter.setPen(colors.line);
    painter.drawLine(QPointF(plot.left(), plot.bottom() + 0.5), QPointF(plot.right(), plot.bottom() + 0.5));
    double level = m_steps.from;
    for (std::size_t i = 0; i < bars.size(); ++i) {
        const WaterfallBar& content = bars[i];
        const double left = plot.left() + each * static_cast<double>(i) + (each - bar) / 2;
        const double top = yOf(content.high);
        const double bottom = content.isWhole ? plot.bottom() : yOf(content.low);
        const QRectF box(std::round(left), top, std::round(bar), std::max(bottom - top, 1.5));
        const auto cause = static_cast<planner::Cause>(content.isWhole ? 0 : i - 1);
        painter.fillRect(box, content.isWhole ? colors.text : causeColor(cause, colors));
        if (content.isWhole && axis.broken) {
            // The axis does not begin at zero, and these bars say so.
            painter.setRenderHint(QPainter::Antialiasing);
            painter.setPen(QPen(colors.card, 3));
            painter.drawLine(QPointF(box.left() - 2, plot.bottom() - 5), QPointF(box.right() + 2, plot.bottom() - 9));
            painter.setRenderHint(QPainter::Antialiasing, false);
        }
        if (!content.isWhole)
            level += content.difference;
        if (i + 1 < bars.size()) {
            painter.setPen(QPen(colors.secondary, 1, Qt::DotLine));
            const double y = std::round(yOf(level)) + 0.5;
            painter.drawLine(QPointF(box.right() + 1, y), QPointF(box.left() + each - 1, y));
        }
        const QString value = content.isWhole ? secondsText(content.high) : signedSecondsText(content.difference);
        QString name = content.isWhole ? (i == 0 ? tr("this plan") : m_comparison->bName) : causeText(cause);
        name = metrics.elidedText(name, Qt::ElideRight, each - 4);
        painter.setPen(colors.text);
        if (metrics.horizontalAdvance(value) < each - 2)
            painter.drawText(QRectF(left + bar / 2 - each / 2, top - 18, each, 15), Qt::AlignCenter, value);
        painter.setPen(colors.secondary);
        painter.drawText(QRectF(left + bar / 2 - each / 2, plot.bottom() + 4, each, 15), Qt::AlignCenter, name);
    }
}

} // namespace shardscope::app
