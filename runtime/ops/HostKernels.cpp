// SPDX-License-Identifier: GPL-3.0-or-later
#include "runtime/ops/HostKernels.h"

#include "runtime/ops/Embedding.h"
#include "runtime/ops/Gelu.h"
#include "runtime/ops/RmsNorm.h"
#include "runtime/ops/SiluGate.h"

#include <algorithm>

namespace shardscope::engine {

namespace {

Matrix floats(const ElementMatrix& m) {
    return {m.data.floats(), m.rows, m.columns, m.stride};
}
ConstMatrix floats(const ConstElementMatrix& m) {
    return {m.data.floats(), m.rows, m.columns, m.stride};
}
AttentionRows<const float> floats(const AttentionElements& rows) {
    return {rows.query.floats(), rows.key.floats(), rows.value.floats(), rows.queryStride, rows.keyStride};
}
AttentionRows<float> floats(const AttentionGradients& rows) {
    return {rows.query.floats(), rows.key.floats(), rows.value.floats(), rows.queryStride, rows.keyStride};
}
SoftmaxRows floats(const TokenSoftmax& softmax) {
    return {softmax.logsumexp.floats(), softmax.target.floats(), softmax.largest.floats()};
}

} // namespace

void HostKernels::linearForward(ConstElementMatrix x, ConstElements weight, ConstElements bias,
                                ConstElementMatrix residual, ElementMatrix y) {
    engine::linearForward(floats(x), weight.floats(), bias.floats(), floats(residual), floats(y));
}
void HostKernels::linearGeluForward(ConstElementMatrix x, ConstElements weight, ConstElements bias,
                                    ElementMatrix before, ElementMatrix y) {
    engine::linearForward(floats(x), weight.floats(), bias.floats(), {}, floats(before));
    const Matrix in = floats(before);
    geluTanhForward({in.data, in.rows, in.columns, in.stride}, floats(y));
}
void HostKernels::linearBackwardInput(ConstElementMatrix dy, ConstElements weight, ElementMatrix dx, Write write) {
    engine::linearBackwardInput(floats(dy), weight.floats(), floats(dx), write);
}
void HostKernels::linearBackwardWeight(ConstElementMatrix dy, ConstElementMatrix x, Elements weightGradient,
                                       Write write) {
    engine::linearBackwardWeight(floats(dy), floats(x), weightGradient.floats(), write);
}
void HostKernels::linearBackwardBias(ConstElementMatrix dy, Elements biasGradient, Write write) {
    engine::linearBackwardBias(floats(dy), biasGradient.floats(), write);
}

void HostKernels::geluTanhBackward(ConstElementMatrix x, ConstElementMatrix dy, ElementMatrix dx) {
    engine::geluTanhBackward(floats(x), floats(dy), floats(dx));
}
void HostKernels::siluGateForward(ConstElementMatrix gate, ConstElementMatrix up, ElementMatrix y) {
    engine::siluGateForward(floats(gate), floats(up), floats(y));
}
void HostKernels::siluGateBackward(ConstElementMatrix gate, ConstElementMatrix up, ConstElementMatrix dy,
                                   ElementMatrix dgate, ElementMatrix dup) {
    engine::siluGateBackward(floats(gate), floats(up), floats(dy), floats(dgate), floats(dup));
}

void HostKernels::layerNormForward(NormShape shape, ConstElements x, ConstElements gain, ConstElements bias,
                                   float epsilon, Elements y, Elements statistics) {
    engine::layerNormForward(shape, x.floats(), gain.floats(), bias.floats(), epsilon, y.floats(), statistics.floats());
}
void HostKernels::layerNormBackward(NormShape shape, ConstElements dy, ConstElements x, ConstElements gain,
                                    ConstElements statistics, Elements dx, Write writeInput, Elements dgain,
                                    Elements dbias, Write writeParameters) {
    engine::layerNormBackward(shape, dy.floats(), x.floats(), gain.floats(), statistics.floats(), dx.floats(),
                              writeInput, dgain.floats(), dbias.floats(), writeParameters);
}
void HostKernels::rmsNormForward(NormShape shape, ConstElements x, ConstElements gain, float epsilon, Elements y,
                                 Elements reciprocals) {
    engine::rmsNormForward(shape, x.floats(), gain.floats(), epsilon, y.floats(), reciprocals.floats());
}
void HostKernels::rmsNormBackward(NormShape shape, ConstElements dy, ConstElements x, ConstElements gain,
                                  ConstElements reciprocals, Elements dx, Write writeInput, Elements dgain,
                                  Write writeParameters) {
    engine::rmsNormBackward(shape, dy.floats(), x.floats(), gain.floats(), reciprocals.floats(), dx.floats(),
                            writeInput, dgain.floats(), writeParameters);
}

void HostKernels::attentionForward(AttentionShape shape, AttentionElements rows, Elements output, Elements logsumexp,
                                   Elements scratch) {
    engine::attentionForward(shape, floats(rows), output.floats(), logsumexp.floats(), scratch.floats());
}
void HostKernels::attentionBackward(AttentionShape shape, AttentionElements rows, ConstElements output,
                                    ConstElements logsumexp, ConstElements doutput, AttentionGradients gradients,
                                    Elements scratch) {
    engine::attentionBackward(shape, floats(rows), output.floats(), logsumexp.floats(), doutput.floats(),
                              floats(gradients), scratch.floats());
}
void HostKernels::rotate(const Rotary& rotary, Elements x, std::int64_t tokens, std::int64_t sequence,
                         std::int64_t heads, Rotary::Direction direction) {
    rotary.apply(x.floats(), tokens, sequence, heads, direction);
}

void HostKernels::embeddingForward(const std::int32_t* ids, contract::RowRange rows, ConstElements table,
                                   ElementMatrix y) {
    engine::embeddingForward(ids, rows, table.floats(), floats(y), Write::Overwrite);
}
void HostKernels::embeddingBackward(const std::int32_t* ids, contract::RowRange rows, ConstElementMatrix dy,
                                    Elements tableGradient) {
    engine::embeddingBackward(ids, rows, floats(dy), tableGradient.floats());
}
void HostKernels::positionForward(std::int64_t sequence, contract::RowRange rows, ConstElements table,
                                  ElementMatrix y) {
    engine::positionForward(sequence, rows, table.floats(), floats(y));
}
void HostKernels::positionBackward(std::int64_t sequence, contract::RowRange rows, ConstElementMatrix dy,
                                   Elements tableGradient) {
    engine::positionBackward(sequence, rows, floats(dy), tableGradient.floats());
}
void HostKernels::clear(Elements values, std::int64_t count) {
    std::fill_n(values.floats(), count, 0.0F);
}

void HostKernels::crossEntropyWithGradient(Elements logits, const std::int32_t* targets, std::int64_t tokens,
                                           std::int64_t vocabulary, Elements losses) {
    const LossSum sum = engine::crossEntropyWithGradient(logits.floats(), targets, tokens, vocabulary, losses.floats());
    m_sums.loss += sum.loss;
    m_sums.tokens += sum.tokens;
}
LossSum HostKernels::crossEntropy(ConstElements logits, const std::int32_t* targets, std::int64_t tokens,
                                  std::int64_t vocabulary, Elements correct) {
    return engine::crossEntropy(logits.floats(), targets, tokens, vocabulary, correct.floats());
}

void HostKernels::joinSoftmax(ConstElementMatrix logits, std::int64_t firstRow, const std::int32_t* targets,
                              TokenSoftmax softmax, Write write) {
    engine::joinSoftmax(floats(logits), firstRow, targets, floats(softmax), write);
}
void HostKernels::softmaxGradient(ElementMatrix logits, std::int64_t firstRow, const std::int32_t* targets,
                                  ConstElements logsumexp) {
    engine::softmaxGradient(floats(logits), firstRow, targets, logsumexp.floats());
}
void HostKernels::addLosses(TokenSoftmax softmax, const std::int32_t* targets, std::int64_t tokens) {
    const LossSum sum = engine::judgeSoftmax(floats(softmax), targets, tokens);
    m_sums.loss += sum.loss;
    m_sums.tokens += sum.tokens;
}
LossSum HostKernels::judgeSoftmax(TokenSoftmax softmax, const std::int32_t* targets, std::int64_t tokens) {
    return engine::judgeSoftmax(floats(softmax), targets, tokens);
}

void HostKernels::addSquares(SquareSum sum, ConstElements values, std::int64_t count, double divisor) {
    m_sums.squares[static_cast<int>(sum)] += sumOfSquares(values.floats(), count) / divisor;
}
void HostKernels::adamW(const AdamWStep& step, const TensorUpdate& tensor) {
    engine::adamW(step, tensor.weightDecay, tensor.count, tensor.gradient.floats(), tensor.weight.floats(),
                  tensor.firstMoment.floats(), tensor.secondMoment.floats());
}
void HostKernels::sgdMomentum(const SgdStep& step, const TensorUpdate& tensor) {
    engine::sgdMomentum(step, tensor.weightDecay, tensor.count, tensor.gradient.floats(), tensor.weight.floats(),
                        tensor.firstMoment.floats());
}

} // namespace shardscope::engine
