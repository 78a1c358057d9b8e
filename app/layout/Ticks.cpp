// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/layout/Ticks.h"

#include <algorithm>
#include <cmath>

namespace shardscope::app {

Ticks niceTicks(double low, double high, int atMost) {
    Ticks ticks;
    if (!(high > low) || !std::isfinite(low) || !std::isfinite(high) || atMost < 1)
        return ticks;
    const double raw = (high - low) / atMost;
    const double power = std::pow(10.0, std::floor(std::log10(raw)));
    for (const double factor : {1.0, 2.0, 5.0, 10.0, 20.0}) {
        ticks.step = factor * power;
        const double first = std::ceil(low / ticks.step - 1e-9), last = std::floor(high / ticks.step + 1e-9);
        if (last - first + 1 > atMost)
            continue;
        for (double index = first; index <= last; ++index)
            ticks.values.push_back(index == 0 ? 0 : index * ticks.step);
        break;
    }
    ticks.decimals = std::max(0, static_cast<int>(-std::floor(std::log10(ticks.step) + 1e-9)));
    return ticks;
}

Ticks logarithmicTicks(double low, double high) {
    Ticks ticks;
    if (!(low > 0) || !(high > low) || !std::isfinite(high))
        return ticks;
    for (double power = std::pow(10.0, std::floor(std::log10(low))); power <= high; power *= 10)
        for (const double factor : {1.0, 2.0, 5.0})
            if (factor * power >= low && factor * power <= high)
                ticks.values.push_back(factor * power);
    if (!ticks.values.empty())
        ticks.decimals = std::max(0, static_cast<int>(-std::floor(std::log10(ticks.values.front()) + 1e-9)));
    return ticks;
}

} // namespace shardscope::app
