// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <cstdint>

namespace shardscope::engine {

struct AttentionShape {
    std::int64_t batch = 0;
    std::int64_t sequence = 0;
    std::int64_t heads = 0;   ///< of the query
    std::int64_t kvHeads = 0; ///< of key and value, each serving heads / kvHeads consecutive query heads
    std::int64_t headDim = 0;

    std::int64_t width() const { return heads * headDim; }
    std::int64_t tokens() const { return batch * sequence; }
};

/// Rows of one token each: query (B, S, heads, headDim), key and value (B, S, kvHeads, headDim), with the floats from
/// one token to the next. Strides differ where the projections are fused.
template<typename Float> struct AttentionRows {
    Float* query = nullptr;
    Float* key = nullptr;
    Float* value = nullptr;
    std::int64_t queryStride = 0;
    std::int64_t keyStride = 0; ///< of the value too
};

/// The rows of a fused projection (B, S, 3, heads, headDim).
template<typename Float> AttentionRows<Float> fusedRows(AttentionShape shape, Float* qkv) {
    return {qkv, qkv + shape.width(), qkv + 2 * shape.width(), 3 * shape.width(), 3 * shape.width()};
}

/// Causal self-attention with grouped queries, in tiles of query rows so that scratch is linear in the sequence.
///
/// -> output (B, S, heads, headDim), logsumexp (B, heads, S).
/// `scratch` holds one tile of scores: kAttentionTileRows * S floats.
void attentionForward(AttentionShape shape, AttentionRows<const float> rows, float* output, float* logsumexp,
                      float* scratch);

/// doutput (B, S, heads, headDim) -> gradients of the rows, overwritten. Probabilities are computed again from
/// `logsumexp` (FlashAttention, arXiv 2205.14135, algorithm 4). `scratch` holds two tiles.
void attentionBackward(AttentionShape shape, AttentionRows<const float> rows, const float* output,
                       const float* logsumexp, const float* doutput, AttentionRows<float> gradients, float* scratch);

} // namespace shardscope::engine
