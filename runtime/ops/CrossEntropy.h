// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "runtime/ops/Linear.h"

#include <cstdint>

namespace shardscope::engine {

/// Targets with this value take no part in the loss.
inline constexpr std::int32_t kIgnoredTarget = -1;

struct LossSum {
    double loss = 0;          ///< sum over counted tokens
    std::int64_t tokens = 0;  ///< counted tokens
    std::int64_t correct = 0; ///< counted tokens whose largest logit is the target; only from crossEntropy()
};

/// losses (T) = logsumexp(logits) - logits[target], 0 where ignored; logits (T, V) become the gradient of the *sum* of
/// the losses (the division by the tokens of the global batch happens in the update, when their number is known).
LossSum crossEntropyWithGradient(float* logits, const std::int32_t* targets, std::int64_t tokens,
                                 std::int64_t vocabulary, float* losses);

/// The same losses, leaving the logits alone. `correct` (T) is set to 1 where the target has the largest logit, else 0.
LossSum crossEntropy(const float* logits, const std::int32_t* targets, std::int64_t tokens, std::int64_t vocabulary,
                     float* correct);

/// TokenSoftmax in host memory.
struct SoftmaxRows {
    float* logsumexp = nullptr;
    float* target = nullptr;
    float* largest = nullptr;
};

/// Joins logits (T, rows) of vocabulary rows firstRow and after to what is known of each token's softmax; with
/// Write::Overwrite nothing is known yet.
void joinSoftmax(ConstMatrix logits, std::int64_t firstRow, const std::int32_t* targets, SoftmaxRows softmax,
                 Write write);
/// logits (T, rows) become the gradient of the sum of the losses: softmax - [row is the target], 0 where it is ignored.
void softmaxGradient(Matrix logits, std::int64_t firstRow, const std::int32_t* targets, const float* logsumexp);
/// The losses of tokens whose softmax is known; `largest` becomes 1 where the target has the largest logit, else 0.
LossSum judgeSoftmax(SoftmaxRows softmax, const std::int32_t* targets, std::int64_t tokens);

} // namespace shardscope::engine
