// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "runtime/ops/LayerNorm.h"
#include "runtime/ops/Linear.h"

namespace shardscope::engine {

/// y (T, H) = x / sqrt(mean(x^2) + epsilon) * gain (arXiv 1910.07467); `reciprocals` (T) receives the reciprocal roots.
/// For a norm over each head, T counts tokens times heads and H is the head's dimension.
void rmsNormForward(NormShape shape, const float* x, const float* gain, float epsilon, float* y, float* reciprocals);

/// Adds (or writes) the input gradient to dx (T, H) and the parameter gradient to dgain (H). dx may be dy when written.
void rmsNormBackward(NormShape shape, const float* dy, const float* x, const float* gain, const float* reciprocals,
                     float* dx, Write writeInput, float* dgain, Write writeParameters);

} // namespace shardscope::engine
