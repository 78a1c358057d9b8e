// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "app/layout/WaterfallBars.h"
#include "app/work/Simulating.h"

#include <QWidget>

namespace shardscope::app {

/// Where the step time of another plan differs from this plan's, cause by cause.
class WaterfallView : public QWidget {
    Q_OBJECT
public:
    explicit WaterfallView(QWidget* parent = nullptr);
    /// Null while there is nothing to compare.
    void setComparison(const StepComparisonPointer& comparison);
    const StepComparisonPointer& comparison() const { return m_comparison; }
    const WaterfallSteps& steps() const { return m_steps; }
    /// "FSDP takes 310 ms more a step: 240 ms gather, 70 ms recompute"
    QString sentence() const;
    QSize sizeHint() const override { return {800, 110}; }
    QSize minimumSizeHint() const override { return {300, 60}; }

protected:
    void paintEvent(QPaintEvent* event) override;

private:
    StepComparisonPointer m_comparison;
    WaterfallSteps m_steps;
};

} // namespace shardscope::app
