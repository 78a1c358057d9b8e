// SPDX-License-Identifier: GPL-3.0-or-later
#include "runtime/ops/CrossEntropy.h"

#include "runtime/ops/Vectorised.h"

#include <algorithm>
#include <cmath>

namespace shardscope::engine {

namespace {

SHARDSCOPE_VECTORISED
float maximumOf(const float* row, std::int64_t n) {
    float lanes[kLanes];
    for (float& lane : lanes)
        lane = row[0];
    std::int64_t i = 0;
    for (; i + kLanes <= n; i += kLanes)
        for (int lane = 0; lane < kLanes; ++lane)
            lanes[lane] = row[i + lane] > lanes[lane] ? row[i + lane] : lanes[lane];
    for (; i < n; ++i)
        lanes[0] = row[i] > lanes[0] ? row[i] : lanes[0];
    float maximum = lanes[0];
    for (const float lane : lanes)
        maximum = lane > maximum ? lane : maximum;
    return maximum;
}

SHARDSCOPE_VECTORISED
float sumOfExponentials(const float* row, float maximum, std::int64_t n) {
    float lanes[kLanes] = {};
    std::int64_t i = 0;
    for (; i + kLanes <= n; i += kLanes)
        for (int lane = 0; lane < kLanes; ++lane)
            lanes[lane] += fastExp(row[i + lane] - maximum);
    for (int lane = 0; i < n; ++i, ++lane)
        lanes[lane] += fastExp(row[i] - maximum);
    float sum = 0;
    for (const float lane : lanes)
        sum += lane;
    return sum;
}

SHARDSCOPE_VECTORISED
void probabilities(float* row, float logsumexp, std::int64_t n) {
    for (std::int64_t i = 0; i < n; ++i)
        row[i] = fastExp(row[i] - logsumexp);
}

} // namespace

LossSum crossEntropyWithGradient(float* logits, const std::int32_t* targets, std::int64_t tokens,
                                 std::int64_t vocabulary, float* losses) {
    LossSum total;
    for (std::int64_t t = 0; t < tokens; ++t) {
        float* row = logits + t * vocabulary;
        losses[t] = 0.0F;
        if (targets[t] == kIgnoredTarget) {
            std::fill_n(row, vocabulary, 0.0F);
            continue;
        }
        const float maximum = maximumOf(row, vocabulary);
        const float logsumexp = maximum + std::log(sumOfExponentials(row, maximum, vocabulary));
        losses[t] = logsumexp - row[targets[t]];
        probabilities(row, logsumexp, vocabulary);
        row[targets[t]] -= 1.0F;
        total.loss += losses[t];
        ++total.tokens;
    }
    return total;
}

LossSum crossEntropy(const float* logits, const std::int32_t* targets, std::int64_t tokens, std::int64_t vocabulary,
                     float* correct) {
    LossSum total;
    for (std::int64_t t = 0; t < tokens; ++t) {
        const float* row = logits + t * vocabulary;
        correct[t] = 0.0F;
        if (targets[t] == kIgnoredTarget)
            continue;
        const float maximum = maximumOf(row, vocabulary);
        total.loss += maximum + std::log(sumOfExponentials(row, maximum, vocabulary)) - row[targets[t]];
        ++total.tokens;
        if (row[targets[t]] >= maximum) {
            correct[t] = 1.0F;
            ++total.correct;
        }
    }
    return total;
}

} // namespace shardscope::engine
