// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <cstdint>

namespace shardscope::engine {

/// One step of AdamW (arXiv 1711.05101, algorithm 2), with everything that is the same for all elements worked out.
struct AdamWStep {
    float gradientScale = 1; ///< 1 / tokens of the global batch, times the clip factor
    float learningRate = 0;
    float beta1 = 0.9F;
    float beta2 = 0.95F;
    float epsilon = 1e-8F;
    float firstCorrection = 1;  ///< 1 / (1 - beta1^step)
    float secondCorrection = 1; ///< 1 / (1 - beta2^step)
};

/// Updates `count` weights in place; `weightDecay` is 0 where it does not apply.
void adamW(const AdamWStep& step, float weightDecay, std::int64_t count, const float* gradient, float* weight,
           float* firstMoment, float* secondMoment);

/// One step of stochastic gradient descent with momentum, as torch.optim.SGD has it without dampening or Nesterov:
/// momentum = mu momentum + (gradient + decay weight); weight -= rate momentum.
struct SgdStep {
    float gradientScale = 1; ///< as in AdamWStep
    float learningRate = 0;
    float momentum = 0.9F;
};
void sgdMomentum(const SgdStep& step, float weightDecay, std::int64_t count, const float* gradient, float* weight,
                 float* momentum);

/// Sum of squares of `count` values, in double so that it does not depend on how tensors are cut.
double sumOfSquares(const float* values, std::int64_t count);

} // namespace shardscope::engine
