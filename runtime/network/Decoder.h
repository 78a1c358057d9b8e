// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "runtime/contract/Architecture.h"
#include "runtime/contract/Preset.h"
#include "runtime/contract/StepProgram.h"
#include "runtime/contract/Training.h"
#include "runtime/device/Device.h"
#include "runtime/memory/BufferPool.h"
#include "runtime/network/PartAccess.h"
#include "runtime/ops/Kernels.h"

#include <cstdint>
#include <memory>
#include <vector>

namespace shardscope::engine {

/// Forward and backward of a decoder, one part of one operator at a time, in the order of a step program.
///
/// Every result is written straight into the kept input of the operator that consumes it. T = B S tokens, all of the
/// preset's compute type. The device does the work in the order of the calls, perhaps later.
/// Activations are taken from the pool when they are written first and given back when nobody needs them any more.
class Decoder {
public:
    /// The decoder of an architecture's family. Errors: BadInput for an architecture that is not computed here.
    static contract::Result<std::unique_ptr<Decoder>>
    create(const contract::Architecture& architecture, const std::vector<contract::Operator>& operators,
           const std::vector<contract::OperatorDecision>& decisions, const contract::Training& training,
           const contract::Preset& preset, BufferPool& pool, Device& device);
    virtual ~Decoder() = default;

    std::int64_t tokensPerMicroBatch() const { return m_tokens; }
    /// Takes the buffers of a micro-batch: int32 (B, S) each in the host's memory, to be filled by the caller and then
    /// delivered to the device.
    std::int32_t* takeTokens();
    std::int32_t* takeTargets();
    void deliverBatch();

    /// What follows the forward pass of the batch that was delivered.
    enum class HeadUse {
        Train,   ///< loss() and the backward pass
        Judge,   ///< evaluate()
        Predict, ///< takeLogits()
    };
    /// `token`: the one whose logits are wanted by Predict.
    void beginPass(HeadUse use, std::int64_t token = 0) {
        m_use = use;
        m_predicted = token;
    }
    void forward(std::int32_t op, const PartAccess& access);
    /// forward() of a part in the backward pass of a recomputed block.
    void recompute(std::int32_t op, const PartAccess& access) { compute(op, access); }
    void backward(std::int32_t op, const PartAccess& access);

    /// Turns logits into their gradient, and adds the losses to the sums of the step; the backward pass of the head may
    /// do so instead, chunk by chunk.
    void loss();
    /// Loss and, per token, whether the target has the largest logit; ends a forward pass that no backward follows.
    LossSum evaluate(std::vector<bool>& correct);
    /// The logits (V) of the token of beginPass(); ends a forward pass that no backward follows.
    std::vector<float> takeLogits();

protected:
    Decoder(const contract::Architecture& architecture, const std::vector<contract::Operator>& operators,
            const std::vector<contract::OperatorDecision>& decisions, const contract::Training& training,
            const contract::Preset& preset, BufferPool& pool, Device& device);

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
    /// A buffer in the compute type, or in float32 whatever that is.
    Elements taken(BufferId id) { return {m_pool.take(id), m_type}; }
    Elements takenFloats(BufferId id) { return {m_pool.take(id), ElementType::Float32}; }
    ElementMatrix whole(Elements data, std::int64_t columns) const { return {data, m_tokens, columns, columns}; }
    ConstElementMatrix whole(ConstElements data, std::int64_t columns) const {
        return {data, m_tokens, columns, columns};
    }
    /// The columns of a part of (T, columns).
    ElementMatrix columnsOf(const PartAccess& access, Elements data, std::int64_t columns) const {
        return {data + access.rowBegin(), m_tokens, access.rows(), columns};
    }

    /// y (T, outputs), columns of this part = source (T, inputs) weight^T + bias (+ residual)
    void computeLinear(const Buffers& b, const PartAccess& access, std::int64_t inputs, std::int64_t outputs,
                       Elements y);
    /// Gradients of the weights of this part from dy (T, outputs), and of the source into dx (T, inputs).
    void differentiateLinear(const Buffers& b, const PartAccess& access, ConstElements dy, std::int64_t outputs,
                             std::int64_t inputs, Elements dx, Write writeInput);
    void computeHead(const Buffers& b, const PartAccess& access);
    void differentiateHead(const Buffers& b, const PartAccess& access);
    void computeEmbedding(std::int32_t op, const PartAccess& access);
    void differentiateEmbedding(std::int32_t op, const PartAccess& access);
    /// Attention's scratch, behind `elements` per token of gradients in the wide region, as sizeLive() lays it out.
    Elements attentionScratch(std::int64_t elements);

    contract::Architecture m_architecture;
    const std::vector<contract::Operator>& m_operators;
    BufferPool& m_pool;
    Device& m_device;
    Kernels& m_kernels;
    ElementType m_type;
    AttentionShape m_shape;
    std::int64_t m_tokens;
    std::int64_t m_chunk; ///< tokens whose logits exist at a time: all, or a chunk of the loss
    BufferId m_tokenIds, m_targets, m_logits, m_losses;
    BufferId m_residualGradient, m_activationGradient, m_wideGradient;

private:
    void resolveBuffers(const std::vector<contract::OperatorDecision>& decisions);
    void endForward();
    bool isChunked() const { return m_chunk < m_tokens; }
    /// Three rows of the buffer of losses; see BaseSize.
    TokenSoftmax tokenSoftmax();
    /// The logits (count, rows of the part) of tokens `begin` and after.
    ElementMatrix computeChunk(const Buffers& b, const PartAccess& access, std::int64_t begin, std::int64_t count);
    void giveBackLoss();
    const std::int32_t* deviceTokens() { return reinterpret_cast<const std::int32_t*>(m_pool.take(m_tokenIds)); }
    const std::int32_t* deviceTargets() { return reinterpret_cast<const std::int32_t*>(m_pool.take(m_targets)); }
    BufferId activation(std::size_t op, const char* suffix, bool recomputed) const;

    std::vector<Buffers> m_buffers;
    /// The batch as the caller fills it, where the device's memory is not the host's.
    std::vector<std::int32_t> m_hostTokens, m_hostTargets;
    std::vector<BufferId> m_recomputed; ///< all intermediates of a recomputed block
    HeadUse m_use = HeadUse::Train;
    std::int64_t m_predicted = 0;
    bool m_headInParts = false; ///< in this pass, and chunked
};

} // namespace shardscope::engine
