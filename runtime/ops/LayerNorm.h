// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "runtime/ops/Linear.h"

#include <cstdint>

namespace shardscope::engine {

struct NormShape {
    std::int64_t tokens = 0;
    std::int64_t hidden = 0;
};

/// y (T, H) = (x - mean) * rstd * gain + bias; `statistics` (2 T) receives the means, then the reciprocal deviations.
void layerNormForward(NormShape shape, const float* x, const float* gain, const float* bias, float epsilon, float* y,
                      float* statistics);

/// Adds (or writes) the input gradient to dx (T, H) and the parameter gradients to dgain (H) and dbias (H).
void layerNormBackward(NormShape shape, const float* dy, const float* x, const float* gain, const float* statistics,
                       float* dx, Write writeInput, float* dgain, float* dbias, Write writeParameters);

} // namespace shardscope::engine
