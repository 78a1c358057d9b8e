// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "runtime/contract/Sizing.h"
#include "runtime/device/Elements.h"
#include "runtime/ops/AdamW.h"
#include "runtime/ops/Attention.h"
#include "runtime/ops/CrossEntropy.h"
#include "runtime/ops/LayerNorm.h"
#include "runtime/ops/Linear.h"
#include "runtime/ops/Rotary.h"

#include <cstdint>

namespace shardscope::engine {

/// A rectangle of a row-major matrix in the memory of a device: `stride` elements from one row to the next.
template<typename Pointer> struct BasicElementMatrix {
    Pointer data;
    std::int64_t rows = 0;
    std::int64_t columns = 0;
    std::int64_t stride = 0;
};
using ElementMatrix = BasicElementMatrix<Elements>;
using ConstElementMatrix = BasicElementMatrix<ConstElements>;

/// AttentionRows in the memory of a device.
template<typename Pointer> struct BasicAttentionElements {
    Pointer query;
    Pointer key;
    Pointer value;
    std::int64_t queryStride = 0;
    std::int64_t keyStride = 0; ///< of the value too
};
using AttentionElements = BasicAttentionElements<ConstElements>;
using AttentionGradients = BasicAttentionElements<Elements>;

/// The rows of a fused projection (B, S, 3, heads, headDim).
template<typename Pointer> BasicAttentionElements<Pointer> fusedElements(AttentionShape shape, Pointer qkv) {
    return {qkv, qkv + shape.width(), qkv + 2 * shape.width(), 3 * shape.width(), 3 * shape.width()};
}

/// What is known of the softmax of each token, whose logits come part by part: float32 (T) each.
struct TokenSoftmax {
    Elements logsumexp; ///< of the logits so far
    Elements target;    ///< the target's logit; of no meaning before its part, and where the target is ignored
    Elements largest;   ///< logit so far

    TokenSoftmax operator+(std::int64_t tokens) const {
        return {logsumexp + tokens, target + tokens, largest + tokens};
    }
};

/// Which of the two sums of squares a gradient belongs to: that of what is whole on every rank, or of shards.
enum class SquareSum { Whole, Sharded };

/// What a step adds up on the device, read once when the step has gone through all its micro-steps.
struct StepSums {
    double loss = 0;
    std::int64_t tokens = 0; ///< that count in the loss
    double squares[2] = {};  ///< by SquareSum
};

/// What an optimizer step updates: a stretch of a tensor and its state.
struct TensorUpdate {
    float weightDecay = 0;
    std::int64_t count = 0;
    ConstElements gradient;
    Elements weight;
    Elements master;       ///< float32; none where weights have their full precision, or are rounded stochastically
    Elements firstMoment;  ///< of SGD, the momentum
    Elements secondMoment; ///< none with SGD
    std::uint64_t roundingKey = 0; ///< of stochastic rounding: the same for a tensor wherever it is updated
    std::int64_t firstIndex = 0;   ///< of the tensor's elements
};

/// The operations of a device, in the order in which they are called; a device may run them later. Shapes, meanings and
/// sources are those of the functions of the same name in runtime/ops, which compute them on a CPU. Activations and
/// weights are of one type, gradients of parameters may be of another; statistics, logsumexp, losses and moments with a
/// master are float32. Arithmetic is float32 at least, whatever the type in memory.
class Kernels {
public:
    virtual ~Kernels() = default;

    virtual void linearForward(ConstElementMatrix x, ConstElements weight, ConstElements bias,
                               ConstElementMatrix residual, ElementMatrix y) = 0;
    /// before = x weight^T + bias; y = gelu(before).
    virtual void linearGeluForward(ConstElementMatrix x, ConstElements weight, ConstElements bias, ElementMatrix before,
                                   ElementMatrix y) = 0;
    virtual void linearBackwardInput(ConstElementMatrix dy, ConstElements weight, ElementMatrix dx, Write write) = 0;
    virtual void linearBackwardWeight(ConstElementMatrix dy, ConstElementMatrix x, Elements weightGradient,
                                      Write write) = 0;
    virtual void linearBackwardBias(ConstElementMatrix dy, Elements biasGradient, Write write) = 0;

    virtual void geluTanhBackward(ConstElementMatrix x, ConstElementMatrix dy, ElementMatrix dx) = 0;
    virtual void siluGateForward(ConstElementMatrix gate, ConstElementMatrix up, ElementMatrix y) = 0;
    virtual void siluGateBackward(ConstElementMatrix gate, ConstElementMatrix up, ConstElementMatrix dy,
                                  ElementMatrix dgate, ElementMatrix dup) = 0;

    virtual void layerNormForward(NormShape shape, ConstElements x, ConstElements gain, ConstElements bias,
                                  float epsilon, Elements y, Elements statistics) = 0;
    virtual void layerNormBackward(NormShape shape, ConstElements dy, ConstElements x, ConstElements gain,
                                   ConstElements statistics, Elements dx, Write writeInput, Elements dgain,
                                   Elements dbias, Write writeParameters) = 0;
    virtual void rmsNormForward(NormShape shape, ConstElements x, ConstElements gain, float epsilon, Elements y,
                                Elements reciprocals) = 0;
    virtual void rmsNormBackward(NormShape shape, ConstElements dy, ConstElements x, ConstElements gain,
                                 ConstElements reciprocals, Elements dx, Write writeInput, Elements dgain,
                                 Write writeParameters) = 0;

    /// `scratch` is what the plan sets aside for a CPU's tiles; other devices may leave it alone.
    virtual void attentionForward(AttentionShape shape, AttentionElements rows, Elements output, Elements logsumexp,
                                  Elements scratch) = 0;
    virtual void attentionBackward(AttentionShape shape, AttentionElements rows, ConstElements output,
                                   ConstElements logsumexp, ConstElements doutput, AttentionGradients gradients,
                                   Elements scratch) = 0;
    /// Once before rotate(), outside of steps.
    virtual void prepareRotary(const Rotary& rotary, std::int64_t sequence) = 0;
    virtual void rotate(const Rotary& rotary, Elements x, std::int64_t tokens, std::int64_t sequence,
                        std::int64_t heads, Rotary::Direction direction) = 0;

    virtual void embeddingForward(const std::int32_t* ids, contract::RowRange rows, ConstElements table,
                                  ElementMatrix y) = 0;
    virtual void embeddingBackward(const std::int32_t* ids, contract::RowRange rows, ConstElementMatrix dy,
                                   Elements tableGradient) = 0;
    virtual void positionForward(std::int64_t sequence, contract::RowRange rows, ConstElements table,
                                 ElementMatrix y) = 0;
    virtual void positionBackward(std::int64_t sequence, contract::RowRange rows, ConstElementMatrix dy,
                                  Elements tableGradient) = 0;
    virtual void clear(Elements values, std::int64_t count) = 0;

    /// Adds the losses to the step's sums.
    virtual void crossEntropyWithGradient(Elements logits, const std::int32_t* targets, std::int64_t tokens,
                                          std::int64_t vocabulary, Elements losses) = 0;
    /// Waits for its result, which is no part of the step's sums.
    virtual LossSum crossEntropy(ConstElements logits, const std::int32_t* targets, std::int64_t tokens,
                                 std::int64_t vocabulary, Elements correct) = 0;

    /// The same losses of tokens whose logits come part by part of the vocabulary. `logits` (T, rows) are those of
    /// vocabulary rows firstRow and after; the first part overwrites what is known, later ones add to it.
    virtual void joinSoftmax(ConstElementMatrix logits, std::int64_t firstRow, const std::int32_t* targets,
                             TokenSoftmax softmax, Write write) = 0;
    /// The logits of a part become the gradient of the sum of the losses, once the logsumexp of the whole is known.
    virtual void softmaxGradient(ElementMatrix logits, std::int64_t firstRow, const std::int32_t* targets,
                                 ConstElements logsumexp) = 0;
    /// Adds the losses to the step's sums.
    virtual void addLosses(TokenSoftmax softmax, const std::int32_t* targets, std::int64_t tokens) = 0;
    /// As crossEntropy(); `softmax.largest` becomes what is `correct` there.
    virtual LossSum judgeSoftmax(TokenSoftmax softmax, const std::int32_t* targets, std::int64_t tokens) = 0;

    /// Adds sum(values^2) / divisor to one of the step's sums of squares, in an order that depends on nothing but the
    /// calls.
    virtual void addSquares(SquareSum sum, ConstElements values, std::int64_t count, double divisor) = 0;
    virtual void clearSums() = 0;
    /// Waits until everything that was called is done. Errors: RunFailed when the device failed.
    virtual contract::Result<StepSums> readSums() = 0;

    virtual void adamW(const AdamWStep& step, const TensorUpdate& tensor) = 0;
    /// Of float32 without a master.
    virtual void sgdMomentum(const SgdStep& step, const TensorUpdate& tensor) = 0;
};

} // namespace shardscope::engine
