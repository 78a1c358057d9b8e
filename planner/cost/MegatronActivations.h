// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "planner/cost/ActivationConventions.h"

#include <cstdint>

namespace shardscope::planner {

enum class MegatronRecompute {
    None,
    Selective, ///< the attention core (scores, softmax, dropout) is recomputed
    Full,      ///< only the input of each block is held
};

/// How a decoder is split over devices and recomputed.
struct MegatronOptions {
    std::int64_t tensor = 1;     ///< tensor-parallel degree t
    std::int64_t pipeline = 1;   ///< pipeline stages p
    std::int64_t interleave = 1; ///< model chunks per stage v (interleaved 1F1B when above 1)
    bool sequenceParallel = false;
    MegatronRecompute recompute = MegatronRecompute::None;
};

/// The decoder as the paper describes it: h hidden, A heads, L layers, a feed-forward of width 4 h.
struct MegatronDecoder {
    std::int64_t hidden = 0;
    std::int64_t heads = 0;
    std::int64_t layers = 0;
};

/// Bytes of activations on the first pipeline stage, 16-bit, closed form of "Reducing Activation Recomputation in Large
/// Transformer Models" (arXiv 2205.05198). Per layer (equations 1, 2, 4 and 6, with dropout, masks of one byte):
///   tensor parallel only:       s m h (10 + 24/t + 5 A s/(h t))
///   with sequence parallelism:  s m h (34 + 5 A s/h) / t
///   selective recomputation drops the A term; full recomputation leaves 2 s m h (divided by t with sequence
///   parallelism).
/// The first stage holds L layers' worth, times 1 + (p - 1)/(p v) when v > 1 (section 4.2.3). Rounded up to bytes.
/// `batch.elementBytes` must be 2. Embeddings, the last norm and the head are left out, as in the paper.
std::int64_t megatronFirstStageBytes(const MegatronDecoder& decoder, const ActivationBatch& batch,
                                     const MegatronOptions& options);

/// The same convention operator by operator, for one pass of one micro-batch through every block (so without the
/// pipeline's factor): GPT-2-like and Llama-like decoders, any element size. Llama-like blocks have no dropout and hold
/// gate, up and their product. Summed over a GPT-2-like graph it equals the closed form for p = 1.
KeptByOperator megatronActivations(const contract::Architecture& architecture,
                                   const std::vector<contract::Operator>& operators, const ActivationBatch& batch,
                                   const MegatronOptions& options);

/// Weights, gradients and Adam state of the blocks' matrices on one device, without embeddings: 12 L h^2 parameters of
/// `bytesPerParameter` bytes over t p devices.
double megatronStateBytes(const MegatronDecoder& decoder, const MegatronOptions& options,
                          std::int64_t bytesPerParameter);

} // namespace shardscope::planner
