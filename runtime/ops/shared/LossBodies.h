// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "runtime/ops/shared/AttentionBodies.h"

namespace shardscope::engine::shared {

/// The softmax of one row of logits. They are read in their own type and never stored as float32.
template<typename E, typename Team>
SHARDSCOPE_SHARED OnlineSoftmax softmaxOfRow(const Team& team, const E* logits, std::int64_t vocabulary) {
    OnlineSoftmax own;
    for (std::int64_t i = team.rank(); i < vocabulary; i += team.size())
        own.join(load(logits + i));
    return combined(team, own);
}

/// loss = logsumexp(logits) - logits[target]; the logits become the gradient of the loss, all zeros where the target is
/// ignored.
template<typename E, typename Team>
SHARDSCOPE_SHARED void crossEntropyRow(const Team& team, E* logits, std::int32_t target, std::int32_t ignored,
                                       std::int64_t vocabulary, float* loss) {
    if (target == ignored) { // the same for the whole team
        for (std::int64_t i = team.rank(); i < vocabulary; i += team.size())
            store(logits + i, 0.0F);
        if (team.rank() == 0)
            *loss = 0;
        return;
    }
    const OnlineSoftmax all = softmaxOfRow(team, logits, vocabulary);
    const float logsumexp = all.logSumExp();
    for (std::int64_t i = team.rank(); i < vocabulary; i += team.size()) {
        const float logit = load(logits + i);
        if (i == target)
            *loss = logsumexp - logit;
        store(logits + i, expf(logit - logsumexp) - (i == target ? 1.0F : 0.0F));
    }
}

/// log(exp(a) + exp(b))
SHARDSCOPE_SHARED float logOfSum(float a, float b) {
    const float larger = a > b ? a : b;
    return larger + logf(expf(a - larger) + expf(b - larger));
}

/// Joins a row of logits, those of vocabulary rows firstRow and after, to what is known of its token's softmax.
template<typename E, typename Team>
SHARDSCOPE_SHARED void joinRow(const Team& team, const E* logits, std::int64_t rows, std::int64_t target, bool first,
                               float* logsumexp, float* targetLogit, float* largest) {
    const OnlineSoftmax part = softmaxOfRow(team, logits, rows);
    if (team.rank() != 0)
        return;
    *logsumexp = first ? part.logSumExp() : logOfSum(*logsumexp, part.logSumExp());
    *largest = first || part.maximum > *largest ? part.maximum : *largest;
    if (target >= 0 && target < rows)
        *targetLogit = load(logits + target);
}

/// The loss alone, and whether the target has the largest logit. All members know.
struct Judgement {
    float loss;
    bool correct;
};
template<typename E, typename Team>
SHARDSCOPE_SHARED Judgement judgeRow(const Team& team, const E* logits, std::int32_t target, std::int32_t ignored,
                                     std::int64_t vocabulary) {
    if (target == ignored)
        return {0, false};
    const OnlineSoftmax all = softmaxOfRow(team, logits, vocabulary);
    const float logit = load(logits + target);
    const float loss = all.logSumExp() - logit;
    return {loss < 0 ? 0.0F : loss, logit >= all.maximum}; // rounding; what is no number stays none
}

} // namespace shardscope::engine::shared
