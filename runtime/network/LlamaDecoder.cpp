// SPDX-License-Identifier: GPL-3.0-or-later
#include "runtime/network/LlamaDecoder.h"

#include <utility>

namespace shardscope::engine {

using contract::OperatorRole;

contract::Result<std::unique_ptr<Decoder>>
LlamaDecoder::create(const contract::Architecture& architecture, const std::vector<contract::Operator>& operators,
                     const std::vector<contract::OperatorDecision>& decisions, const contract::Training& training,
                     const contract::Preset& preset, BufferPool& pool, Device& device) {
    auto rotary = Rotary::create(architecture.rope.value_or(contract::Rope{}), architecture.headDim);
    if (!rotary)
        return tl::unexpected(rotary.error());
    return std::unique_ptr<Decoder>(
        new LlamaDecoder(architecture, operators, decisions, training, preset, pool, device, std::move(*rotary)));
}

LlamaDecoder::LlamaDecoder(const contract::Architecture& architecture, const std::vector<contract::Operator>& operators,
                           const std::vector<contract::OperatorDecision>& decisions, const contract::Training& training,
                           const contract::Preset& preset, BufferPool& pool, Device& device, Rotary rotary)
    : Decoder(architecture, operators, decisions, training, preset, pool, device), m_rotary(std::move(rotary)),
      m_blocks(static_cast<std::size_t>(architecture.layers)) {
    m_kernels.prepareRotary(m_rotary, training.sequence);
    linkBuffers();
}

/// Where operators read what another one keeps, or write elsewhere than into the next one's input.
void LlamaDecoder::linkBuffers() {
    for (std::size_t i = 0; i < m_operators.size(); ++i) {
        Buffers& b = buffersOf(i);
        const auto op = static_cast<std::int32_t>(i);
        switch (m_operators[i].role) {
        case OperatorRole::Query:
            m_blocks[static_cast<std::size_t>(m_operators[i].block)].query = op;
            b.result = b.output;
            break;
        case OperatorRole::Key:
            m_blocks[static_cast<std::size_t>(m_operators[i].block)].key = op;
            b.source = before(i, OperatorRole::Query).input;
            b.result = b.output;
            break;
        case OperatorRole::QueryNorm: // the projection writes into it, and it into the projection's output
            b.result = before(i, OperatorRole::Query).output;
            buffersOf(static_cast<std::size_t>(blockOf(op).query)).result = b.input;
            break;
        case OperatorRole::KeyNorm:
            b.result = before(i, OperatorRole::Key).output;
            buffersOf(static_cast<std::size_t>(blockOf(op).key)).result = b.input;
            break;
        case OperatorRole::Value:
            m_blocks[static_cast<std::size_t>(m_operators[i].block)].value = op;
            b.source = before(i, OperatorRole::Query).input;
            break;
        case OperatorRole::MlpGate:
            m_blocks[static_cast<std::size_t>(m_operators[i].block)].gate = op;
            b.result = b.output;
            break;
        case OperatorRole::MlpUp:
            m_blocks[static_cast<std::size_t>(m_operators[i].block)].up = op;
            b.source = before(i, OperatorRole::MlpGate).input;
            break;
        default:
            break;
        }
    }
}

void LlamaDecoder::rotate(Elements rows, std::int64_t heads, Rotary::Direction direction) {
    m_kernels.rotate(m_rotary, rows, m_tokens, m_shape.sequence, heads, direction);
}

AttentionElements LlamaDecoder::projected(std::int32_t op) {
    const Block& block = blockOf(op);
    return {taken(at(block.query).output), taken(at(block.key).output), taken(at(block.value).output), queryWidth(),
            keyWidth()};
}

AttentionGradients LlamaDecoder::projectedGradients() {
    const Elements query = taken(m_wideGradient);
    const Elements key = query + m_tokens * queryWidth();
    return {query, key, key + m_tokens * keyWidth(), queryWidth(), keyWidth()};
}

void LlamaDecoder::compute(std::int32_t op, const PartAccess& access) {
    const Buffers& b = at(op);
    const std::int64_t hidden = m_architecture.hidden;
    const std::int64_t inner = m_architecture.intermediate;
    const Elements result = taken(b.result);
    switch (record(op).role) {
    case OperatorRole::TokenEmbedding:
        computeEmbedding(op, access);
        return;
    case OperatorRole::AttentionNorm:
    case OperatorRole::MlpNorm:
    case OperatorRole::FinalNorm:
        m_kernels.rmsNormForward({m_tokens, hidden}, taken(b.input), access.weight,
                                 static_cast<float>(m_architecture.normEpsilon), result, takenFloats(b.statistics));
        return;
    case OperatorRole::Query:
        computeLinear(b, access, hidden, queryWidth(), result);
        if (access.last && !m_architecture.qkNorm)
            rotate(result, m_architecture.heads, Rotary::Direction::Forward);
        return;
    case OperatorRole::Key:
        computeLinear(b, access, hidden, keyWidth(), result);
        if (access.last && !m_architecture.qkNorm)
            rotate(result, m_architecture.kvHeads, Rotary::Direction::Forward);
        return;
    case OperatorRole::QueryNorm:
    case OperatorRole::KeyNorm: {
        const bool query = record(op).role == OperatorRole::QueryNorm;
        const std::int64_t heads = query ? m_architecture.heads : m_architecture.kvHeads;
        m_kernels.rmsNormForward({m_tokens * heads, m_architecture.headDim}, taken(b.input), access.weight,
                                 static_cast<float>(m_architecture.normEpsilon), result, takenFloats(b.statistics));
        rotate(result, heads, Rotary::Direction::Forward);
        return;
    }
    case OperatorRole::Value:
        computeLinear(b, access, hidden, keyWidth(), taken(b.output));
        if (access.last) {
            m_kernels.attentionForward(m_shape, projected(op), result, takenFloats(b.logsumexp),
                                       attentionScratch(queryWidth() + 2 * keyWidth()));
            m_pool.giveBack(m_wideGradient);
        }
        return;
    case OperatorRole::AttentionOutput:
        computeLinear(b, access, queryWidth(), hidden, result);
        return;
    case OperatorRole::MlpGate:
        computeLinear(b, access, hidden, inner, result);
        return;
    case OperatorRole::MlpUp: {
        const std::int64_t begin = access.rowBegin();
        const Elements up = taken(b.output);
        computeLinear(b, access, hidden, inner, up);
        m_kernels.siluGateForward({taken(at(blockOf(op).gate).output) + begin, m_tokens, access.rows(), inner},
                                  {up + begin, m_tokens, access.rows(), inner}, columnsOf(access, result, inner));
        return;
    }
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

void LlamaDecoder::differentiateNorm(const Buffers& b, const PartAccess& access, Write write) {
    m_kernels.rmsNormBackward({m_tokens, m_architecture.hidden}, taken(m_activationGradient), taken(b.input),
                              access.weight, takenFloats(b.statistics), taken(m_residualGradient), write,
                              access.weightGradient, access.gradientWrite);
}

void LlamaDecoder::differentiateHeadNorm(const Buffers& b, const PartAccess& access, std::int64_t width,
                                         Elements gradient) {
    m_kernels.rmsNormBackward({m_tokens * width / m_architecture.headDim, m_architecture.headDim}, gradient,
                              taken(b.input), access.weight, takenFloats(b.statistics), gradient, Write::Overwrite,
                              access.weightGradient, access.gradientWrite);
}

void LlamaDecoder::differentiate(std::int32_t op, const PartAccess& access) {
    const Buffers& b = at(op);
    const std::int64_t hidden = m_architecture.hidden;
    const std::int64_t inner = m_architecture.intermediate;
    const Write firstWrites = access.first ? Write::Overwrite : Write::Add;
    const Elements gradient = taken(m_activationGradient);
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
        const Elements dgate = taken(m_wideGradient);
        const Elements dup = dgate + m_tokens * inner;
        if (access.first)
            m_kernels.siluGateBackward(whole(ConstElements(taken(at(blockOf(op).gate).output)), inner),
                                       whole(ConstElements(taken(b.output)), inner), whole(ConstElements(dgate), inner),
                                       whole(dgate, inner), whole(dup, inner));
        differentiateLinear(b, access, dup, inner, hidden, gradient, firstWrites);
        return;
    }
    case OperatorRole::MlpGate: // adds to what the other projection of the same input has written
        differentiateLinear(b, access, taken(m_wideGradient), inner, hidden, gradient, Write::Add);
        return;
    case OperatorRole::AttentionOutput:
        differentiateLinear(b, access, taken(m_residualGradient), hidden, queryWidth(), gradient, firstWrites);
        return;
    case OperatorRole::Value: {
        const AttentionGradients d = projectedGradients();
        if (access.first) {
            m_kernels.attentionBackward(m_shape, projected(op), taken(b.result), takenFloats(b.logsumexp), gradient, d,
                                        attentionScratch(queryWidth() + 2 * keyWidth()));
            rotate(d.query, m_architecture.heads, Rotary::Direction::Backward);
            rotate(d.key, m_architecture.kvHeads, Rotary::Direction::Backward);
        }
        differentiateLinear(b, access, d.value, keyWidth(), hidden, gradient, firstWrites);
        return;
    }
    case OperatorRole::KeyNorm:
        differentiateHeadNorm(b, access, keyWidth(), projectedGradients().key);
        return;
    case OperatorRole::QueryNorm:
        differentiateHeadNorm(b, access, queryWidth(), projectedGradients().query);
        return;
    case OperatorRole::Key:
        differentiateLinear(b, access, projectedGradients().key, keyWidth(), hidden, gradient, Write::Add);
        return;
    case OperatorRole::Query:
        differentiateLinear(b, access, projectedGradients().query, queryWidth(), hidden, gradient, Write::Add);
        return;
    case OperatorRole::TokenEmbedding:
        differentiateEmbedding(op, access);
        return;
    default:
        return;
    }
}

void LlamaDecoder::finishBackward(std::int32_t op) {
    const OperatorRole role = record(op).role;
    if (role == OperatorRole::Value)
        m_pool.giveBack(at(op).result);
    if (role == OperatorRole::Query || role == OperatorRole::MlpGate)
        m_pool.giveBack(m_wideGradient);
}

} // namespace shardscope::engine
