// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/views/TimelineView.h"

#include "app/look/Theme.h"
#include "app/look/Units.h"

#include <QPainter>

#include <algorithm>

namespace shardscope::app {

namespace {

constexpr double kLaneGap = 8;
constexpr double kPairGap = 2;
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

QRectF TimelineView::laneRect(int lane, bool isMeasured) const {
    const QRectF area = plot();
    const bool hasMeasured = picture() && picture()->measured;
    const int count = hasMeasured ? 4 : 2;
    const double inner = hasMeasured ? kPairGap : 0; // a measured lane keeps close to its prediction
    const double height =
        std::clamp((area.height() - 3 * kLaneGap - (hasMeasured ? 2 * inner : 0)) / count, 6.0, kTallestLane);
    const double pair = hasMeasured ? 2 * height + inner : height;
    const double top = area.top() + (area.height() - 2 * pair - kLaneGap) / 2;
    return {area.left(), top + lane * (pair + kLaneGap) + (isMeasured ? height + inner : 0), area.width(), height};
}

QString TimelineView::summary() const {
    if (!hasPicture())
        return {};
    if (const RunReviewPointer& measured = picture()->measured)
        return tr("%1 simulated · %2 measured")
            .arg(secondsText(planner::toSeconds(picture()->stepPicoseconds)),
                 secondsText(planner::toSeconds(measured->endPicoseconds)));
    return tr("step %1 simulated · %2 exposed · %3 additive")
        .arg(secondsText(planner::toSeconds(picture()->stepPicoseconds)),
             secondsText(planner::toSeconds(picture()->exposedPicoseconds)), secondsText(picture()->additiveSeconds));
}

void TimelineView::paintLane(QPainter& painter, const Colors& colors, const Lane& content, const QRectF& lane) const {
    const double opacity = painter.opacity();
    painter.fillRect(lane, colors.field);
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
        return;
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

void TimelineView::paintChart(QPainter& painter, const Colors& colors) {
    const QString names[2] = {tr("compute"), tr("communication")};
    const auto name = [&](double y, const QString& text) {
        painter.setPen(colors.secondary);
        painter.drawText(QRectF(0, y - 8, laneRect(0).left() - 10, 16), Qt::AlignRight | Qt::AlignVCenter, text);
    };
    for (int i = 0; i < 2; ++i) {
        const QRectF lane = laneRect(i), under = laneRect(i, true);
        paintLane(painter, colors, picture()->lanes[static_cast<std::size_t>(i)], lane);
        if (!picture()->measured) {
            name(lane.center().y(), names[i]);
            continue;
        }
        paintLane(painter, colors, picture()->measured->lanes[static_cast<std::size_t>(i)], under);
        // Where two names would touch, one stands for both lanes; the note above says what lies under what.
        constexpr double kLine = 15;
        const bool hasRoom = under.center().y() - lane.center().y() >= kLine;
        name(hasRoom ? lane.center().y() : (lane.top() + under.bottom()) / 2, names[i]);
        if (hasRoom)
            name(under.center().y(), tr("measured"));
    }
}

TimelineView::Hit TimelineView::intervalUnder(const QPointF& position) const {
    for (int i = 0; i < 4; ++i) {
        const bool isMeasured = i % 2 == 1;
        if ((isMeasured && !picture()->measured) || !laneRect(i / 2, isMeasured).contains(position))
            continue;
        const auto& lanes = isMeasured ? picture()->measured->lanes : picture()->lanes;
        const Lane& lane = lanes[static_cast<std::size_t>(i / 2)];
        const double pixel = picosecondsAt(1) - picosecondsAt(0);
        const std::int32_t found = intervalAt(lane, picosecondsAt(position.x()), 1.5 * pixel);
        return {found < 0 ? nullptr : &lane.intervals[static_cast<std::size_t>(found)], isMeasured};
    }
    return {};
}

QString TimelineView::describe(const QPointF& position) const {
    if (!hasPicture())
        return {};
    const auto [interval, isMeasured] = intervalUnder(position);
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
    if (isMeasured) // the trace names the operator and no more
        return text + tr(", measured<br>from %1").arg(secondsText(planner::toSeconds(interval->begin)));
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
    const planner::Interval* interval = intervalUnder(position).interval;
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
