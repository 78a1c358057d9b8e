// SPDX-License-Identifier: GPL-3.0-or-later
// Causal attention one row at a time, in memory that does not grow with the sequence. Each member of a team takes a key
// (or a query) of its own, then all of them add up the elements of the head.
#pragma once

#include "runtime/ops/shared/Portable.h"

#include <cmath>

namespace shardscope::engine::shared {

/// The running maximum and sum of exponentials of a softmax over numbers that come one after the other (arXiv
/// 1805.02867, algorithm 3).
struct OnlineSoftmax {
    float maximum = -INFINITY;
    float sum = 0;

    /// By what everything that was weighted before is to be multiplied when `value` joins.
    SHARDSCOPE_SHARED float join(float value) {
        const float larger = value > maximum ? value : maximum;
        const float shrink = maximum == -INFINITY ? 0.0F : expf(maximum - larger);
        sum = sum * shrink + (value == -INFINITY ? 0.0F : expf(value - larger));
        maximum = larger;
        return shrink;
    }
    SHARDSCOPE_SHARED float logSumExp() const { return maximum + logf(sum); }
};
/// That of the whole team, from those of its members. What is no number stays none, even where it is all a member has.
template<typename Team> SHARDSCOPE_SHARED OnlineSoftmax combined(const Team& team, OnlineSoftmax own) {
    OnlineSoftmax all;
    all.maximum = team.maximum(own.maximum);
    all.sum = team.sum(own.sum == 0.0F ? 0.0F : own.sum * expf(own.maximum - all.maximum));
    return all;
}

template<typename E> SHARDSCOPE_SHARED float dotProduct(const E* a, const E* b, std::int64_t headDim) {
    float sum = 0;
    for (std::int64_t c = 0; c < headDim; ++c)
        sum += load(a + c) * load(b + c);
    return sum;
}

/// One query over its first `visible` keys. `keyStride` elements lie between two keys, and between two values.
template<typename E, typename Team>
SHARDSCOPE_SHARED void attentionForwardRow(const Team& team, const E* query, const E* keys, const E* values,
                                           std::int64_t keyStride, std::int64_t visible, std::int64_t headDim,
                                           float scale, E* output, float* logsumexp) {
    float sums[Team::kHeadDimsPerMember] = {};
    OnlineSoftmax all; // the same on every member
    for (std::int64_t first = 0; first < visible; first += team.size()) {
        const std::int64_t key = first + team.rank();
        const float score = key < visible ? dotProduct(query, keys + key * keyStride, headDim) * scale : -INFINITY;
        const float larger = fmaxf(all.maximum, team.maximum(score)); // finite: the first key of a round is visible
        const float shrink = all.maximum == -INFINITY ? 0.0F : expf(all.maximum - larger);
        const float weight = expf(score - larger);
        all.sum = all.sum * shrink + team.sum(weight);
        all.maximum = larger;
        for (int d = 0; d < Team::kHeadDimsPerMember; ++d)
            sums[d] *= shrink;
        const std::int64_t left = visible - first;
        for (int member = 0; member < team.size() && member < left; ++member) {
            const float p = team.from(weight, member);
            const E* const value = values + (first + member) * keyStride;
            int d = 0;
            for (std::int64_t c = team.rank(); c < headDim; c += team.size(), ++d)
                sums[d] += p * load(value + c);
        }
    }
    int d = 0;
    for (std::int64_t c = team.rank(); c < headDim; c += team.size(), ++d)
        store(output + c, sums[d] / all.sum);
    if (team.rank() == 0)
        *logsumexp = all.logSumExp();
}

/// A query's probabilities and the gradients of its scores are computed again (FlashAttention, arXiv 2205.14135,
/// algorithm 4).
struct ScoreGradient {
    float probability, score;
};
template<typename E>
SHARDSCOPE_SHARED ScoreGradient scoreGradient(const E* query, const E* key, const E* value, const E* doutput,
                                              float delta, float logsumexp, float scale, std::int64_t headDim) {
    const float p = expf(dotProduct(query, key, headDim) * scale - logsumexp);
    return {p, p * (dotProduct(doutput, value, headDim) - delta) * scale};
}

/// The gradient of one query.
template<typename E, typename Team>
SHARDSCOPE_SHARED void attentionQueryGradient(const Team& team, const E* query, const E* keys, const E* values,
                                              std::int64_t keyStride, std::int64_t visible, std::int64_t headDim,
                                              float scale, const E* output, const E* doutput, float logsumexp,
                                              E* dquery) {
    float sums[Team::kHeadDimsPerMember] = {};
    float partial = 0;
    for (std::int64_t c = team.rank(); c < headDim; c += team.size())
        partial += load(output + c) * load(doutput + c);
    const float delta = team.sum(partial);
    for (std::int64_t first = 0; first < visible; first += team.size()) {
        const std::int64_t key = first + team.rank();
        const float own = key < visible ? scoreGradient(query, keys + key * keyStride, values + key * keyStride,
                                                        doutput, delta, logsumexp, scale, headDim)
                                              .score
                                        : 0.0F;
        const std::int64_t left = visible - first;
        for (int member = 0; member < team.size() && member < left; ++member) {
            const float gradient = team.from(own, member);
            const E* const row = keys + (first + member) * keyStride;
            int d = 0;
            for (std::int64_t c = team.rank(); c < headDim; c += team.size(), ++d)
                sums[d] += gradient * load(row + c);
        }
    }
    int d = 0;
    for (std::int64_t c = team.rank(); c < headDim; c += team.size(), ++d)
        store(dquery + c, sums[d]);
}

/// The queries that see a key: `heads` heads beside each other, each from row `position` to the end of the sequence.
template<typename E> struct SeeingQueries {
    const E* query; ///< of the first head, at the start of the sequence
    const E* output;
    const E* doutput;
    const float* logsumexp;
    std::int64_t queryStride;
    std::int64_t outputStride;
    std::int64_t sequence;
    std::int64_t heads;
};

/// The gradients of one key and its value, summed over the queries that see them, head by head.
template<typename E, typename Team>
SHARDSCOPE_SHARED void attentionKeyGradient(const Team& team, const SeeingQueries<E>& queries, std::int64_t position,
                                            const E* key, const E* value, std::int64_t headDim, float scale, E* dkey,
                                            E* dvalue) {
    float keySums[Team::kHeadDimsPerMember] = {};
    float valueSums[Team::kHeadDimsPerMember] = {};
    for (std::int64_t head = 0; head < queries.heads; ++head) {
        const E* const q = queries.query + head * headDim;
        const E* const o = queries.output + head * headDim;
        const E* const go = queries.doutput + head * headDim;
        const float* const lse = queries.logsumexp + head * queries.sequence;
        for (std::int64_t first = position; first < queries.sequence; first += team.size()) {
            const std::int64_t row = first + team.rank();
            ScoreGradient own{0, 0};
            if (row < queries.sequence) {
                const E* const gradient = go + row * queries.outputStride;
                const float delta = dotProduct(o + row * queries.outputStride, gradient, headDim);
                own =
                    scoreGradient(q + row * queries.queryStride, key, value, gradient, delta, lse[row], scale, headDim);
            }
            const std::int64_t left = queries.sequence - first;
            for (int member = 0; member < team.size() && member < left; ++member) {
                const float p = team.from(own.probability, member);
                const float s = team.from(own.score, member);
                const E* const query = q + (first + member) * queries.queryStride;
                const E* const gradient = go + (first + member) * queries.outputStride;
                int d = 0;
                for (std::int64_t c = team.rank(); c < headDim; c += team.size(), ++d) {
                    keySums[d] += s * load(query + c);
                    valueSums[d] += p * load(gradient + c);
                }
            }
        }
    }
    int d = 0;
    for (std::int64_t c = team.rank(); c < headDim; c += team.size(), ++d) {
        store(dkey + c, keySums[d]);
        store(dvalue + c, valueSums[d]);
    }
}

} // namespace shardscope::engine::shared
