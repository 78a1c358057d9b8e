// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "runtime/contract/Architecture.h"
#include "runtime/contract/StepProgram.h"
#include "runtime/memory/BufferPool.h"
#include "runtime/network/PartAccess.h"
#include "runtime/ops/Attention.h"
#include "runtime/ops/CrossEntropy.h"

#include <cstdint>
#include <vector>

namespace shardscope::engine {

/// Forward and backward of a GPT-2 decoder, one part of one operator at a time, in the order of a step program.
///
/// Every result is written straight into the kept input of the operator that consumes it. T = B S tokens, all fp32.
/// Activations are taken from the pool when they are written first and given back when nobody needs them any more.
class Gpt2Decoder {
public:
    Gpt2Decoder(const contract::Architecture& architecture, const std::vector<contract::Operator>& operators,
                const std::vector<contract::OperatorDecision>& decisions, std::int64_t microBatch,
                std::int64_t sequence, BufferPool& pool);

    std::int64_t tokensPerMicroBatch() const { return m_tokens; }
    /// Takes the buffers of a micro-batch: int32 (B, S) each, to be filled by the caller.
    std::int32_t* takeTokens();
    std::int32_t* takeTargets();

    void forward(std::int32_t op, const PartAccess& access);
    /// forward() of a part in the backward pass of a recomputed block.
    void recompute(std::int32_t op, const PartAccess& access) { compute(op, access); }
    void backward(std::int32_t op, const PartAccess& access);

    /// Turns logits into their gradient.
    LossSum loss();
    /// Loss and, per token, whether the target has the largest logit; ends a forward pass that no backward follows.
    LossSum evaluate(std::vector<bool>& correct);

private:
    /// Buffers of one operator; kNoBuffer where it has none.
    struct Buffers {
        BufferId input = kNoBuffer;         ///< (T, in)
        BufferId statistics = kNoBuffer;    ///< (2, T)
        BufferId preActivation = kNoBuffer; ///< (T, I)
        BufferId output = kNoBuffer;        ///< (T, 3 H)
        BufferId logsumexp = kNoBuffer;     ///< (B, heads, S)
        BufferId result = kNoBuffer;        ///< input of the consumer
        BufferId residual = kNoBuffer;      ///< added to the result
        bool endsRecomputedBlock = false;
    };
    void resolveBuffers(const std::vector<contract::OperatorDecision>& decisions);
    BufferId activation(std::size_t op, const char* suffix, bool recomputed) const;
    const Buffers& at(std::int32_t op) const { return m_buffers[static_cast<std::size_t>(op)]; }
    float* taken(BufferId id) { return m_pool.take(id); }

    void compute(std::int32_t op, const PartAccess& access);
    void computeLinear(const Buffers& b, const PartAccess& access, std::int64_t inputs, std::int64_t outputs, float* y);
    void backwardLinear(const Buffers& b, const PartAccess& access, const float* dy, std::int64_t outputs,
                        std::int64_t inputs, float* dx);
    void backwardNorm(const Buffers& b, const PartAccess& access, Write write);
    void backwardEmbedding(std::int32_t op, const PartAccess& access);
    void finishBackward(std::int32_t op);
    float* attentionScratch();

    contract::Architecture m_architecture;
    const std::vector<contract::Operator>& m_operators;
    BufferPool& m_pool;
    AttentionShape m_shape;
    std::int64_t m_tokens;
    std::vector<Buffers> m_buffers;
    std::vector<BufferId> m_recomputed; ///< all intermediates of a recomputed block
    BufferId m_tokenIds, m_targets, m_logits, m_losses;
    BufferId m_residualGradient, m_activationGradient, m_wideGradient;
};

} // namespace shardscope::engine
