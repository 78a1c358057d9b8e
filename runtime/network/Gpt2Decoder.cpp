// SPDX-License-Identifier: GPL-3.0-or-later
#include "runtime/network/Gpt2Decoder.h"

namespace shardscope::engine {

using contract::OperatorRole;

void Gpt2Decoder::compute(std::int32_t op, const PartAccess& access) {
    const Buffers& b = at(op);
    const std::int64_t hidden = m_architecture.hidden;
    const std::int64_t inner = m_architecture.intermediate;
    const Elements result = taken(b.result);
    switch (record(op).role) {
    case OperatorRole::TokenEmbedding:
    case OperatorRole::PositionEmbedding:
        computeEmbedding(op, access);
        return;
    case OperatorRole::AttentionNorm:
    case OperatorRole::MlpNorm:
    case OperatorRole::FinalNorm:
        m_kernels.layerNormForward({m_tokens, hidden}, taken(b.input), access.weight, access.bias,
                                   static_cast<float>(m_architecture.normEpsilon), result, takenFloats(b.statistics));
        return;
    case OperatorRole::QueryKeyValue:
        computeLinear(b, access, hidden, 3 * hidden, taken(b.output));
        if (access.last) {
            const ConstElements qkv = taken(b.output);
            m_kernels.attentionForward(m_shape, fusedElements(m_shape, qkv), result, takenFloats(b.logsumexp),
                                       attentionScratch(3 * hidden));
            m_pool.giveBack(m_wideGradient);
        }
        return;
    case OperatorRole::MlpUp: {
        const Elements before = taken(b.preActivation);
        m_kernels.linearGeluForward(whole(ConstElements(taken(b.source)), hidden), access.weight, access.bias,
                                    columnsOf(access, before, inner), columnsOf(access, result, inner));
        return;
    }
    case OperatorRole::AttentionOutput:
        computeLinear(b, access, hidden, hidden, result);
        return;
    case OperatorRole::MlpDown:
        computeLinear(b, access, inner, hidden, result);
        return;
    case OperatorRole::Head:
        computeHead(b, access);
        return;
    default:
        return; // refused when the plan was prepared
    }
}

void Gpt2Decoder::differentiateNorm(const Buffers& b, const PartAccess& access, Write write) {
    m_kernels.layerNormBackward({m_tokens, m_architecture.hidden}, taken(m_activationGradient), taken(b.input),
                                access.weight, takenFloats(b.statistics), taken(m_residualGradient), write,
                                access.weightGradient, access.biasGradient, access.gradientWrite);
}

void Gpt2Decoder::differentiate(std::int32_t op, const PartAccess& access) {
    const Buffers& b = at(op);
    const std::int64_t hidden = m_architecture.hidden;
    const std::int64_t inner = m_architecture.intermediate;
    const Write firstWrites = access.first ? Write::Overwrite : Write::Add;
    switch (record(op).role) {
    case OperatorRole::Head:
        differentiateHead(b, access);
        return;
    case OperatorRole::FinalNorm:
        differentiateNorm(b, access, Write::Overwrite);
        return;
    case OperatorRole::AttentionNorm:
    case OperatorRole::MlpNorm:
        differentiateNorm(b, access, Write::Add);
        return;
    case OperatorRole::MlpDown:
        differentiateLinear(b, access, taken(m_residualGradient), hidden, inner, taken(m_wideGradient), firstWrites);
        return;
    case OperatorRole::MlpUp: {
        const Elements wide = taken(m_wideGradient);
        if (access.first)
            m_kernels.geluTanhBackward(whole(ConstElements(taken(b.preActivation)), inner),
                                       whole(ConstElements(wide), inner), whole(wide, inner));
        differentiateLinear(b, access, wide, inner, hidden, taken(m_activationGradient), firstWrites);
        return;
    }
    case OperatorRole::AttentionOutput:
        differentiateLinear(b, access, taken(m_residualGradient), hidden, hidden, taken(m_activationGradient),
                            firstWrites);
        return;
    case OperatorRole::QueryKeyValue: {
        const Elements wide = taken(m_wideGradient);
        if (access.first) {
            const ConstElements qkv = taken(b.output);
            m_kernels.attentionBackward(m_shape, fusedElements(m_shape, qkv), taken(b.result), takenFloats(b.logsumexp),
                                        taken(m_activationGradient), fusedElements(m_shape, wide),
                                        attentionScratch(3 * hidden));
        }
        differentiateLinear(b, access, wide, 3 * hidden, hidden, taken(m_activationGradient), firstWrites);
        return;
    }
    case OperatorRole::TokenEmbedding:
    case OperatorRole::PositionEmbedding:
        differentiateEmbedding(op, access);
        return;
    default:
        return;
    }
}

void Gpt2Decoder::finishBackward(std::int32_t op) {
    const OperatorRole role = record(op).role;
    if (role == OperatorRole::QueryKeyValue)
        m_pool.giveBack(at(op).result);
    if (role == OperatorRole::QueryKeyValue || role == OperatorRole::MlpUp)
        m_pool.giveBack(m_wideGradient);
}

} // namespace shardscope::engine
