// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/layout/WaterfallBars.h"

#include <QCoreApplication>

#include <algorithm>

namespace shardscope::app {

WaterfallSteps waterfallSteps(const planner::PlanDiff& diff) {
    WaterfallSteps steps;
    steps.perSample = !diff.sameBatch();
    const auto a = diff.a.secondsPerSample(), b = diff.b.secondsPerSample();
    for (std::size_t i = 0; i < steps.differences.size(); ++i) {
        const double left = steps.perSample ? a[i] : planner::toSeconds(diff.a.time.picoseconds[i]);
        const double right = steps.perSample ? b[i] : planner::toSeconds(diff.b.time.picoseconds[i]);
        steps.from += left;
        steps.to += right;
        steps.differences[i] = right - left;
    }
    return steps;
}

QString causeText(planner::Cause cause) {
    const auto tr = [](const char* text) { return QCoreApplication::translate("Waterfall", text); };
    switch (cause) {
    case planner::Cause::Compute:
        return tr("compute");
    case planner::Cause::Recomputation:
        return tr("recompute");
    case planner::Cause::ExposedGather:
        return tr("gather");
    case planner::Cause::ExposedReduce:
        return tr("reduce");
    case planner::Cause::Optimizer:
        return tr("optimizer");
    case planner::Cause::Fixed:
        return tr("latency");
    }
    return {};
}

std::vector<WaterfallBar> waterfallBars(const WaterfallSteps& steps) {
    std::vector<WaterfallBar> bars{{0, steps.from, 0, true}};
    double now = steps.from;
    for (const double difference : steps.differences) {
        const double next = now + difference;
        bars.push_back({std::min(now, next), std::max(now, next), difference, false});
        now = next;
    }
    bars.push_back({0, steps.to, 0, true});
    return bars;
}

WaterfallAxis waterfallAxis(const std::vector<WaterfallBar>& bars) {
    WaterfallAxis axis;
    double low = -1, high = 0;
    for (const WaterfallBar& bar : bars) {
        // Of a whole time only its end matters; both ends of a difference do.
        const double bottom = bar.isWhole ? bar.high : bar.low;
        low = low < 0 ? bottom : std::min(low, bottom);
        high = std::max(high, bar.high);
    }
    const double span = std::max(high - low, 1e-3 * high);
    axis.high = high + 0.05 * span;
    axis.broken = low - span > 0;
    axis.low = axis.broken ? low - 0.35 * span : 0;
    if (axis.high <= axis.low)
        axis.high = axis.low + 1e-9;
    return axis;
}

} // namespace shardscope::app
