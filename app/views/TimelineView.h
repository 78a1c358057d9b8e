// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "app/views/TimeChart.h"

namespace shardscope::app {

/// One step on its two streams: what is computed and what is sent, moment by moment.
class TimelineView : public TimeChart {
    Q_OBJECT
public:
    explicit TimelineView(QWidget* parent = nullptr);
    void setSelection(const std::vector<std::int32_t>& operators);
    /// Where a lane is painted: 0 compute, 1 communication; with a measured step each has its own under it.
    QRectF laneRect(int lane, bool isMeasured = false) const;
    /// "step 242 ms simulated · 38 ms exposed · 239 ms additive"
    QString summary() const;
    QSize sizeHint() const override { return {800, 110}; }
    QSize minimumSizeHint() const override { return {300, 70}; }

Q_SIGNALS:
    void selectionPicked(const std::vector<std::int32_t>& operators);

protected:
    void paintChart(QPainter& painter, const Colors& colors) override;
    QString describe(const QPointF& position) const override;
    void clicked(const QPointF& position, bool extend) override;

private:
    struct Hit {
        const planner::Interval* interval = nullptr;
        bool isMeasured = false;
    };
    Hit intervalUnder(const QPointF& position) const;
    void paintLane(QPainter& painter, const Colors& colors, const Lane& content, const QRectF& lane) const;
    bool isSelected(std::int32_t op) const;
    std::vector<std::int32_t> m_selection; ///< ascending
};

} // namespace shardscope::app
