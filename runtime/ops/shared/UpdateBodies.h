// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "runtime/ops/AdamW.h"
#include "runtime/ops/shared/Portable.h"

#include <cmath>

namespace shardscope::engine::shared {

/// A parameter and its moments in float32.
struct AdamWValue {
    float weight, firstMoment, secondMoment;
};

/// One parameter's step of AdamW (arXiv 1711.05101, algorithm 2).
SHARDSCOPE_SHARED AdamWValue adamWValue(const AdamWStep& step, float weightDecay, float gradient, AdamWValue value) {
    const float g = gradient * step.gradientScale;
    const float m = step.beta1 * value.firstMoment + (1.0F - step.beta1) * g;
    const float v = step.beta2 * value.secondMoment + (1.0F - step.beta2) * g * g;
    const float denominator = sqrtf(v * step.secondCorrection) + step.epsilon;
    const float shrunk = value.weight * (1.0F - step.learningRate * weightDecay);
    return {shrunk - step.learningRate * (m * step.firstCorrection) / denominator, m, v};
}

/// With a float32 master the weight is its nearest; without one, weight and moments are rounded stochastically, so that
/// steps smaller than their spacing are not lost on average. Element `i` of `index`.
template<typename E, typename G, typename M>
SHARDSCOPE_SHARED void adamWAt(const AdamWStep& step, float weightDecay, std::int64_t i, const G* gradient, E* weight,
                               float* master, M* firstMoment, M* secondMoment, std::uint64_t key,
                               std::int64_t firstIndex) {
    const AdamWValue before{master != nullptr ? master[i] : load(weight + i), load(firstMoment + i),
                            load(secondMoment + i)};
    const AdamWValue after = adamWValue(step, weightDecay, load(gradient + i), before);
    if (master != nullptr) {
        master[i] = after.weight;
        store(weight + i, after.weight);
        store(firstMoment + i, after.firstMoment);
        store(secondMoment + i, after.secondMoment);
        return;
    }
    const std::uint64_t random = mix(key + static_cast<std::uint64_t>(firstIndex + i));
    storeStochastically(weight + i, after.weight, static_cast<std::uint32_t>(random));
    storeStochastically(firstMoment + i, after.firstMoment, static_cast<std::uint32_t>(random >> 16));
    storeStochastically(secondMoment + i, after.secondMoment, static_cast<std::uint32_t>(random >> 32));
}

/// One parameter's step of SGD with momentum, in float32. Element `i`.
SHARDSCOPE_SHARED void sgdMomentumAt(const SgdStep& step, float weightDecay, std::int64_t i, const float* gradient,
                                     float* weight, float* momentum) {
    const float m = step.momentum * momentum[i] + (gradient[i] * step.gradientScale + weightDecay * weight[i]);
    momentum[i] = m;
    weight[i] -= step.learningRate * m;
}

/// A stretch's sum of squares, in double so that it does not depend on how tensors are cut.
template<typename G, typename Team>
SHARDSCOPE_SHARED double sumOfSquares(const Team& team, const G* values, std::int64_t begin, std::int64_t end) {
    double sum = 0;
    for (std::int64_t i = begin + team.rank(); i < end; i += team.size()) {
        const auto value = static_cast<double>(load(values + i));
        sum += value * value;
    }
    return team.sum(sum);
}

} // namespace shardscope::engine::shared
