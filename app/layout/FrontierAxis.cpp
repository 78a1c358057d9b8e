// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/layout/FrontierAxis.h"

#include "runtime/contract/Bytes.h"

#include <algorithm>
#include <cmath>

namespace shardscope::app {

std::int64_t estimateErrorBytes(std::int64_t peakBytes, bool isCpu) {
    const std::int64_t share = peakBytes * 3 / 100;
    return isCpu ? share : std::max(share, contract::kGiB * 3 / 10);
}

double FrontierAxis::xOf(double bytes) const {
    const double share = logarithmic ? std::log(std::max(bytes, 1.0) / lowBytes) / std::log(highBytes / lowBytes)
                                     : (bytes - lowBytes) / (highBytes - lowBytes);
    return plot.left() + share * plot.width();
}

double FrontierAxis::bytesAt(double x) const {
    const double share = (x - plot.left()) / plot.width();
    return logarithmic ? lowBytes * std::pow(highBytes / lowBytes, share) : lowBytes + share * (highBytes - lowBytes);
}

FrontierAxis frontierAxis(const planner::Frontier& frontier, const std::vector<planner::Baseline>& baselines,
                          std::int64_t cardBytes, std::int64_t budgetBytes, const QRectF& plot) {
    FrontierAxis axis;
    axis.plot = plot;
    double low = static_cast<double>(std::min(cardBytes, budgetBytes));
    double high = static_cast<double>(std::max(cardBytes, budgetBytes));
    if (frontier.points.empty())
        low = std::min(low, 0.2 * static_cast<double>(cardBytes)); // the curve is still to come
    double slowest = 0, fastest = 0;
    const auto includeRate = [&](double rate) {
        if (rate <= 0)
            return;
        slowest = slowest == 0 ? rate : std::min(slowest, rate);
        fastest = std::max(fastest, rate);
    };
    // Far beyond the card the curve may go on to where everything is replicated; the card stays in the middle.
    const double farthest = 1.35 * static_cast<double>(std::max(cardBytes, budgetBytes));
    for (const planner::FrontierPoint& point : frontier.points) {
        low = std::min(low, static_cast<double>(point.peakBytes));
        high = std::max(high, std::min(farthest, static_cast<double>(point.peakBytes)));
        if (static_cast<double>(point.peakBytes) <= farthest)
            includeRate(point.samplesPerSecond);
    }
    for (const planner::Baseline& baseline : baselines)
        if (baseline.feasible)
            includeRate(baseline.samplesPerSecond);
    const double span = std::max(high - low, static_cast<double>(contract::kMiB));
    axis.lowBytes = std::max(0.0, low - 0.05 * span);
    axis.highBytes = high + 0.04 * span;
    if (!frontier.points.empty() && high > planner::kWideRange * low) {
        axis.logarithmic = true;
        axis.lowBytes = low * 0.8;
        axis.highBytes = high * 1.25;
    }
    if (fastest <= 0)
        return axis;
    axis.highRate = fastest + 0.12 * (fastest - 0.5 * slowest);
    axis.lowRate = 0;
    if (slowest > 0.45 * fastest) {
        axis.broken = true;
        axis.lowRate = std::max(0.0, slowest - 0.25 * std::max(fastest - slowest, 0.06 * fastest));
        axis.highRate = fastest + 0.2 * std::max(fastest - slowest, 0.06 * fastest);
    }
    return axis;
}

QPolygonF frontierCurve(const planner::Frontier& frontier, const FrontierAxis& axis) {
    QPolygonF curve;
    double best = -1, lastX = -1e9;
    for (const planner::FrontierPoint& point : frontier.points) {
        if (point.samplesPerSecond <= best)
            continue;
        const double x = axis.xOf(static_cast<double>(point.peakBytes)), y = axis.yOf(point.samplesPerSecond);
        if (best >= 0 && x - lastX >= 1)
            curve << QPointF(x, axis.yOf(best));
        curve << QPointF(x, y);
        best = point.samplesPerSecond;
        lastX = x;
    }
    if (!curve.isEmpty())
        curve << QPointF(std::max(axis.plot.right(), curve.last().x()), curve.last().y());
    return curve;
}

const planner::FrontierPoint* frontierPointAt(const planner::Frontier& frontier, std::int64_t bytes) {
    const planner::FrontierPoint* best = nullptr;
    for (const planner::FrontierPoint& point : frontier.points)
        if (point.peakBytes <= bytes && (!best || point.samplesPerSecond > best->samplesPerSecond))
            best = &point;
    return best;
}

std::vector<std::int64_t> flipBudgets(const planner::Frontier& frontier) {
    std::vector<std::int64_t> flips;
    for (std::size_t i = 1; i < frontier.points.size(); ++i) {
        const auto& a = frontier.points[i - 1].counts;
        const auto& b = frontier.points[i].counts;
        if (a.replicate != b.replicate || a.keep != b.keep || a.shard != b.shard || a.split != b.split)
            flips.push_back(frontier.points[i].peakBytes);
    }
    std::sort(flips.begin(), flips.end());
    flips.erase(std::unique(flips.begin(), flips.end()), flips.end());
    return flips;
}

std::optional<std::int64_t> nextFlip(const std::vector<std::int64_t>& flips, std::int64_t bytes) {
    const auto found = std::upper_bound(flips.begin(), flips.end(), bytes);
    return found == flips.end() ? std::nullopt : std::optional(*found);
}

std::optional<std::int64_t> previousFlip(const std::vector<std::int64_t>& flips, std::int64_t bytes) {
    const auto found = std::lower_bound(flips.begin(), flips.end(), bytes);
    return found == flips.begin() ? std::nullopt : std::optional(*std::prev(found));
}

} // namespace shardscope::app
