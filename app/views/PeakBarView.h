// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "planner/search/Planner.h"

#include <QWidget>

namespace shardscope::app {

/// A device's peak as one stacked bar, with its three moments below.
class PeakBarView : public QWidget {
    Q_OBJECT
public:
    explicit PeakBarView(QWidget* parent = nullptr);
    void setPlan(const planner::PlanResultPointer& plan, const contract::Cluster& cluster);
    QSize sizeHint() const override { return {460, 48}; }
    QSize minimumSizeHint() const override { return {300, 46}; }

protected:
    void paintEvent(QPaintEvent* event) override;
    bool event(QEvent* event) override;

private:
    planner::PlanResultPointer m_plan;
    std::int64_t m_cardBytes = 0;
    QString m_owner; ///< "card"
};

} // namespace shardscope::app
