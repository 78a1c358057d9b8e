// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "runtime/ops/shared/Portable.h"

#include <cmath>

namespace shardscope::engine::shared {

constexpr float kGeluSlope = 0.7978845608028654F; // sqrt(2 / pi)
constexpr float kGeluCubic = 0.044715F;

/// x/2 (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3))): GPT-2's "gelu_new".
SHARDSCOPE_SHARED float geluTanh(float x) {
    return 0.5F * x * (1.0F + tanhf(kGeluSlope * (x + kGeluCubic * x * x * x)));
}
/// Its derivative.
SHARDSCOPE_SHARED float geluTanhSlope(float x) {
    const float t = tanhf(kGeluSlope * (x + kGeluCubic * x * x * x));
    const float slope = kGeluSlope * (1.0F + 3.0F * kGeluCubic * x * x);
    return 0.5F * (1.0F + t) + 0.5F * x * (1.0F - t * t) * slope;
}

SHARDSCOPE_SHARED float sigmoid(float x) {
    return 1.0F / (1.0F + expf(-x));
}
/// gate sigmoid(gate) up: SwiGLU's product (arXiv 2002.05202).
SHARDSCOPE_SHARED float siluGate(float gate, float up) {
    return gate * sigmoid(gate) * up;
}
struct SiluGateGradient {
    float gate, up;
};
SHARDSCOPE_SHARED SiluGateGradient siluGateGradient(float gate, float up, float dy) {
    const float s = sigmoid(gate);
    return {dy * up * s * (1.0F + gate * (1.0F - s)), dy * gate * s};
}

/// Rotates one pair of a head by an angle of this cosine and sine (arXiv 2104.09864); `low` and `high` are written.
template<typename E> SHARDSCOPE_SHARED void rotatePair(E* low, E* high, float cosine, float sine) {
    const float a = load(low);
    const float b = load(high);
    store(low, a * cosine - b * sine);
    store(high, b * cosine + a * sine);
}

} // namespace shardscope::engine::shared
