// SPDX-License-Identifier: GPL-3.0-or-later
#include "runtime/ops/LayerNorm.h"

#include "runtime/ops/Vectorised.h"

#include <algorithm>
#include <cmath>

namespace shardscope::engine {

namespace {

[[gnu::always_inline]] inline float fold(const float* lanes) {
    float sum = 0;
    for (int lane = 0; lane < kLanes; ++lane)
        sum += lanes[lane];
    return sum;
}

SHARDSCOPE_VECTORISED
void forwardRow(const float* x, const float* gain, const float* bias, float epsilon, std::int64_t hidden, float* y,
                float* mean, float* rstd) {
    float sums[kLanes] = {};
    std::int64_t i = 0;
    for (; i + kLanes <= hidden; i += kLanes)
        for (int lane = 0; lane < kLanes; ++lane)
            sums[lane] += x[i + lane];
    for (int lane = 0; i < hidden; ++i, ++lane)
        sums[lane] += x[i];
    const float m = fold(sums) / static_cast<float>(hidden);

    // The deviations are summed in a second pass: E[x^2] - mean^2 cancels badly in fp32.
    float squares[kLanes] = {};
    i = 0;
    for (; i + kLanes <= hidden; i += kLanes)
        for (int lane = 0; lane < kLanes; ++lane)
            squares[lane] += (x[i + lane] - m) * (x[i + lane] - m);
    for (int lane = 0; i < hidden; ++i, ++lane)
        squares[lane] += (x[i] - m) * (x[i] - m);
    const float r = 1.0F / std::sqrt(fold(squares) / static_cast<float>(hidden) + epsilon);

    for (i = 0; i < hidden; ++i)
        y[i] = (x[i] - m) * r * gain[i] + bias[i];
    *mean = m;
    *rstd = r;
}

SHARDSCOPE_VECTORISED
void backwardRow(const float* dy, const float* x, const float* gain, float mean, float rstd, std::int64_t hidden,
                 float* dx, bool add, float* dgain, float* dbias) {
    // With n = (x - mean) rstd and g = dy gain: dx = rstd (g - mean(g) - n mean(g n)).
    float sums[kLanes] = {};
    float products[kLanes] = {};
    std::int64_t i = 0;
    for (; i + kLanes <= hidden; i += kLanes)
        for (int lane = 0; lane < kLanes; ++lane) {
            const float g = dy[i + lane] * gain[i + lane];
            sums[lane] += g;
            products[lane] += g * (x[i + lane] - mean) * rstd;
        }
    for (int lane = 0; i < hidden; ++i, ++lane) {
        const float g = dy[i] * gain[i];
        sums[lane] += g;
        products[lane] += g * (x[i] - mean) * rstd;
    }
    const float meanGradient = fold(sums) / static_cast<float>(hidden);
    const float meanProduct = fold(products) / static_cast<float>(hidden);
    for (i = 0; i < hidden; ++i) {
        const float normalised = (x[i] - mean) * rstd;
        dgain[i] += dy[i] * normalised;
        dbias[i] += dy[i];
        const float gradient = rstd * (dy[i] * gain[i] - meanGradient - normalised * meanProduct);
        dx[i] = add ? dx[i] + gradient : gradient;
    }
}

} // namespace

void layerNormForward(NormShape shape, const float* x, const float* gain, const float* bias, float epsilon, float* y,
                      float* statistics) {
    for (std::int64_t t = 0; t < shape.tokens; ++t)
        forwardRow(x + t * shape.hidden, gain, bias, epsilon, shape.hidden, y + t * shape.hidden, statistics + t,
                   statistics + shape.tokens + t);
}

void layerNormBackward(NormShape shape, const float* dy, const float* x, const float* gain, const float* statistics,
                       float* dx, Write writeInput, float* dgain, float* dbias, Write writeParameters) {
    if (writeParameters == Write::Overwrite) {
        std::fill_n(dgain, shape.hidden, 0.0F);
        std::fill_n(dbias, shape.hidden, 0.0F);
    }
    for (std::int64_t t = 0; t < shape.tokens; ++t)
        backwardRow(dy + t * shape.hidden, x + t * shape.hidden, gain, statistics[t], statistics[shape.tokens + t],
                    shape.hidden, dx + t * shape.hidden, writeInput == Write::Add, dgain, dbias);
}

} // namespace shardscope::engine
