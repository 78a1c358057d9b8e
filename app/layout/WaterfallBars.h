// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "planner/timeline/PlanDiff.h"

#include <QString>

#include <vector>

namespace shardscope::app {

/// From one plan's step time to another's, cause by cause. Seconds of a step, or of a sample of the global batch where
/// the batches differ.
struct WaterfallSteps {
    double from = 0;
    double to = 0;
    std::array<double, planner::kCauseCount> differences{}; ///< sum to `to` - `from`
    bool perSample = false;
};
WaterfallSteps waterfallSteps(const planner::PlanDiff& diff);

/// "compute", "gather", ...
QString causeText(planner::Cause cause);

/// One column of the chart, in seconds.
struct WaterfallBar {
    double low = 0;
    double high = 0;
    double difference = 0; ///< 0 for the two whole times
    bool isWhole = false;
};
/// The first plan's time, a floating bar for each cause, the second plan's time.
std::vector<WaterfallBar> waterfallBars(const WaterfallSteps& steps);

/// The part of the axis that shows the differences: from zero where that leaves them readable, else torn.
struct WaterfallAxis {
    double low = 0;
    double high = 1;
    bool broken = false;
};
WaterfallAxis waterfallAxis(const std::vector<WaterfallBar>& bars);

} // namespace shardscope::app
