// SPDX-License-Identifier: GPL-3.0-or-later
#include "runtime/execute/Schedule.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace shardscope::engine {

double learningRateAt(const contract::Optimizer& optimizer, std::int64_t step, std::int64_t steps) {
    if (step <= optimizer.warmupSteps)
        return optimizer.learningRate * static_cast<double>(step) / static_cast<double>(optimizer.warmupSteps);
    if (optimizer.schedule != "cosine")
        return optimizer.learningRate;
    const auto length = static_cast<double>(std::max<std::int64_t>(steps - optimizer.warmupSteps, 1));
    const double progress = std::min(1.0, static_cast<double>(step - optimizer.warmupSteps) / length);
    const double share = 0.5 * (1.0 + std::cos(std::numbers::pi * progress));
    return optimizer.minLearningRate + (optimizer.learningRate - optimizer.minLearningRate) * share;
}

} // namespace shardscope::engine
