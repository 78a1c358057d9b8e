// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "runtime/ops/Kernels.h"

namespace shardscope::engine {

/// The operations on CPU cores: float32 in host memory, done when the call returns.
class HostKernels final : public Kernels {
public:
    void linearForward(ConstElementMatrix x, ConstElements weight, ConstElements bias, ConstElementMatrix residual,
                       ElementMatrix y) override;
    void linearGeluForward(ConstElementMatrix x, ConstElements weight, ConstElements bias, ElementMatrix before,
                           ElementMatrix y) override;
    void linearBackwardInput(ConstElementMatrix dy, ConstElements weight, ElementMatrix dx, Write write) override;
    void linearBackwardWeight(ConstElementMatrix dy, ConstElementMatrix x, Elements weightGradient,
                              Write write) override;
    void linearBackwardBias(ConstElementMatrix dy, Elements biasGradient, Write write) override;
    void geluTanhBackward(ConstElementMatrix x, ConstElementMatrix dy, ElementMatrix dx) override;
    void siluGateForward(ConstElementMatrix gate, ConstElementMatrix up, ElementMatrix y) override;
    void siluGateBackward(ConstElementMatrix gate, ConstElementMatrix up, ConstElementMatrix dy, ElementMatrix dgate,
                          ElementMatrix dup) override;
    void layerNormForward(NormShape shape, ConstElements x, ConstElements gain, ConstElements bias, float epsilon,
                          Elements y, Elements statistics) override;
    void layerNormBackward(NormShape shape, ConstElements dy, ConstElements x, ConstElements gain,
                           ConstElements statistics, Elements dx, Write writeInput, Elements dgain, Elements dbias,
                           Write writeParameters) override;
    void rmsNormForward(NormShape shape, ConstElements x, ConstElements gain, float epsilon, Elements y,
                        Elements reciprocals) override;
    void rmsNormBackward(NormShape shape, ConstElements dy, ConstElements x, ConstElements gain,
                         ConstElements reciprocals, Elements dx, Write writeInput, Elements dgain,
                         Write writeParameters) override;
    void attentionForward(AttentionShape shape, AttentionElements rows, Elements output, Elements logsumexp,
                          Elements scratch) override;
    void attentionBackward(AttentionShape shape, AttentionElements rows, ConstElements output, ConstElements logsumexp,
                           ConstElements doutput, AttentionGradients gradients, Elements scratch) override;
    void prepareRotary(const Rotary&, std::int64_t) override {}
    void rotate(const Rotary& rotary, Elements x, std::int64_t tokens, std::int64_t sequence, std::int64_t heads,
                Rotary::Direction direction) override;
    void embeddingForward(const std::int32_t* ids, contract::RowRange rows, ConstElements table,
                          ElementMatrix y) override;
    void embeddingBackward(const std::int32_t* ids, contract::RowRange rows, ConstElementMatrix dy,
                           Elements tableGradient) override;
    void positionForward(std::int64_t sequence, contract::RowRange rows, ConstElements table, ElementMatrix y) override;
    void positionBackward(std::int64_t sequence, contract::RowRange rows, ConstElementMatrix dy,
                          Elements tableGradient) override;
    void clear(Elements values, std::int64_t count) override;
    void crossEntropyWithGradient(Elements logits, const std::int32_t* targets, std::int64_t tokens,
                                  std::int64_t vocabulary, Elements losses) override;
    LossSum crossEntropy(ConstElements logits, const std::int32_t* targets, std::int64_t tokens,
                         std::int64_t vocabulary, Elements correct) override;
    void joinSoftmax(ConstElementMatrix logits, std::int64_t firstRow, const std::int32_t* targets,
                     TokenSoftmax softmax, Write write) override;
    void softmaxGradient(ElementMatrix logits, std::int64_t firstRow, const std::int32_t* targets,
                         ConstElements logsumexp) override;
    void addLosses(TokenSoftmax softmax, const std::int32_t* targets, std::int64_t tokens) override;
    LossSum judgeSoftmax(TokenSoftmax softmax, const std::int32_t* targets, std::int64_t tokens) override;
    void addSquares(SquareSum sum, ConstElements values, std::int64_t count, double divisor) override;
    void clearSums() override { m_sums = {}; }
    contract::Result<StepSums> readSums() override { return m_sums; }
    void adamW(const AdamWStep& step, const TensorUpdate& tensor) override;
    void sgdMomentum(const SgdStep& step, const TensorUpdate& tensor) override;

private:
    StepSums m_sums;
};

} // namespace shardscope::engine
