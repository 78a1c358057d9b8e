// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <vector>

namespace shardscope::app {

/// Round values inside [low, high], steps of 1, 2 or 5 times a power of ten.
struct Ticks {
    std::vector<double> values;
    double step = 0;
    int decimals = 0; ///< that tell neighbouring ticks apart
};

/// 1, 2 and 5 times powers of ten inside [low, high], for a logarithmic axis; `decimals` is that of the smallest.
Ticks logarithmicTicks(double low, double high);

/// At most `atMost` ticks (at least two where the range allows). An empty or inverted range gives none.
Ticks niceTicks(double low, double high, int atMost);

} // namespace shardscope::app
