// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/views/TimelineView.h"

#include "app/look/Theme.h"
#include "app/look/Units.h"

#include <QPainter>

#include <algorithm>

namespace shardscope::app {

namespace {

constexpr double kLaneGap = 8;
constexpr double kTallestLane = 46;

} // namespace

TimelineView::TimelineView(QWidget* parent) : TimeChart(parent) {
    setAccessibleName(tr("Timeline of one step"));
    setAccessibleDescription(tr("Compute and communication of one simulated step. Left and right move, plus and minus "
                                "zoom, Home shows the whole step. The communication table lists the same transfers."));
}

void TimelineView::setSelection(const std::vector<std::int32_t>& operators) {
    m_selection = operators;
    update();
}

bool TimelineView::isSelected(std::int32_t op) const {
    return std::binary_search(m_selection.begin(), m_selection.end(), op);
}

QRectF TimelineView::laneRect(int lane) const {
    const QRectF area = plot();
    const double height = std::clamp((area.height() - 3 * kLaneGap) / 2, 10.0, kTallestLane);
    const double top = area.top() + (area.height() - 2 * height - kLaneGap) / 2;
    return {area.left(), top + lane * (height + kLaneGap), area.width(), height};
}

QString TimelineView::summary() const {
    if (!hasPicture())
        return {};
    return tr("step %1 simulated · %2 exposed · %3 additive")
        .arg(secondsText(planner::toSeconds(picture()->stepPicoseconds)),
             secondsText(planner::toSeconds(picture()->exposedPicoseconds)), secondsText(picture()->additiveSeconds));
}

void TimelineView::paintChart(QPainter& painter, const Colors& colors) {
    const QString names[2] = {tr("compute"), tr("communication")};
    const double opacity = painter.opacity();
    for (int i = 0; i < 2; ++i) {
        const QRectF lane = laneRect(i);
        painter.setPen(colors.secondary);
        painter.drawText(QRectF(0, lane.top(), lane.left() - 10, lane.height()), Qt::AlignRight | Qt::AlignVCenter,
                         names[i]);
        painter.fillRect(lane, colors.field);
        const Lane& content = picture()->lanes[static_cast<std::size_t>(i)];
        const auto bars = layoutLane(content, beginPicoseconds(), endPicoseconds(), lane.left(), lane.width());
        for (const LaneBar& bar : bars) {
            // Neighbours of one colour stay apart where there is room for a gap.
            const double gap = bar.right - bar.left >= 4 ? 1 : 0;
            painter.setOpacity(opacity * (0.25 + 0.75 * bar.cover));
            painter.fillRect(QRectF(bar.left, lane.top(), bar.right - bar.left - gap, lane.height()),
                             phaseBrush(bar.phase, colors));
        }
        painter.setOpacity(opacity);
        if (m_selection.empty())
            continue;
        QColor wash = colors.accent;
        wash.setAlphaF(0.30F);
        for (const LaneBar& bar : bars) {
            if (!isSelected(content.intervals[static_cast<std::size_t>(bar.interval)].op))
                continue;
            const QRectF box(bar.left, lane.top() - 3, std::max(1.5, bar.right - bar.left), lane.height() + 6);
            painter.fillRect(box, wash);
            painter.fillRect(QRectF(box.left(), box.top(), box.width(), 2), colors.accent);
            painter.fillRect(QRectF(box.left(), box.bottom() - 2, box.width(), 2), colors.accent);
        }
    }
}

const planner::Interval* TimelineView::intervalUnder(const QPointF& position) const {
    for (int i = 0; i < 2; ++i) {
        if (!laneRect(i).contains(position))
            continue;
        const Lane& lane = picture()->lanes[static_cast<std::size_t>(i)];
        const double pixel = picosecondsAt(1) - picosecondsAt(0);
        const std::int32_t found = intervalAt(lane, picosecondsAt(position.x()), 1.5 * pixel);
        return found < 0 ? nullptr : &lane.intervals[static_cast<std::size_t>(found)];
    }
    return nullptr;
}

QString TimelineView::describe(const QPointF& position) const {
    if (!hasPicture())
        return {};
    const planner::Interval* interval = intervalUnder(position);
    if (!interval)
        return {};
    const auto& operators = picture()->plan->request.graph->operators;
    QString name = interval->op < 0 ? tr("all operators")
                                    : QString::fromStdString(operators[static_cast<std::size_t>(interval->op)].name);
    const bool isCollective = interval->stream == planner::Stream::Communication;
    if (isCollective && interval->op >= 0 && interval->part < 0) {
        const std::string& block = operators[static_cast<std::size_t>(interval->op)].blockName;
        name = tr("%1, coalesced").arg(QString::fromStdString(block));
    }
    QString text = QStringLiteral("<b>%1</b><br>%2, %3")
                       .arg(name.toHtmlEscaped(), phaseName(phaseOf(interval->phase)),
                            secondsText(planner::toSeconds(interval->end - interval->begin)));
    if (isCollective)
        text += QStringLiteral(", %1").arg(bytesText(interval->bytes));
    const auto& placement = interval->op >= 0
                                ? picture()->plan->operators[static_cast<std::size_t>(interval->op)].placement
                                : contract::Placement{};
    if (interval->part >= 0 && placement.isSplit())
        text += tr("<br>slice %1 of %2").arg(interval->part + 1).arg(placement.slices);
    if (picture()->plan->training.accumulate > 1)
        text += tr("<br>micro-step %1 of %2").arg(interval->microStep + 1).arg(picture()->plan->training.accumulate);
    return text + tr("<br>from %1").arg(secondsText(planner::toSeconds(interval->begin)));
}

void TimelineView::clicked(const QPointF& position, bool extend) {
    const planner::Interval* interval = intervalUnder(position);
    std::vector<std::int32_t> operators = extend ? m_selection : std::vector<std::int32_t>();
    if (interval && interval->op >= 0) {
        const auto& plan = *picture()->plan;
        if (interval->stream == planner::Stream::Communication && interval->part < 0) {
            // One collective of a block: all that take part in it.
            const auto& graph = plan.request.graph->operators;
            const std::int32_t block = graph[static_cast<std::size_t>(interval->op)].block;
            for (const planner::PlannedOperator& planned : plan.operators)
                if (planned.coalesced && graph[static_cast<std::size_t>(planned.op)].block == block)
                    operators.push_back(planned.op);
        }
        operators.push_back(interval->op);
    }
    std::sort(operators.begin(), operators.end());
    operators.erase(std::unique(operators.begin(), operators.end()), operators.end());
    Q_EMIT selectionPicked(operators);
}

} // namespace shardscope::app
