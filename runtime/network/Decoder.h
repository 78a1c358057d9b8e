// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "runtime/contract/Architecture.h"
#include "runtime/contract/StepProgram.h"
#include "runtime/memory/BufferPool.h"
#include "runtime/network/PartAccess.h"
#include "runtime/ops/Attention.h"
#include "runtime/ops/CrossEntropy.h"

#include <cstdint>
#include <memory>
#include <vector>

namespace shardscope::engine {

/// Forward and backward of a decoder, one part of one operator at a time, in the order of a step program.
///
/// Every result is written straight into the kept input of the operator that consumes it. T = B S tokens, all fp32.
/// Activations are taken from the pool when they are written first and given back when nobody needs them any more.
class Decoder {
public:
    /// The decoder of an architecture's family. Errors: BadInput for an architecture that is not computed here.
    static contract::Result<std::unique_ptr<Decoder>> create(const contract::Architecture& architecture,
                                                             const std::vector<contract::Operator>& operators,
                                                             const std::vector<contract::OperatorDecision>& decisions,
                                                             std::int64_t microBatch, std::int64_t sequence,
                                                             BufferPool& pool);
    virtual ~Decoder() = default;

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
    /// The logits (V) of one token; ends a forward pass that no backward follows.
    std::vector<float> takeLogits(std::int64_t token);

protected:
    Decoder(const contract::Architecture& architecture, const std::vector<contract::Operator>& operators,
            const std::vector<contract::OperatorDecision>& decisions, std::int64_t microBatch, std::int64_t sequence,
            BufferPool& pool);

    /// Buffers of one operator; kNoBuffer where it has none.
    struct Buffers {
        BufferId input = kNoBuffer;         ///< (T, in), its own
        BufferId source = kNoBuffer;        ///< what it reads: its own input, or one that it shares
        BufferId statistics = kNoBuffer;    ///< of a norm
        BufferId preActivation = kNoBuffer; ///< (T, I)
        BufferId output = kNoBuffer;        ///< (T, out)
        BufferId logsumexp = kNoBuffer;     ///< (B, heads, S)
        BufferId result = kNoBuffer;        ///< input of the consumer
        BufferId residual = kNoBuffer;      ///< added to the result
        bool endsRecomputedBlock = false;
    };

    /// Forward of one part.
    virtual void compute(std::int32_t op, const PartAccess& access) = 0;
    /// Backward of one part.
    virtual void differentiate(std::int32_t op, const PartAccess& access) = 0;
    /// Gives back what nobody needs after the backward of an operator, but for its own activations.
    virtual void finishBackward(std::int32_t op) = 0;

    const contract::Operator& record(std::int32_t op) const { return m_operators[static_cast<std::size_t>(op)]; }
    const Buffers& at(std::int32_t op) const { return m_buffers[static_cast<std::size_t>(op)]; }
    Buffers& buffersOf(std::size_t op) { return m_buffers[op]; }
    /// The buffers of the nearest operator before `op` with this role.
    const Buffers& before(std::size_t op, contract::OperatorRole role) const;
    float* taken(BufferId id) { return m_pool.take(id); }

    /// y (T, outputs), columns of this part = source (T, inputs) weight^T + bias (+ residual)
    void computeLinear(const Buffers& b, const PartAccess& access, std::int64_t inputs, std::int64_t outputs, float* y);
    /// Gradients of the weights of this part from dy (T, outputs), and of the source into dx (T, inputs).
    void differentiateLinear(const Buffers& b, const PartAccess& access, const float* dy, std::int64_t outputs,
                             std::int64_t inputs, float* dx, Write writeInput);
    void computeEmbedding(std::int32_t op, const PartAccess& access);
    void differentiateEmbedding(std::int32_t op, const PartAccess& access);
    /// Attention's scratch, behind `elements` per token of gradients in the wide region, as sizeLive() lays it out.
    float* attentionScratch(std::int64_t elements);

    contract::Architecture m_architecture;
    const std::vector<contract::Operator>& m_operators;
    BufferPool& m_pool;
    AttentionShape m_shape;
    std::int64_t m_tokens;
    BufferId m_tokenIds, m_targets, m_logits, m_losses;
    BufferId m_residualGradient, m_activationGradient, m_wideGradient;

private:
    void resolveBuffers(const std::vector<contract::OperatorDecision>& decisions);
    void endForward();
    BufferId activation(std::size_t op, const char* suffix, bool recomputed) const;

    std::vector<Buffers> m_buffers;
    std::vector<BufferId> m_recomputed; ///< all intermediates of a recomputed block
};

} // namespace shardscope::engine
