// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <cstdint>

namespace shardscope::engine {

struct AttentionShape {
    std::int64_t batch = 0;
    std::int64_t sequence = 0;
    std::int64_t heads = 0;
    std::int64_t headDim = 0;

    std::int64_t width() const { return heads * headDim; }
    std::int64_t tokens() const { return batch * sequence; }
};

/// Causal self-attention over a fused projection, in tiles of query rows so that scratch is linear in the sequence.
///
/// qkv (B, S, 3, heads, headDim) -> output (B, S, heads, headDim), logsumexp (B, heads, S).
/// `scratch` holds one tile of scores: kAttentionTileRows * S floats.
void attentionForward(AttentionShape shape, const float* qkv, float* output, float* logsumexp, float* scratch);

/// doutput (B, S, heads, headDim) -> dqkv like qkv. Probabilities are computed again from `logsumexp` (FlashAttention,
/// arXiv 2205.14135, algorithm 4). `scratch` holds two tiles.
void attentionBackward(AttentionShape shape, const float* qkv, const float* output, const float* logsumexp,
                       const float* doutput, float* dqkv, float* scratch);

} // namespace shardscope::engine
