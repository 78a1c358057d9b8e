// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

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

} // namespace shardscope::engine
