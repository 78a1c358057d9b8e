// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "runtime/ops/Linear.h"

namespace shardscope::engine {

/// y = gate / (1 + e^-gate) * up: SwiGLU's product (arXiv 2002.05202). All of one shape.
void siluGateForward(ConstMatrix gate, ConstMatrix up, Matrix y);
/// dgate and dup from dy. Either of them may be dy.
void siluGateBackward(ConstMatrix gate, ConstMatrix up, ConstMatrix dy, Matrix dgate, Matrix dup);

} // namespace shardscope::engine
