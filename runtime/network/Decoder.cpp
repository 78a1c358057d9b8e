// SPDX-License-Identifier: GPL-3.0-or-later
#include "runtime/network/Decoder.h"

#include "runtime/contract/Bytes.h"
#include "runtime/network/Gpt2Decoder.h"
#include "runtime/network/LlamaDecoder.h"

#include <algorithm>

namespace shardscope::engine {

using contract::OperatorRole;

contract::Result<std::unique_ptr<Decoder>>
Decoder::create(const contract::Architecture& architecture, const std::vector<contract::Operator>& operators,
                const std::vector<contract::OperatorDecision>& decisions, const contract::Training& training,
                const contract::Preset& preset, BufferPool& pool, Device& device) {
    if (architecture.attention == contract::AttentionLayout::Separate)
        return LlamaDecoder::create(architecture, operators, decisions, training, preset, pool, device);
    return std::make_unique<Gpt2Decoder>(architecture, operators, decisions, training, preset, pool, device);
}

Decoder::Decoder(const contract::Architecture& architecture, const std::vector<contract::Operator>& operators,
                 const std::vector<contract::OperatorDecision>& decisions, const contract::Training& training,
                 const contract::Preset& preset, BufferPool& pool, Device& device)
    : m_architecture(architecture), m_operators(operators), m_pool(pool), m_device(device), m_kernels(device.kernels()),
      m_type(elementType(preset.gatheredBytes)), m_shape{training.microBatch, training.sequence, architecture.heads,
                                                         architecture.kvHeads, architecture.headDim},
      m_tokens(training.microBatch * training.sequence), m_chunk(contract::ceilDivide(m_tokens, training.lossChunks)),
      m_tokenIds(pool.find("tokens")), m_targets(pool.find("targets")), m_logits(pool.find("logits")),
      m_losses(pool.find("losses")), m_residualGradient(pool.find("live.residual_gradient")),
      m_activationGradient(pool.find("live.activation_gradient")), m_wideGradient(pool.find("live.wide_gradient")),
      m_buffers(operators.size()) {
    resolveBuffers(decisions);
    if (!device.isHostMemory()) {
        m_hostTokens.resize(static_cast<std::size_t>(m_tokens));
        m_hostTargets.resize(static_cast<std::size_t>(m_tokens));
    }
}

BufferId Decoder::activation(std::size_t op, const char* suffix, bool recomputed) const {
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

const Decoder::Buffers& Decoder::before(std::size_t op, OperatorRole role) const {
    while (m_operators[op].role != role)
        --op; // every block begins with its norm
    return m_buffers[op];
}

void Decoder::resolveBuffers(const std::vector<contract::OperatorDecision>& decisions) {
    const std::size_t count = m_operators.size();
    for (std::size_t i = 0; i < count; ++i) {
        const bool recomputed = decisions[i].recompute && m_operators[i].block >= 0;
        Buffers& b = m_buffers[i];
        b.source = b.input = activation(i, "input", recomputed);
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
        std::size_t consumer = i + 1; // positions are added to what the token embedding wrote
        while (consumer < count && m_operators[consumer].role == OperatorRole::PositionEmbedding)
            ++consumer;
        b.result = consumer < count ? m_buffers[consumer].input : m_logits;
        if (m_operators[i].role == OperatorRole::AttentionOutput)
            b.residual = before(i, OperatorRole::AttentionNorm).input;
        if (m_operators[i].role == OperatorRole::MlpDown)
            b.residual = before(i, OperatorRole::MlpNorm).input;
    }
}

std::int32_t* Decoder::takeTokens() {
    auto* const ids = reinterpret_cast<std::int32_t*>(m_pool.take(m_tokenIds));
    return m_device.isHostMemory() ? ids : m_hostTokens.data();
}
std::int32_t* Decoder::takeTargets() {
    auto* const ids = reinterpret_cast<std::int32_t*>(m_pool.take(m_targets));
    return m_device.isHostMemory() ? ids : m_hostTargets.data();
}
void Decoder::deliverBatch() {
    if (m_device.isHostMemory())
        return;
    const std::int64_t bytes = m_tokens * static_cast<std::int64_t>(sizeof(std::int32_t));
    m_device.uploadBytes(m_pool.take(m_tokenIds), m_hostTokens.data(), bytes);
    m_device.uploadBytes(m_pool.take(m_targets), m_hostTargets.data(), bytes);
}

Elements Decoder::attentionScratch(std::int64_t elements) {
    const std::int64_t gradientBytes = m_tokens * elements * elementBytes(m_type);
    return {m_pool.take(m_wideGradient) + contract::alignUp(gradientBytes), ElementType::Float32};
}

void Decoder::forward(std::int32_t op, const PartAccess& access) {
    compute(op, access);
    if (access.last && at(op).endsRecomputedBlock)
        for (const BufferId id : m_recomputed)
            m_pool.giveBack(id);
}

void Decoder::backward(std::int32_t op, const PartAccess& access) {
    differentiate(op, access);
    if (!access.last)
        return;
    const Buffers& b = at(op);
    for (const BufferId id : {b.statistics, b.preActivation, b.output, b.logsumexp})
        if (id != kNoBuffer)
            m_pool.giveBack(id);
    // The attention's output is the input of the projection after it, and its own backward needs it.
    if (b.input != kNoBuffer && record(op).role != OperatorRole::AttentionOutput)
        m_pool.giveBack(b.input);
    if (record(op).role == OperatorRole::Head)
        m_pool.giveBack(m_logits);
    if (record(op).role == OperatorRole::TokenEmbedding)
        for (const BufferId id : {m_residualGradient, m_activationGradient, m_tokenIds})
            m_pool.giveBack(id);
    finishBackward(op);
}

void Decoder::endForward() {
    for (const BufferId id : {m_losses, m_targets, m_tokenIds, m_logits})
        m_pool.giveBack(id);
    for (const Buffers& b : m_buffers)
        for (const BufferId id : {b.input, b.statistics, b.preActivation, b.output, b.logsumexp})
            if (id != kNoBuffer)
                m_pool.giveBack(id);
}

void Decoder::computeLinear(const Buffers& b, const PartAccess& access, std::int64_t inputs, std::int64_t outputs,
                            Elements y) {
    ConstElementMatrix residual;
    if (b.residual != kNoBuffer)
        residual = {taken(b.residual) + access.rowBegin(), m_tokens, access.rows(), outputs};
    m_kernels.linearForward(whole(ConstElements(taken(b.source)), inputs), access.weight, access.bias, residual,
                            columnsOf(access, y, outputs));
}

void Decoder::differentiateLinear(const Buffers& b, const PartAccess& access, ConstElements dy, std::int64_t outputs,
                                  std::int64_t inputs, Elements dx, Write writeInput) {
    const ConstElementMatrix partOutput{dy + access.rowBegin(), m_tokens, access.rows(), outputs};
    m_kernels.linearBackwardWeight(partOutput, whole(ConstElements(taken(b.source)), inputs), access.weightGradient,
                                   access.gradientWrite);
    if (access.biasGradient)
        m_kernels.linearBackwardBias(partOutput, access.biasGradient, access.gradientWrite);
    m_kernels.linearBackwardInput(partOutput, access.weight, whole(dx, inputs), writeInput);
}

void Decoder::computeEmbedding(std::int32_t op, const PartAccess& access) {
    const contract::RowRange rows{access.rowBegin(), access.rowBegin() + access.rows()};
    const ElementMatrix y = whole(taken(at(op).result), m_architecture.hidden);
    if (record(op).role == OperatorRole::TokenEmbedding)
        m_kernels.embeddingForward(deviceTokens(), rows, access.weight, y);
    else
        m_kernels.positionForward(m_shape.sequence, rows, access.weight, y);
}

void Decoder::differentiateEmbedding(std::int32_t op, const PartAccess& access) {
    const contract::RowRange rows{access.rowBegin(), access.rowBegin() + access.rows()};
    const ConstElementMatrix dy = whole(ConstElements(taken(m_residualGradient)), m_architecture.hidden);
    if (access.gradientWrite == Write::Overwrite)
        m_kernels.clear(access.weightGradient, access.rows() * m_architecture.hidden);
    if (record(op).role == OperatorRole::TokenEmbedding)
        m_kernels.embeddingBackward(deviceTokens(), rows, dy, access.weightGradient);
    else
        m_kernels.positionBackward(m_shape.sequence, rows, dy, access.weightGradient);
}

} // namespace shardscope::engine
