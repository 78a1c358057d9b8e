// SPDX-License-Identifier: GPL-3.0-or-later
// Every operation but the matrix products, over kernel bodies and a launcher: the same source runs on a GPU, where
// CudaLauncher starts kernels, and in tests on a CPU, where a launcher of loops (or of threads in lock step) runs it.
#pragma once

#include "runtime/ops/shared/TypedKernels.h"

#include <cmath>
#include <vector>

namespace shardscope::engine::shared {

/// Calls f(float{}) or f(BFloat16{}).
template<typename F> void byType(ElementType type, F f) {
    type == ElementType::BFloat16 ? f(BFloat16{}) : f(float{});
}
/// The same for activations and the gradients of parameters, which are of the same type or float32.
template<typename F> void byTypes(ElementType type, ElementType gradients, F f) {
    if (type == ElementType::Float32)
        f(float{}, float{});
    else
        byType(gradients, [&](auto g) { f(BFloat16{}, g); });
}

template<typename Launcher> class SharedKernels : public Kernels, public TypedKernels<Launcher> {
protected:
    using TypedKernels<Launcher>::m_sums;

public:
    void geluTanhBackward(ConstElementMatrix x, ConstElementMatrix dy, ElementMatrix dx) override {
        byType(x.data.type, [&](auto e) { this->template geluBackward<decltype(e)>(x, dy, dx); });
    }
    void siluGateForward(ConstElementMatrix gate, ConstElementMatrix up, ElementMatrix y) override {
        byType(gate.data.type, [&](auto e) { this->template siluForward<decltype(e)>(gate, up, y); });
    }
    void siluGateBackward(ConstElementMatrix gate, ConstElementMatrix up, ConstElementMatrix dy, ElementMatrix dgate,
                          ElementMatrix dup) override {
        byType(gate.data.type, [&](auto e) { this->template siluBackward<decltype(e)>(gate, up, dy, dgate, dup); });
    }
    void layerNormForward(NormShape shape, ConstElements x, ConstElements gain, ConstElements bias, float epsilon,
                          Elements y, Elements statistics) override {
        byType(x.type, [&](auto e) {
            this->template layerForward<decltype(e)>(shape, x, gain, bias, epsilon, y, as<float>(statistics));
        });
    }
    void layerNormBackward(NormShape shape, ConstElements dy, ConstElements x, ConstElements gain,
                           ConstElements statistics, Elements dx, Write writeInput, Elements dgain, Elements dbias,
                           Write writeParameters) override {
        byTypes(x.type, dgain.type, [&](auto e, auto g) {
            this->template layerBackward<decltype(e), decltype(g)>(shape, dy, x, gain, as<float>(statistics), dx,
                                                                   writeInput, dgain, dbias, writeParameters);
        });
    }
    void rmsNormForward(NormShape shape, ConstElements x, ConstElements gain, float epsilon, Elements y,
                        Elements reciprocals) override {
        byType(x.type, [&](auto e) {
            this->template rmsForward<decltype(e)>(shape, x, gain, epsilon, y, as<float>(reciprocals));
        });
    }
    void rmsNormBackward(NormShape shape, ConstElements dy, ConstElements x, ConstElements gain,
                         ConstElements reciprocals, Elements dx, Write writeInput, Elements dgain,
                         Write writeParameters) override {
        byTypes(x.type, dgain.type, [&](auto e, auto g) {
            this->template rmsBackward<decltype(e), decltype(g)>(shape, dy, x, gain, as<float>(reciprocals), dx,
                                                                 writeInput, dgain, writeParameters);
        });
    }
    void attentionForward(AttentionShape shape, AttentionElements rows, Elements output, Elements logsumexp,
                          Elements) override {
        byType(rows.query.type,
               [&](auto e) { this->template attendForward<decltype(e)>(shape, rows, output, as<float>(logsumexp)); });
    }
    void attentionBackward(AttentionShape shape, AttentionElements rows, ConstElements output, ConstElements logsumexp,
                           ConstElements doutput, AttentionGradients gradients, Elements) override {
        byType(rows.query.type, [&](auto e) {
            this->template attendBackward<decltype(e)>(shape, rows, output, as<float>(logsumexp), doutput, gradients);
        });
    }
    void rotate(const Rotary& rotary, Elements x, std::int64_t tokens, std::int64_t sequence, std::int64_t heads,
                Rotary::Direction direction) override {
        const auto pairs = static_cast<std::int64_t>(rotary.frequencies().size());
        byType(x.type, [&](auto e) {
            this->template rotateRows<decltype(e)>(as<decltype(e)>(x), tokens, sequence, heads, pairs,
                                                   direction == Rotary::Direction::Forward ? 1.0F : -1.0F);
        });
    }
    void embeddingForward(const std::int32_t* ids, contract::RowRange rows, ConstElements table,
                          ElementMatrix y) override {
        byType(table.type, [&](auto e) { this->template embed<decltype(e)>(ids, rows, table, y); });
    }
    void embeddingBackward(const std::int32_t* ids, contract::RowRange rows, ConstElementMatrix dy,
                           Elements tableGradient) override {
        byTypes(dy.data.type, tableGradient.type, [&](auto e, auto g) {
            this->template embedBackward<decltype(e), decltype(g)>(ids, rows, dy, tableGradient);
        });
    }
    void positionForward(std::int64_t sequence, contract::RowRange rows, ConstElements table,
                         ElementMatrix y) override {
        byType(table.type, [&](auto e) { this->template addPositions<decltype(e)>(sequence, rows, table, y); });
    }
    void positionBackward(std::int64_t sequence, contract::RowRange rows, ConstElementMatrix dy,
                          Elements tableGradient) override {
        byTypes(dy.data.type, tableGradient.type, [&](auto e, auto g) {
            this->template positionGradients<decltype(e), decltype(g)>(sequence, rows, dy, tableGradient);
        });
    }
    void linearBackwardBias(ConstElementMatrix dy, Elements biasGradient, Write write) override {
        byTypes(dy.data.type, biasGradient.type, [&](auto e, auto g) {
            this->template biasGradients<decltype(e), decltype(g)>(dy, biasGradient, write);
        });
    }
    void clear(Elements values, std::int64_t count) override {
        byType(values.type, [&](auto e) { this->template fillZero<decltype(e)>(as<decltype(e)>(values), count); });
    }
    void crossEntropyWithGradient(Elements logits, const std::int32_t* targets, std::int64_t tokens,
                                  std::int64_t vocabulary, Elements losses) override {
        byType(logits.type, [&](auto e) {
            this->template entropy<decltype(e)>(as<decltype(e)>(logits), targets, tokens, vocabulary,
                                                as<float>(losses));
        });
        TypedKernels<Launcher>::addLosses(as<float>(losses), targets, tokens, m_sums);
    }
    LossSum crossEntropy(ConstElements logits, const std::int32_t* targets, std::int64_t tokens,
                         std::int64_t vocabulary, Elements correct) override {
        byType(logits.type, [&](auto e) {
            this->template judge<decltype(e)>(as<decltype(e)>(logits), targets, tokens, vocabulary, as<float>(correct),
                                              m_sums + 1);
        });
        return judged();
    }
    void joinSoftmax(ConstElementMatrix logits, std::int64_t firstRow, const std::int32_t* targets,
                     TokenSoftmax softmax, Write write) override {
        byType(logits.data.type, [&](auto e) {
            this->template joinLogits<decltype(e)>(logits, firstRow, targets, softmax, write == Write::Overwrite);
        });
    }
    void softmaxGradient(ElementMatrix logits, std::int64_t firstRow, const std::int32_t* targets,
                         ConstElements logsumexp) override {
        byType(logits.data.type, [&](auto e) {
            this->template gradientOfLogits<decltype(e)>(logits, firstRow, targets, as<float>(logsumexp));
        });
    }
    void addLosses(TokenSoftmax softmax, const std::int32_t* targets, std::int64_t tokens) override {
        this->finishLosses(softmax, targets, tokens);
        TypedKernels<Launcher>::addLosses(as<float>(softmax.target), targets, tokens, m_sums);
    }
    LossSum judgeSoftmax(TokenSoftmax softmax, const std::int32_t* targets, std::int64_t tokens) override {
        this->finishLosses(softmax, targets, tokens);
        this->judgeTokens(as<float>(softmax.target), as<float>(softmax.largest), targets, tokens, m_sums + 1);
        return judged();
    }
    void addSquares(SquareSum sum, ConstElements values, std::int64_t count, double divisor) override {
        byType(values.type, [&](auto e) {
            this->template squares<decltype(e)>(as<decltype(e)>(values), count, divisor, static_cast<int>(sum));
        });
    }
    void clearSums() override { this->clearDeviceSums(m_sums); }
    contract::Result<StepSums> readSums() override {
        const auto sums = fetch(m_sums);
        if (!sums)
            return tl::unexpected(sums.error());
        return StepSums{sums->loss, static_cast<std::int64_t>(sums->tokens), {sums->squares[0], sums->squares[1]}};
    }
    void adamW(const AdamWStep& step, const TensorUpdate& tensor) override {
        byTypes(tensor.weight.type, tensor.gradient.type, [&](auto e, auto g) {
            if (tensor.firstMoment.type == ElementType::BFloat16)
                this->template update<decltype(e), decltype(g), BFloat16>(step, tensor);
            else
                this->template update<decltype(e), decltype(g), float>(step, tensor);
        });
    }
    void sgdMomentum(const SgdStep& step, const TensorUpdate& tensor) override { this->update(step, tensor); }

protected:
    explicit SharedKernels(Launcher launcher) : TypedKernels<Launcher>(launcher) {}
    /// Waits for everything, then copies sums to the host. Errors: RunFailed when the device failed.
    virtual contract::Result<DeviceSums> fetch(const DeviceSums* sums) = 0;

private:
    LossSum judged() {
        const auto sums = fetch(m_sums + 1);
        if (!sums)
            return {}; // the device has failed; whoever waits for it next says so
        return {sums->loss, static_cast<std::int64_t>(sums->tokens), static_cast<std::int64_t>(sums->correct)};
    }
};

/// The cosines and sines of positions 0 .. sequence - 1, as rotate() reads them.
inline std::vector<float> rotaryTable(const Rotary& rotary, std::int64_t sequence) {
    const std::vector<double>& frequencies = rotary.frequencies();
    std::vector<float> table;
    table.reserve(2 * frequencies.size() * static_cast<std::size_t>(sequence));
    for (std::int64_t position = 0; position < sequence; ++position) {
        for (const double frequency : frequencies)
            table.push_back(static_cast<float>(std::cos(static_cast<double>(position) * frequency)));
        for (const double frequency : frequencies)
            table.push_back(static_cast<float>(std::sin(static_cast<double>(position) * frequency)));
    }
    return table;
}

} // namespace shardscope::engine::shared
