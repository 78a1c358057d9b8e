// SPDX-License-Identifier: GPL-3.0-or-later
// Norms of one row of hidden elements, and their parameter gradients column by column. Formulas: LayerNorm.h,
// RmsNorm.h.
#pragma once

#include "runtime/ops/shared/Portable.h"

#include <cmath>

namespace shardscope::engine::shared {

template<typename E, typename Team>
SHARDSCOPE_SHARED void layerNormForwardRow(const Team& team, const E* x, const E* gain, const E* bias, float epsilon,
                                           std::int64_t hidden, E* y, float* mean, float* rstd) {
    float sum = 0;
    for (std::int64_t i = team.rank(); i < hidden; i += team.size())
        sum += load(x + i);
    const float m = team.sum(sum) / static_cast<float>(hidden);
    // The deviations are summed in a second pass: E[x^2] - mean^2 cancels badly in float32.
    float squares = 0;
    for (std::int64_t i = team.rank(); i < hidden; i += team.size()) {
        const float d = load(x + i) - m;
        squares += d * d;
    }
    const float r = 1.0F / sqrtf(team.sum(squares) / static_cast<float>(hidden) + epsilon);
    for (std::int64_t i = team.rank(); i < hidden; i += team.size())
        store(y + i, (load(x + i) - m) * r * load(gain + i) + load(bias + i));
    if (team.rank() == 0) {
        *mean = m;
        *rstd = r;
    }
}

/// With n = (x - mean) rstd and g = dy gain: dx = rstd (g - mean(g) - n mean(g n)).
template<typename E, typename Team>
SHARDSCOPE_SHARED void layerNormBackwardRow(const Team& team, const E* dy, const E* x, const E* gain, float mean,
                                            float rstd, std::int64_t hidden, E* dx, bool add) {
    float sum = 0;
    float product = 0;
    for (std::int64_t i = team.rank(); i < hidden; i += team.size()) {
        const float g = load(dy + i) * load(gain + i);
        sum += g;
        product += g * (load(x + i) - mean) * rstd;
    }
    const float meanGradient = team.sum(sum) / static_cast<float>(hidden);
    const float meanProduct = team.sum(product) / static_cast<float>(hidden);
    for (std::int64_t i = team.rank(); i < hidden; i += team.size()) {
        const float n = (load(x + i) - mean) * rstd;
        write(dx + i, rstd * (load(dy + i) * load(gain + i) - meanGradient - n * meanProduct), add);
    }
}

/// One column of the parameter gradients, summed over the tokens.
template<typename E, typename G, typename Team>
SHARDSCOPE_SHARED void layerNormParameters(const Team& team, const E* dy, const E* x, const float* statistics,
                                           std::int64_t tokens, std::int64_t hidden, std::int64_t column, G* dgain,
                                           G* dbias, bool add) {
    float gain = 0;
    float bias = 0;
    for (std::int64_t t = team.rank(); t < tokens; t += team.size()) {
        const float d = load(dy + t * hidden + column);
        gain += d * (load(x + t * hidden + column) - statistics[t]) * statistics[tokens + t];
        bias += d;
    }
    gain = team.sum(gain);
    bias = team.sum(bias);
    if (team.rank() == 0) {
        write(dgain + column, gain, add);
        write(dbias + column, bias, add);
    }
}

template<typename E, typename Team>
SHARDSCOPE_SHARED void rmsNormForwardRow(const Team& team, const E* x, const E* gain, float epsilon,
                                         std::int64_t hidden, E* y, float* reciprocal) {
    float squares = 0;
    for (std::int64_t i = team.rank(); i < hidden; i += team.size())
        squares += load(x + i) * load(x + i);
    const float r = 1.0F / sqrtf(team.sum(squares) / static_cast<float>(hidden) + epsilon);
    for (std::int64_t i = team.rank(); i < hidden; i += team.size())
        store(y + i, load(x + i) * r * load(gain + i));
    if (team.rank() == 0)
        *reciprocal = r;
}

/// With n = x r and g = dy gain: dx = r (g - n mean(g n)). dx may be dy when it is written.
template<typename E, typename Team>
SHARDSCOPE_SHARED void rmsNormBackwardRow(const Team& team, const E* dy, const E* x, const E* gain, float reciprocal,
                                          std::int64_t hidden, E* dx, bool add) {
    float product = 0;
    for (std::int64_t i = team.rank(); i < hidden; i += team.size())
        product += load(dy + i) * load(gain + i) * load(x + i) * reciprocal;
    const float meanProduct = team.sum(product) / static_cast<float>(hidden);
    for (std::int64_t i = team.rank(); i < hidden; i += team.size()) {
        const float n = load(x + i) * reciprocal;
        write(dx + i, reciprocal * (load(dy + i) * load(gain + i) - n * meanProduct), add);
    }
}

template<typename E, typename G, typename Team>
SHARDSCOPE_SHARED void rmsNormParameters(const Team& team, const E* dy, const E* x, const float* reciprocals,
                                         std::int64_t tokens, std::int64_t hidden, std::int64_t column, G* dgain,
                                         bool add) {
    float gain = 0;
    for (std::int64_t t = team.rank(); t < tokens; t += team.size())
        gain += load(dy + t * hidden + column) * load(x + t * hidden + column) * reciprocals[t];
    gain = team.sum(gain);
    if (team.rank() == 0)
        write(dgain + column, gain, add);
}

/// One column of a bias's gradient: the sum of dy over its rows.
template<typename E, typename G, typename Team>
SHARDSCOPE_SHARED void columnSum(const Team& team, const E* dy, std::int64_t rows, std::int64_t stride,
                                 std::int64_t column, G* sums, bool add) {
    float sum = 0;
    for (std::int64_t t = team.rank(); t < rows; t += team.size())
        sum += load(dy + t * stride + column);
    sum = team.sum(sum);
    if (team.rank() == 0)
        write(sums + column, sum, add);
}

} // namespace shardscope::engine::shared
