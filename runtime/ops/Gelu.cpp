// SPDX-License-Identifier: GPL-3.0-or-later
#include "runtime/ops/Gelu.h"

#include "runtime/ops/Vectorised.h"

namespace shardscope::engine {

namespace {

constexpr float kSlope = 0.7978845608028654F; // sqrt(2 / pi)
constexpr float kCubic = 0.044715F;

SHARDSCOPE_VECTORISED
void forwardRow(const float* x, float* y, std::int64_t columns) {
    for (std::int64_t i = 0; i < columns; ++i) {
        const float v = x[i];
        y[i] = 0.5F * v * (1.0F + fastTanh(kSlope * (v + kCubic * v * v * v)));
    }
}

SHARDSCOPE_VECTORISED
void backwardRow(const float* x, const float* dy, float* dx, std::int64_t columns) {
    for (std::int64_t i = 0; i < columns; ++i) {
        const float v = x[i];
        const float t = fastTanh(kSlope * (v + kCubic * v * v * v));
        const float slope = kSlope * (1.0F + 3.0F * kCubic * v * v);
        dx[i] = dy[i] * (0.5F * (1.0F + t) + 0.5F * v * (1.0F - t * t) * slope);
    }
}

} // namespace

void geluTanhForward(ConstMatrix x, Matrix y) {
    for (std::int64_t t = 0; t < x.rows; ++t)
        forwardRow(x.data + t * x.stride, y.data + t * y.stride, x.columns);
}

void geluTanhBackward(ConstMatrix x, ConstMatrix dy, Matrix dx) {
    for (std::int64_t t = 0; t < x.rows; ++t)
        backwardRow(x.data + t * x.stride, dy.data + t * dy.stride, dx.data + t * dx.stride, x.columns);
}

} // namespace shardscope::engine
