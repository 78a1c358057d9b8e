// SPDX-License-Identifier: GPL-3.0-or-later
#include "runtime/ops/SiluGate.h"

#include "runtime/ops/Vectorised.h"

namespace shardscope::engine {

namespace {

SHARDSCOPE_VECTORISED
void forwardRow(const float* gate, const float* up, float* y, std::int64_t columns) {
    for (std::int64_t i = 0; i < columns; ++i)
        y[i] = gate[i] / (1.0F + fastExp(-gate[i])) * up[i];
}

SHARDSCOPE_VECTORISED
void backwardRow(const float* gate, const float* up, const float* dy, float* dgate, float* dup, std::int64_t columns) {
    for (std::int64_t i = 0; i < columns; ++i) {
        const float sigmoid = 1.0F / (1.0F + fastExp(-gate[i]));
        const float gradient = dy[i]; // read before either is written
        dgate[i] = gradient * up[i] * sigmoid * (1.0F + gate[i] * (1.0F - sigmoid));
        dup[i] = gradient * gate[i] * sigmoid;
    }
}

} // namespace

void siluGateForward(ConstMatrix gate, ConstMatrix up, Matrix y) {
    for (std::int64_t t = 0; t < y.rows; ++t)
        forwardRow(gate.data + t * gate.stride, up.data + t * up.stride, y.data + t * y.stride, y.columns);
}

void siluGateBackward(ConstMatrix gate, ConstMatrix up, ConstMatrix dy, Matrix dgate, Matrix dup) {
    for (std::int64_t t = 0; t < dy.rows; ++t)
        backwardRow(gate.data + t * gate.stride, up.data + t * up.stride, dy.data + t * dy.stride,
                    dgate.data + t * dgate.stride, dup.data + t * dup.stride, dy.columns);
}

} // namespace shardscope::engine
