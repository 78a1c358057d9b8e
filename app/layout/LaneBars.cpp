// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/layout/LaneBars.h"

#include <QCoreApplication>

#include <algorithm>
#include <cmath>

namespace shardscope::app {

StepPhase phaseOf(contract::StepCode code) {
    using contract::StepCode;
    switch (code) {
    case StepCode::Gather:
    case StepCode::GatherUpdated:
        return StepPhase::Gather;
    case StepCode::ReduceScatter:
    case StepCode::AllReduce:
        return StepPhase::Reduce;
    case StepCode::Recompute:
        return StepPhase::Recompute;
    case StepCode::Backward:
        return StepPhase::Backward;
    case StepCode::Clip:
    case StepCode::Update:
    case StepCode::Finish:
        return StepPhase::Optimizer;
    case StepCode::Load:
    case StepCode::Forward:
    case StepCode::Loss:
        break;
    }
    return StepPhase::Forward;
}

QString phaseName(StepPhase phase) {
    const auto tr = [](const char* text) { return QCoreApplication::translate("StepPhase", text); };
    switch (phase) {
    case StepPhase::Forward:
        return tr("forward");
    case StepPhase::Recompute:
        return tr("recompute");
    case StepPhase::Backward:
        return tr("backward");
    case StepPhase::Optimizer:
        return tr("optimizer");
    case StepPhase::Gather:
        return tr("gather");
    case StepPhase::Reduce:
        return tr("reduce");
    }
    return {};
}

std::array<Lane, 2> makeLanes(const std::vector<planner::Interval>& intervals) {
    std::array<Lane, 2> lanes;
    for (const planner::Interval& interval : intervals)
        lanes[interval.stream == planner::Stream::Compute ? 0 : 1].intervals.push_back(interval);
    for (Lane& lane : lanes) {
        std::sort(lane.intervals.begin(), lane.intervals.end(),
                  [](const planner::Interval& a, const planner::Interval& b) { return a.begin < b.begin; });
        lane.busyBefore.reserve(lane.intervals.size() + 1);
        std::int64_t busy = 0;
        for (const planner::Interval& interval : lane.intervals) {
            lane.busyBefore.push_back(busy);
            busy += interval.end - interval.begin;
        }
        lane.busyBefore.push_back(busy);
    }
    return lanes;
}

namespace {

/// The first interval that ends after `picoseconds`.
std::size_t firstAfter(const Lane& lane, double picoseconds) {
    const auto found = std::partition_point(
        lane.intervals.begin(), lane.intervals.end(),
        [picoseconds](const planner::Interval& interval) { return static_cast<double>(interval.end) <= picoseconds; });
    return static_cast<std::size_t>(found - lane.intervals.begin());
}

/// Of so many intervals that share a pixel the longest is looked for; of more, these stand for all.
constexpr std::size_t kLookedAt = 32;

LaneBar barOfPixel(const Lane& lane, std::size_t first, std::size_t last, double begin, double end) {
    LaneBar bar;
    std::int64_t longest = -1;
    for (std::size_t i = first; i < std::min(last, first + kLookedAt); ++i) {
        const std::int64_t length = lane.intervals[i].end - lane.intervals[i].begin;
        if (length > longest) {
            longest = length;
            bar.interval = static_cast<std::int32_t>(i);
        }
    }
    // What reaches beyond the pixel counts with its part inside.
    const double before = std::max(0.0, begin - static_cast<double>(lane.intervals[first].begin));
    const double after = std::max(0.0, static_cast<double>(lane.intervals[last - 1].end) - end);
    const auto busy = static_cast<double>(lane.busyBefore[last] - lane.busyBefore[first]);
    bar.cover = std::clamp((busy - before - after) / (end - begin), 0.0, 1.0);
    bar.phase = phaseOf(lane.intervals[static_cast<std::size_t>(bar.interval)].phase);
    return bar;
}

} // namespace

std::vector<LaneBar> layoutLane(const Lane& lane, double begin, double end, double left, double width) {
    std::vector<LaneBar> bars;
    if (!(end > begin) || width < 1 || lane.intervals.empty())
        return bars;
    const double pixel = (end - begin) / width;
    const auto xOf = [&](double picoseconds) { return left + (picoseconds - begin) / pixel; };
    double now = begin;
    for (std::size_t i = firstAfter(lane, now); i < lane.intervals.size(); i = firstAfter(lane, now)) {
        const planner::Interval& interval = lane.intervals[i];
        const double from = std::max(now, static_cast<double>(interval.begin));
        if (from >= end)
            break;
        const double to = std::min(end, static_cast<double>(interval.end));
        if (to - from >= pixel) {
            bars.push_back({xOf(from), xOf(to), phaseOf(interval.phase), 1, static_cast<std::int32_t>(i)});
            now = static_cast<double>(interval.end);
            continue;
        }
        // Everything that begins in the pixel's rest shares it, but for what goes on beyond it for a pixel or more.
        const double rest = std::min(end, begin + (std::floor((from - begin) / pixel) + 1) * pixel);
        std::size_t last = static_cast<std::size_t>(
            std::partition_point(
                lane.intervals.begin() + static_cast<std::ptrdiff_t>(i), lane.intervals.end(),
                [rest](const planner::Interval& other) { return static_cast<double>(other.begin) < rest; }) -
            lane.intervals.begin());
        if (last > i + 1 && static_cast<double>(lane.intervals[last - 1].end) - rest >= pixel)
            --last;
        const double until = std::max(rest, from + pixel * 0.01);
        LaneBar bar = barOfPixel(lane, i, last, from, until);
        bar.left = xOf(from);
        bar.right = std::max(xOf(until), bar.left + 0.5);
        bars.push_back(bar);
        now = std::max(until, now + pixel * 0.01);
        if (last < lane.intervals.size() && static_cast<double>(lane.intervals[last].begin) < now)
            now = static_cast<double>(lane.intervals[last].begin);
        now = std::max(now, static_cast<double>(lane.intervals[i].end));
    }
    return bars;
}

std::int32_t intervalAt(const Lane& lane, double picoseconds, double tolerance) {
    const std::size_t after = firstAfter(lane, picoseconds);
    double nearest = tolerance;
    std::int32_t found = -1;
    for (const std::size_t i : {after, after - 1}) {
        if (i >= lane.intervals.size()) // also 0 - 1
            continue;
        const double begin = static_cast<double>(lane.intervals[i].begin);
        const double end = static_cast<double>(lane.intervals[i].end);
        const double distance = picoseconds < begin ? begin - picoseconds : std::max(0.0, picoseconds - end);
        if (distance <= nearest && (found < 0 || distance < nearest)) {
            nearest = distance;
            found = static_cast<std::int32_t>(i);
        }
    }
    return found;
}

} // namespace shardscope::app
