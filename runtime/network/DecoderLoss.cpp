// SPDX-License-Identifier: GPL-3.0-or-later
// The head of a decoder and its loss: over all tokens at once, or chunk by chunk of the tokens, so that the logits of
// one chunk are all that ever exists.
//
// Chunks, and a head of one part: the forward pass leaves the head alone; its backward makes the logits of a chunk,
// their losses and gradients, and goes on to the next. Nothing is computed twice, and weights are gathered as without
// chunks. A head of several parts has logits of one part at a time: forward joins those of each part to the softmax of
// their tokens, backward makes them again.
#include "runtime/network/Decoder.h"

#include <algorithm>

namespace shardscope::engine {

namespace {

/// body(first token, number of tokens) of every chunk, in order.
template<typename Body> void forEachChunk(std::int64_t tokens, std::int64_t chunk, Body body) {
    for (std::int64_t begin = 0; begin < tokens; begin += chunk)
        body(begin, std::min(chunk, tokens - begin));
}

ConstElementMatrix constant(const ElementMatrix& matrix) {
    return {matrix.data, matrix.rows, matrix.columns, matrix.stride};
}

} // namespace

TokenSoftmax Decoder::tokenSoftmax() {
    const Elements rows = takenFloats(m_losses);
    return {rows, rows + m_tokens, rows + 2 * m_tokens};
}

ElementMatrix Decoder::computeChunk(const Buffers& b, const PartAccess& access, std::int64_t begin,
                                    std::int64_t count) {
    const std::int64_t hidden = m_architecture.hidden;
    const std::int64_t vocabulary = m_architecture.vocabulary;
    const ElementMatrix logits{taken(m_logits) + access.rowBegin(), count, access.rows(), vocabulary};
    m_kernels.linearForward({taken(b.source) + begin * hidden, count, hidden, hidden}, access.weight, access.bias, {},
                            logits);
    return logits;
}

void Decoder::computeHead(const Buffers& b, const PartAccess& access) {
    if (!isChunked())
        return computeLinear(b, access, m_architecture.hidden, m_architecture.vocabulary, taken(m_logits));
    m_headInParts = !(access.first && access.last);
    if (m_use == HeadUse::Train && !m_headInParts)
        return;
    if (m_use == HeadUse::Predict) {
        const std::int64_t begin = m_predicted / m_chunk * m_chunk;
        computeChunk(b, access, begin, std::min(m_chunk, m_tokens - begin));
        return;
    }
    const TokenSoftmax softmax = tokenSoftmax();
    forEachChunk(m_tokens, m_chunk, [&](std::int64_t begin, std::int64_t count) {
        const ElementMatrix logits = computeChunk(b, access, begin, count);
        m_kernels.joinSoftmax(constant(logits), access.rowBegin(), deviceTargets() + begin, softmax + begin,
                              access.first ? Write::Overwrite : Write::Add);
    });
}

void Decoder::differentiateHead(const Buffers& b, const PartAccess& access) {
    const std::int64_t hidden = m_architecture.hidden;
    const std::int64_t vocabulary = m_architecture.vocabulary;
    const Elements gradient = taken(m_activationGradient);
    const Write writeInput = access.first ? Write::Overwrite : Write::Add;
    if (!isChunked())
        return differentiateLinear(b, access, taken(m_logits), vocabulary, hidden, gradient, writeInput);
    const TokenSoftmax softmax = tokenSoftmax();
    forEachChunk(m_tokens, m_chunk, [&](std::int64_t begin, std::int64_t count) {
        const ElementMatrix logits = computeChunk(b, access, begin, count);
        const std::int32_t* const targets = deviceTargets() + begin;
        if (m_headInParts)
            m_kernels.softmaxGradient(logits, access.rowBegin(), targets, softmax.logsumexp + begin);
        else
            m_kernels.crossEntropyWithGradient(logits.data, targets, count, vocabulary, softmax.target + begin);
        const ConstElementMatrix dlogits = constant(logits);
        const Write writeWeight = begin == 0 ? access.gradientWrite : Write::Add;
        m_kernels.linearBackwardWeight(dlogits, {taken(b.source) + begin * hidden, count, hidden, hidden},
                                       access.weightGradient, writeWeight);
        if (access.biasGradient)
            m_kernels.linearBackwardBias(dlogits, access.biasGradient, writeWeight);
        m_kernels.linearBackwardInput(dlogits, access.weight, {gradient + begin * hidden, count, hidden, hidden},
                                      writeInput);
    });
    if (access.last)
        giveBackLoss();
}

void Decoder::giveBackLoss() {
    m_pool.giveBack(m_losses);
    m_pool.giveBack(m_targets);
}

void Decoder::loss() {
    if (isChunked()) {
        if (m_headInParts)
            m_kernels.addLosses(tokenSoftmax(), deviceTargets(), m_tokens);
        return;
    }
    m_kernels.crossEntropyWithGradient(taken(m_logits), deviceTargets(), m_tokens, m_architecture.vocabulary,
                                       takenFloats(m_losses));
    giveBackLoss();
}

LossSum Decoder::evaluate(std::vector<bool>& correct) {
    const Elements marks = isChunked() ? tokenSoftmax().largest : takenFloats(m_losses);
    const LossSum sum = isChunked() ? m_kernels.judgeSoftmax(tokenSoftmax(), deviceTargets(), m_tokens)
                                    : m_kernels.crossEntropy(taken(m_logits), deviceTargets(), m_tokens,
                                                             m_architecture.vocabulary, marks);
    std::vector<float> values(static_cast<std::size_t>(m_tokens));
    m_device.download(values.data(), marks, m_tokens);
    correct.resize(values.size());
    for (std::size_t t = 0; t < values.size(); ++t)
        correct[t] = values[t] > 0;
    endForward();
    return sum;
}

std::vector<float> Decoder::takeLogits() {
    const std::int64_t vocabulary = m_architecture.vocabulary;
    std::vector<float> logits(static_cast<std::size_t>(vocabulary));
    m_device.download(logits.data(), taken(m_logits) + m_predicted % m_chunk * vocabulary, vocabulary);
    endForward();
    return logits;
}

} // namespace shardscope::engine
