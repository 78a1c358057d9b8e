// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "planner/search/Planner.h"

#include <QPolygonF>
#include <QRectF>

#include <cstdint>
#include <optional>
#include <vector>

namespace shardscope::app {

/// How far the estimate of a peak may be off: 3 %, and at least 0.3 GiB on a GPU.
std::int64_t estimateErrorBytes(std::int64_t peakBytes, bool isCpu);

/// Maps memory to x and samples per second to y.
struct FrontierAxis {
    QRectF plot;
    double lowBytes = 0, highBytes = 1;
    double lowRate = 0, highRate = 1;
    bool broken = false; ///< the y axis does not start at zero
    /// Equal factors of memory take equal widths: for graphs that need a small part of the card.
    bool logarithmic = false;

    double xOf(double bytes) const;
    double bytesAt(double x) const;
    double yOf(double rate) const { return plot.bottom() - (rate - lowRate) / (highRate - lowRate) * plot.height(); }
};

/// What must be visible: the curve, the card and the budget.
FrontierAxis frontierAxis(const planner::Frontier& frontier, const std::vector<planner::Baseline>& baselines,
                          std::int64_t cardBytes, std::int64_t budgetBytes, const QRectF& plot);

/// The curve as a staircase: a plan is as fast as the best one that needs no more memory. At most two points a pixel.
QPolygonF frontierCurve(const planner::Frontier& frontier, const FrontierAxis& axis);

/// The fastest point whose peak fits into `bytes`.
const planner::FrontierPoint* frontierPointAt(const planner::Frontier& frontier, std::int64_t bytes);

/// Budgets at which the counts of placements change, ascending.
std::vector<std::int64_t> flipBudgets(const planner::Frontier& frontier);
std::optional<std::int64_t> nextFlip(const std::vector<std::int64_t>& flips, std::int64_t bytes);
std::optional<std::int64_t> previousFlip(const std::vector<std::int64_t>& flips, std::int64_t bytes);

} // namespace shardscope::app
