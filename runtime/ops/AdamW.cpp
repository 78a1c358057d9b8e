// SPDX-License-Identifier: GPL-3.0-or-later
#include "runtime/ops/AdamW.h"

#include "runtime/ops/Vectorised.h"

#include <cmath>

namespace shardscope::engine {

SHARDSCOPE_VECTORISED
void adamW(const AdamWStep& step, float weightDecay, std::int64_t count, const float* __restrict gradient,
           float* __restrict weight, float* __restrict firstMoment, float* __restrict secondMoment) {
    const AdamWStep s = step;
    const float shrink = 1.0F - s.learningRate * weightDecay;
    for (std::int64_t i = 0; i < count; ++i) {
        const float g = gradient[i] * s.gradientScale;
        const float m = s.beta1 * firstMoment[i] + (1.0F - s.beta1) * g;
        const float v = s.beta2 * secondMoment[i] + (1.0F - s.beta2) * g * g;
        firstMoment[i] = m;
        secondMoment[i] = v;
        const float denominator = std::sqrt(v * s.secondCorrection) + s.epsilon;
        weight[i] = weight[i] * shrink - s.learningRate * (m * s.firstCorrection) / denominator;
    }
}

SHARDSCOPE_VECTORISED
void sgdMomentum(const SgdStep& step, float weightDecay, std::int64_t count, const float* __restrict gradient,
                 float* __restrict weight, float* __restrict momentum) {
    const SgdStep s = step;
    for (std::int64_t i = 0; i < count; ++i) {
        const float m = s.momentum * momentum[i] + (gradient[i] * s.gradientScale + weightDecay * weight[i]);
        momentum[i] = m;
        weight[i] -= s.learningRate * m;
    }
}

SHARDSCOPE_VECTORISED
double sumOfSquares(const float* values, std::int64_t count) {
    double lanes[kLanes] = {};
    std::int64_t i = 0;
    for (; i + kLanes <= count; i += kLanes)
        for (int lane = 0; lane < kLanes; ++lane)
            lanes[lane] += static_cast<double>(values[i + lane]) * static_cast<double>(values[i + lane]);
    for (; i < count; ++i)
        lanes[0] += static_cast<double>(values[i]) * static_cast<double>(values[i]);
    double sum = 0;
    for (const double lane : lanes)
        sum += lane;
    return sum;
}

} // namespace shardscope::engine
