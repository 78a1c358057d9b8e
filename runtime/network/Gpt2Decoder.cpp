// SPDX-License-Identifier: GPL-3.0-or-later
#include "runtime/network/Gpt2Decoder.h"

#include "runtime/contract/Bytes.h"
#include "runtime/ops/Embedding.h"
#include "runtime/ops/Gelu.h"
#include "runtime/ops/LayerNorm.h"

#include <algorithm>

namespace shardscope::engine {

using contract::OperatorRole;

Gpt2Decoder::Gpt2Decoder(const contract::Architecture& architecture, const std::vector<contract::Operator>& operators,
                         const std::vector<contract::OperatorDecision>& decisions, std::int64_t microBatch,
                         std::int64_t sequence, BufferPool& pool)
    : m_architecture(architecture), m_operators(operators),
      m_pool(pool), m_shape{microBatch, sequence, architecture.heads, architecture.headDim},
      m_tokens(microBatch * sequence), m_buffers(operators.size()), m_tokenIds(pool.find("tokens")),
      m_targets(pool.find("targets")), m_logits(pool.find("logits")), m_losses(pool.find("losses")),
      m_residualGradient(pool.find("live.residual_gradient")),
      m_activationGradient(pool.find("live.activation_gradient")), m_wideGradient(pool.find("live.wide_gradient")) {
    resolveBuffers(decisions);
}

BufferId Gpt2Decoder::activation(std::size_t op, const char* suffix, bool recomputed) const {
    const contract::Operator& record = m_operators[op];
    for (const contract::ActivationSpec& spec : record.kept) {
        if (spec.name != suffix)
            continue;
        if (!recomputed || spec.blockInput)
            return m_pool.find(record.name + "." + suffix);
        return m_pool.find("live.recompute." + record.name.substr(record.blockName.size() + 1) + "." + suffix);
    }
    return kNoBuffer;
}

void Gpt2Decoder::resolveBuffers(const std::vector<contract::OperatorDecision>& decisions) {
    const std::size_t count = m_operators.size();
    for (std::size_t i = 0; i < count; ++i) {
        const bool recomputed = decisions[i].recompute && m_operators[i].block >= 0;
        Buffers& b = m_buffers[i];
        b.input = activation(i, "input", recomputed);
        b.statistics = activation(i, "statistics", recomputed);
        b.preActivation = activation(i, "pre_activation", recomputed);
        b.output = activation(i, "output", recomputed);
        b.logsumexp = activation(i, "logsumexp", recomputed);
        b.endsRecomputedBlock = recomputed && (i + 1 == count || m_operators[i + 1].block != m_operators[i].block);
        if (recomputed)
            for (const contract::ActivationSpec& spec : m_operators[i].kept)
                if (const BufferId id = activation(i, spec.name.c_str(), true); !spec.blockInput)
                    m_recomputed.push_back(id);
    }
    for (std::size_t i = 0; i < count; ++i) {
        Buffers& b = m_buffers[i];
        switch (m_operators[i].role) {
        case OperatorRole::TokenEmbedding:
            b.result = m_buffers[i + 2].input;
            break;
        case OperatorRole::Head:
            b.result = m_logits;
            break;
        default:
            b.result = m_buffers[i + 1].input;
            break;
        }
        // A residual branch begins at a norm and ends with the second linear operator after it.
        if (m_operators[i].role == OperatorRole::AttentionOutput || m_operators[i].role == OperatorRole::MlpDown)
            b.residual = m_buffers[i - 2].input;
    }
}

std::int32_t* Gpt2Decoder::takeTokens() {
    return reinterpret_cast<std::int32_t*>(taken(m_tokenIds));
}
std::int32_t* Gpt2Decoder::takeTargets() {
    return reinterpret_cast<std::int32_t*>(taken(m_targets));
}

float* Gpt2Decoder::attentionScratch() {
    // Behind the gradient of the projection's output, as sizeLive() lays it out.
    const std::int64_t gradientBytes = m_tokens * 3 * m_architecture.hidden * static_cast<std::int64_t>(sizeof(float));
    return taken(m_wideGradient) + contract::alignUp(gradientBytes) / static_cast<std::int64_t>(sizeof(float));
}

/// y (T, outputs), columns of this part = x (T, inputs) weight^T + bias (+ residual)
void Gpt2Decoder::computeLinear(const Buffers& b, const PartAccess& access, std::int64_t inputs, std::int64_t outputs,
                                float* y) {
    const std::int64_t begin = access.rowBegin();
    ConstMatrix residual;
    if (b.residual != kNoBuffer)
        residual = {taken(b.residual) + begin, m_tokens, access.rows(), outputs};
    linearForward({taken(b.input), m_tokens, inputs, inputs}, access.weight, access.bias, residual,
                  {y + begin, m_tokens, access.rows(), outputs});
}

void Gpt2Decoder::forward(std::int32_t op, const PartAccess& access) {
    compute(op, access);
    if (access.last && at(op).endsRecomputedBlock)
        for (const BufferId id : m_recomputed)
            m_pool.giveBack(id);
}

void Gpt2Decoder::compute(std::int32_t op, const PartAccess& access) {
    const Buffers& b = at(op);
    const std::int64_t hidden = m_architecture.hidden;
    const std::int64_t inner = m_architecture.intermediate;
    float* const result = taken(b.result);
    switch (m_operators[static_cast<std::size_t>(op)].role) {
    case OperatorRole::TokenEmbedding:
        embeddingForward(takeTokens(), {access.rowBegin(), access.rowBegin() + access.rows()}, access.weight,
                         {result, m_tokens, hidden, hidden}, Write::Overwrite);
        return;
    case OperatorRole::PositionEmbedding:
        positionForward(m_shape.sequence, {access.rowBegin(), access.rowBegin() + access.rows()}, access.weight,
                        {result, m_tokens, hidden, hidden});
        return;
    case OperatorRole::AttentionNorm:
    case OperatorRole::MlpNorm:
    case OperatorRole::FinalNorm:
        layerNormForward({m_tokens, hidden}, taken(b.input), access.weight, access.bias,
                         static_cast<float>(m_architecture.normEpsilon), result, taken(b.statistics));
        return;
    case OperatorRole::QueryKeyValue:
        computeLinear(b, access, hidden, 3 * hidden, taken(b.output));
        if (access.last) {
            attentionForward(m_shape, taken(b.output), result, taken(b.logsumexp), attentionScratch());
            m_pool.giveBack(m_wideGradient);
        }
        return;
    case OperatorRole::MlpUp: {
        float* const before = taken(b.preActivation);
        computeLinear(b, access, hidden, inner, before);
        geluTanhForward({before + access.rowBegin(), m_tokens, access.rows(), inner},
                        {result + access.rowBegin(), m_tokens, access.rows(), inner});
        return;
    }
    case OperatorRole::AttentionOutput:
        computeLinear(b, access, hidden, hidden, result);
        return;
    case OperatorRole::MlpDown:
        computeLinear(b, access, inner, hidden, result);
        return;
    case OperatorRole::Head:
        computeLinear(b, access, hidden, m_architecture.vocabulary, result);
        return;
    default:
        return; // refused when the plan was prepared
    }
}

LossSum Gpt2Decoder::loss() {
    const LossSum sum =
        crossEntropyWithGradient(taken(m_logits), takeTargets(), m_tokens, m_architecture.vocabulary, taken(m_losses));
    m_pool.giveBack(m_losses);
    m_pool.giveBack(m_targets);
    return sum;
}

LossSum Gpt2Decoder::evaluate(std::vector<bool>& correct) {
    float* const marks = taken(m_losses);
    const LossSum sum = crossEntropy(taken(m_logits), takeTargets(), m_tokens, m_architecture.vocabulary, marks);
    correct.resize(static_cast<std::size_t>(m_tokens));
    for (std::int64_t t = 0; t < m_tokens; ++t)
        correct[static_cast<std::size_t>(t)] = marks[t] > 0;
    for (const BufferId id : {m_losses, m_targets, m_tokenIds, m_logits})
        m_pool.giveBack(id);
    for (const Buffers& b : m_buffers)
        for (const BufferId id : {b.input, b.statistics, b.preActivation, b.output, b.logsumexp})
            if (id != kNoBuffer)
                m_pool.giveBack(id);
    return sum;
}

/// Gradients of the weights of this part from dy (T, outputs) and of the input into dx (T, inputs).
void Gpt2Decoder::backwardLinear(const Buffers& b, const PartAccess& access, const float* dy, std::int64_t outputs,
                                 std::int64_t inputs, float* dx) {
    const ConstMatrix partOutput{dy + access.rowBegin(), m_tokens, access.rows(), outputs};
    linearBackwardWeight(partOutput, {taken(b.input), m_tokens, inputs, inputs}, access.weightGradient,
                         access.gradientWrite);
    if (access.biasGradient != nullptr)
        linearBackwardBias(partOutput, access.biasGradient, access.gradientWrite);
    linearBackwardInput(partOutput, access.weight, {dx, m_tokens, inputs, inputs},
                        access.first ? Write::Overwrite : Write::Add);
}

void Gpt2Decoder::backwardNorm(const Buffers& b, const PartAccess& access, Write write) {
    layerNormBackward({m_tokens, m_architecture.hidden}, taken(m_activationGradient), taken(b.input), access.weight,
                      taken(b.statistics), taken(m_residualGradient), write, access.weightGradient, access.biasGradient,
                      access.gradientWrite);
}

void Gpt2Decoder::backwardEmbedding(std::int32_t op, const PartAccess& access) {
    const contract::RowRange rows{access.rowBegin(), access.rowBegin() + access.rows()};
    const ConstMatrix dy{taken(m_residualGradient), m_tokens, m_architecture.hidden, m_architecture.hidden};
    if (access.gradientWrite == Write::Overwrite)
        std::fill_n(access.weightGradient, access.rows() * m_architecture.hidden, 0.0F);
    if (m_operators[static_cast<std::size_t>(op)].role == OperatorRole::TokenEmbedding)
        embeddingBackward(takeTokens(), rows, dy, access.weightGradient);
    else
        positionBackward(m_shape.sequence, rows, dy, access.weightGradient);
}

void Gpt2Decoder::backward(std::int32_t op, const PartAccess& access) {
    const Buffers& b = at(op);
    const std::int64_t hidden = m_architecture.hidden;
    const std::int64_t inner = m_architecture.intermediate;
    switch (m_operators[static_cast<std::size_t>(op)].role) {
    case OperatorRole::Head:
        backwardLinear(b, access, taken(m_logits), m_architecture.vocabulary, hidden, taken(m_activationGradient));
        break;
    case OperatorRole::FinalNorm:
        backwardNorm(b, access, Write::Overwrite);
        break;
    case OperatorRole::AttentionNorm:
    case OperatorRole::MlpNorm:
        backwardNorm(b, access, Write::Add);
        break;
    case OperatorRole::MlpDown:
        backwardLinear(b, access, taken(m_residualGradient), hidden, inner, taken(m_wideGradient));
        break;
    case OperatorRole::MlpUp: {
        float* const wide = taken(m_wideGradient);
        if (access.first)
            geluTanhBackward({taken(b.preActivation), m_tokens, inner, inner}, {wide, m_tokens, inner, inner},
                             {wide, m_tokens, inner, inner});
        backwardLinear(b, access, wide, inner, hidden, taken(m_activationGradient));
        break;
    }
    case OperatorRole::AttentionOutput:
        backwardLinear(b, access, taken(m_residualGradient), hidden, hidden, taken(m_activationGradient));
        break;
    case OperatorRole::QueryKeyValue: {
        float* const wide = taken(m_wideGradient);
        if (access.first)
            attentionBackward(m_shape, taken(b.output), taken(b.result), taken(b.logsumexp),
                              taken(m_activationGradient), wide, attentionScratch());
        backwardLinear(b, access, wide, 3 * hidden, hidden, taken(m_activationGradient));
        break;
    }
    case OperatorRole::TokenEmbedding:
    case OperatorRole::PositionEmbedding:
        backwardEmbedding(op, access);
        break;
    default:
        break;
    }
    if (access.last)
        finishBackward(op);
}

/// Gives back what nobody needs after the backward of an operator.
void Gpt2Decoder::finishBackward(std::int32_t op) {
    const Buffers& b = at(op);
    const OperatorRole role = m_operators[static_cast<std::size_t>(op)].role;
    for (const BufferId id : {b.statistics, b.preActivation, b.output, b.logsumexp})
        if (id != kNoBuffer)
            m_pool.giveBack(id);
    // The attention's output is the input of the projection after it, and its own backward needs it.
    if (b.input != kNoBuffer && role != OperatorRole::AttentionOutput)
        m_pool.giveBack(b.input);
    if (role == OperatorRole::QueryKeyValue)
        m_pool.giveBack(b.result);
    if (role == OperatorRole::QueryKeyValue || role == OperatorRole::MlpUp)
        m_pool.giveBack(m_wideGradient);
    if (role == OperatorRole::Head)
        m_pool.giveBack(m_logits);
    if (role == OperatorRole::TokenEmbedding)
        for (const BufferId id : {m_residualGradient, m_activationGradient, m_tokenIds})
            m_pool.giveBack(id);
}

} // namespace shardscope::engine
