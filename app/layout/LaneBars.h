// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "planner/timeline/Timeline.h"

#include <QString>

#include <array>
#include <cstdint>
#include <vector>

namespace shardscope::app {

/// What an interval of a step does, as the timeline colours it.
enum class StepPhase { Forward, Recompute, Backward, Optimizer, Gather, Reduce };
inline constexpr int kStepPhaseCount = 6;
StepPhase phaseOf(contract::StepCode code);
/// "forward", "gather": for legends and hovering.
QString phaseName(StepPhase phase);

/// What ran on one stream, in the order of time, without overlaps.
struct Lane {
    std::vector<planner::Interval> intervals;
    std::vector<std::int64_t> busyBefore; ///< picoseconds of all intervals before each, and of all
};
/// Compute and communication.
std::array<Lane, 2> makeLanes(const std::vector<planner::Interval>& intervals);

/// A rectangle of a lane: one interval, or what shares a pixel.
struct LaneBar {
    double left = 0, right = 0;
    StepPhase phase = StepPhase::Forward;
    double cover = 1;          ///< share of the rectangle in which the stream is busy
    std::int32_t interval = 0; ///< index into the lane; of several the longest
};
/// Bars of [begin, end) picoseconds on `width` pixels from `left`: at most two a pixel, in O(pixels log intervals).
std::vector<LaneBar> layoutLane(const Lane& lane, double begin, double end, double left, double width);

/// The interval at a time, or one at most `tolerance` away from it; -1 when there is none.
std::int32_t intervalAt(const Lane& lane, double picoseconds, double tolerance);

} // namespace shardscope::app
