// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "runtime/contract/Training.h"
#include "runtime/network/StateLayout.h"
#include "runtime/ops/Kernels.h"

#include <cstdint>

namespace shardscope::engine {

/// One optimizer step: what is the same for all tensors, worked out once, and the update of each.
class OptimizerStep {
public:
    /// `step` counts from 1. `gradientScale`: what gradients are multiplied with before they are used.
    OptimizerStep(const contract::Optimizer& optimizer, std::int64_t step, double gradientScale, double learningRate);

    /// Updates what the rank owns of a tensor of operator `op`.
    void update(Kernels& kernels, std::int32_t op, const TensorState& tensor, int rank) const;

private:
    bool m_isSgd;
    float m_weightDecay;
    std::uint64_t m_step;
    AdamWStep m_adamW;
    SgdStep m_sgd;
};

} // namespace shardscope::engine
