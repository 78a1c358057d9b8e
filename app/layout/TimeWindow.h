// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

namespace shardscope::app {

/// The part of a step that charts of time show, as shares of the step.
struct TimeWindow {
    double begin = 0;
    double end = 1;
    double width() const { return end - begin; }
    bool isWhole() const { return begin <= 0 && end >= 1; }
    bool operator==(const TimeWindow&) const = default;
};

/// Makes the window `factor` times as wide around `center`, a share of the step that keeps its place. Stays inside the
/// step and at least as wide as `narrowest`.
TimeWindow zoomed(const TimeWindow& window, double factor, double center, double narrowest);
/// Moves the window by a share of the step, not beyond its ends.
TimeWindow panned(const TimeWindow& window, double shift);

} // namespace shardscope::app
