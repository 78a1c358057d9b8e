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

/// log(exp(a) + exp(b))
float logOfSum(float a, float b) {
    const float larger = a > b ? a : b;
    return larger + std::log(std::exp(a - larger) + std::exp(b - larger));
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

void joinSoftmax(ConstMatrix logits, std::int64_t firstRow, const std::int32_t* targets, SoftmaxRows softmax,
                 Write write) {
    for (std::int64_t t = 0; t < logits.rows; ++t) {
        if (targets[t] == kIgnoredTarget)
            continue;
        const float* row = logits.data + t * logits.stride;
        const float maximum = maximumOf(row, logits.columns);
        const float logsumexp = maximum + std::log(sumOfExponentials(row, maximum, logits.columns));
        const bool first = write == Write::Overwrite;
        softmax.logsumexp[t] = first ? logsumexp : logOfSum(softmax.logsumexp[t], logsumexp);
        softmax.largest[t] = first ? maximum : std::max(softmax.largest[t], maximum);
        if (const std::int64_t target = targets[t] - firstRow; target >= 0 && target < logits.columns)
            softmax.target[t] = row[target];
    }
}

void softmaxGradient(Matrix logits, std::int64_t firstRow, const std::int32_t* targets, const float* logsumexp) {
    for (std::int64_t t = 0; t < logits.rows; ++t) {
        float* row = logits.data + t * logits.stride;
        if (targets[t] == kIgnoredTarget) {
            std::fill_n(row, logits.columns, 0.0F);
            continue;
        }
        probabilities(row, logsumexp[t], logits.columns);
        if (const std::int64_t target = targets[t] - firstRow; target >= 0 && target < logits.columns)
            row[target] -= 1.0F;
    }
}

LossSum judgeSoftmax(SoftmaxRows softmax, const std::int32_t* targets, std::int64_t tokens) {
    LossSum total;
    for (std::int64_t t = 0; t < tokens; ++t) {
        const bool counts = targets[t] != kIgnoredTarget;
        const bool correct = counts && softmax.target[t] >= softmax.largest[t];
        total.loss += counts ? softmax.logsumexp[t] - softmax.target[t] : 0.0F;
        total.tokens += counts ? 1 : 0;
        total.correct += correct ? 1 : 0;
        softmax.largest[t] = correct ? 1.0F : 0.0F;
    }
    return total;
}

} // namespace shardscope::engine
