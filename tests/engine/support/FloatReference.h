// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <functional>
#include <random>
#include <vector>

/// What kernels are compared with: the same formulas in float64, and their numeric gradients.
namespace shardscope::testing {

using Floats = std::vector<float>;
using Doubles = std::vector<double>;

inline Floats randomFloats(std::size_t count, unsigned seed, float scale = 1.0F) {
    std::mt19937 generator(seed);
    std::normal_distribution<float> normal(0.0F, scale);
    Floats values(count);
    for (float& value : values)
        value = normal(generator);
    return values;
}
inline Doubles toDoubles(const Floats& values) {
    return {values.begin(), values.end()};
}

/// Largest difference, relative to the largest value of the reference.
inline double worst(const Floats& got, const Doubles& expected) {
    double difference = 0;
    double size = 1e-30;
    for (std::size_t i = 0; i < got.size(); ++i) {
        difference = std::max(difference, std::abs(static_cast<double>(got[i]) - expected[i]));
        size = std::max(size, std::abs(expected[i]));
    }
    return difference / size;
}

/// Central differences of a float64 function: what an analytic gradient must agree with.
inline Doubles numericGradient(Doubles at, const std::function<double(const Doubles&)>& f) {
    Doubles gradient(at.size());
    for (std::size_t i = 0; i < at.size(); ++i) {
        const double value = at[i];
        constexpr double kStep = 1e-5;
        at[i] = value + kStep;
        const double above = f(at);
        at[i] = value - kStep;
        const double below = f(at);
        at[i] = value;
        gradient[i] = (above - below) / (2 * kStep);
    }
    return gradient;
}

inline double weightedSum(const Doubles& y, const Floats& weights) {
    double sum = 0;
    for (std::size_t i = 0; i < y.size(); ++i)
        sum += y[i] * static_cast<double>(weights[i]);
    return sum;
}

} // namespace shardscope::testing
