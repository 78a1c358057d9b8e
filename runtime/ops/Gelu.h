// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "runtime/ops/Linear.h"

namespace shardscope::engine {

/// y = x/2 (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3))): GPT-2's "gelu_new". x and y have the same shape.
void geluTanhForward(ConstMatrix x, Matrix y);
/// dx = dy gelu'(x). dx may be dy.
void geluTanhBackward(ConstMatrix x, ConstMatrix dy, Matrix dx);

} // namespace shardscope::engine
