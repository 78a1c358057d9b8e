// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/layout/TimeWindow.h"

#include <algorithm>

namespace shardscope::app {

TimeWindow zoomed(const TimeWindow& window, double factor, double center, double narrowest) {
    const double width = std::clamp(window.width() * factor, narrowest, 1.0);
    const double before = window.width() > 0 ? (center - window.begin) / window.width() : 0.5;
    return panned({center - before * width, center - before * width + width}, 0);
}

TimeWindow panned(const TimeWindow& window, double shift) {
    const double width = std::min(1.0, window.width());
    const double begin = std::clamp(window.begin + shift, 0.0, 1.0 - width);
    return {begin, begin + width};
}

} // namespace shardscope::app
