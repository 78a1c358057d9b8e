// SPDX-License-Identifier: GPL-3.0-or-later
#include "runtime/ops/RmsNorm.h"

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
void forwardRow(const float* x, const float* gain, float epsilon, std::int64_t hidden, float* y, float* reciprocal) {
    float squares[kLanes] = {};
    std::int64_t i = 0;
    for (; i + kLanes <= hidden; i += kLanes)
        for (int lane = 0; lane < kLanes; ++lane)
            squares[lane] += x[i + lane] * x[i + lane];
    for (int lane = 0; i < hidden; ++i, ++lane)
        squares[lane] += x[i] * x[i];
    const float r = 1.0F / std::sqrt(fold(squares) / static_cast<float>(hidden) + epsilon);
    for (i = 0; i < hidden; ++i)
        y[i] = x[i] * r * gain[i];
    *reciprocal = r;
}

SHARDSCOPE_VECTORISED
void backwardRow(const float* dy, const float* x, const float* gain, float reciprocal, std::int64_t hidden, float* dx,
                 bool add, float* dgain) {
    // With n = x r and g = dy gain: dx = r (g - n mean(g n)).
    float products[kLanes] = {};
    std::int64_t i = 0;
    for (; i + kLanes <= hidden; i += kLanes)
        for (int lane = 0; lane < kLanes; ++lane)
            products[lane] += dy[i + lane] * gain[i + lane] * x[i + lane] * reciprocal;
    for (int lane = 0; i < hidden; ++i, ++lane)
        products[lane] += dy[i] * gain[i] * x[i] * reciprocal;
    const float meanProduct = fold(products) / static_cast<float>(hidden);
    for (i = 0; i < hidden; ++i) {
        const float normalised = x[i] * reciprocal;
        const float gradient = reciprocal * (dy[i] * gain[i] - normalised * meanProduct);
        dgain[i] += dy[i] * normalised;
        dx[i] = add ? dx[i] + gradient : gradient;
    }
}

} // namespace

void rmsNormForward(NormShape shape, const float* x, const float* gain, float epsilon, float* y, float* reciprocals) {
    for (std::int64_t t = 0; t < shape.tokens; ++t)
        forwardRow(x + t * shape.hidden, gain, epsilon, shape.hidden, y + t * shape.hidden, reciprocals + t);
}

void rmsNormBackward(NormShape shape, const float* dy, const float* x, const float* gain, const float* reciprocals,
                     float* dx, Write writeInput, float* dgain, Write writeParameters) {
    if (writeParameters == Write::Overwrite)
        std::fill_n(dgain, shape.hidden, 0.0F);
    for (std::int64_t t = 0; t < shape.tokens; ++t)
        backwardRow(dy + t * shape.hidden, x + t * shape.hidden, gain, reciprocals[t], shape.hidden,
                    dx + t * shape.hidden, writeInput == Write::Add, dgain);
}

} // namespace shardscope::engine
