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
    void setPlan(const planner::PlanResultPointer& plan, std::int64_t cardBytes);
    QSize sizeHint() const override { return {520, 48}; }
    QSize minimumSizeHint() const override { return {330, 46}; }

protected:
    void paintEvent(QPaintEvent* event) override;
    bool event(QEvent* event) override;

private:
    planner::PlanResultPointer m_plan;
    std::int64_t m_cardBytes = 0;
};

/// The colours of the ledger's categories and of communication, in a row.
class Legend : public QWidget {
    Q_OBJECT
public:
    explicit Legend(QWidget* parent = nullptr);
    QSize sizeHint() const override;
    QSize minimumSizeHint() const override { return {10, 16}; }

protected:
    void paintEvent(QPaintEvent* event) override;
};

} // namespace shardscope::app
