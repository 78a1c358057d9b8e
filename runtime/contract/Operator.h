// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "runtime/contract/Architecture.h"
#include "runtime/contract/Result.h"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace shardscope::contract {

enum class OperatorKind { Embedding, Linear, Norm, Other };
std::string_view operatorKindName(OperatorKind kind);

/// What an operator is in a decoder; the engine dispatches on it. Planner and window only need OperatorKind.
enum class OperatorRole {
    Other,
    TokenEmbedding,
    PositionEmbedding,
    AttentionNorm,
    QueryKeyValue, ///< fused projection; attention itself is charged here
    Query,
    Key,
    Value, ///< attention itself is charged here where projections are separate
    QueryNorm,
    KeyNorm,
    AttentionOutput,
    MlpNorm,
    MlpGate,
    MlpUp,
    MlpDown,
    FinalNorm,
    Head,
};

/// One parameter tensor. `rows` is the axis along which the operator is split (output features, vocabulary rows,
/// positions); it is the first axis of how the engine stores it, whatever the state-dict order is.
struct TensorSpec {
    std::string name;                ///< suffix in the state dict: "weight", "bias"
    std::vector<std::int64_t> shape; ///< as in the Hugging Face state dict
    std::int64_t rows = 0;
    std::int64_t columns = 0; ///< elements of one row (1 for a vector)

    std::int64_t elements() const { return rows * columns; }
};

/// An activation that lives from an operator's forward to its backward.
struct ActivationSpec {
    std::string name; ///< suffix of the buffer: "input", "statistics", "pre_activation"
    std::int64_t elementsPerSample = 0;
    bool isFloat32 = false;  ///< statistics stay in fp32 whatever the compute precision is
    bool blockInput = false; ///< kept even when the block is recomputed
    bool isByte = false;     ///< a mask: one byte an element
};

/// How attention runs.
enum class AttentionKernel {
    Fused,        ///< probabilities never reach memory (flash attention): its inputs, output and log-sum-exp are held
    Materialised, ///< scores and probabilities are tensors of heads x queries x keys
};
std::string_view attentionKernelName(AttentionKernel kernel); ///< "fused", "unfused"

/// The attention that is charged to an operator; its work and its activations are in the other fields.
struct AttentionShape {
    std::int64_t heads = 0;
    std::int64_t kvHeads = 0; ///< fewer than heads: grouped-query attention
    std::int64_t headDim = 0;
    std::int64_t keys = 0; ///< keys that a query sees: all tokens, or a sliding window
    std::int64_t valueHeadDim = 0;
    std::int64_t queries = 0;
    std::int64_t tokens = 0; ///< keys there are, seen or not
    /// Scores and weighted values over `seen` keys, 2 FLOPs a multiplied pair, not halved for a causal mask.
    double flops(std::int64_t seen) const;
};

/// One module that owns parameters, with the parameter-free work that follows it charged to it.
/// Sizes are per sample (one sequence of the length the graph was lowered for).
struct Operator {
    std::string name; ///< as in the state dict without "transformer." / "model."
    OperatorKind kind = OperatorKind::Other;
    OperatorRole role = OperatorRole::Other;
    std::int32_t block = -1;         ///< index of the repeated block, -1 outside blocks
    std::string blockName;           ///< "h.3", "layers.3"; empty outside blocks
    std::vector<TensorSpec> tensors; ///< own tensors; for a tied operator those of the owner, with which it computes
    std::string tiedTo;              ///< the operator whose storage this one uses; empty when it owns its own
    bool sharedStorage = false;      ///< another operator is tied to this one
    double flopsForward = 0;         ///< floating point operations of one sample's forward
    std::vector<ActivationSpec> kept;
    std::int64_t liveActivationElements = 0; ///< gradient with respect to this operator's input, per sample
    std::int64_t liveWideElements = 0;       ///< gradient of its output and scratch, per sample
    std::int64_t liveScratchBytes = 0;       ///< scratch that does not grow with the batch, part of the wide region
    std::optional<AttentionShape> attention; ///< where attention is charged here
    std::int32_t experts = 0;                ///< a router chooses among this many such operators; 0: not routed
    std::int32_t activeExperts = 0;          ///< of which it sends each token to this many

    bool isTied() const { return !tiedTo.empty(); }
    /// Unique parameters: 0 for a tied operator.
    std::int64_t parameters() const;
    /// Elements of the tensors it computes with, tied or not.
    std::int64_t tensorElements() const;
    /// The largest legal slice count: output rows of a matrix or embedding, 1 for vectors.
    std::int64_t maximumSlices() const;
};

/// Attention is computed in tiles of this many query rows, so that scratch is linear in the sequence length.
inline constexpr std::int64_t kAttentionTileRows = 64;

/// Lowers a decoder to its operators in forward order, for sequences of `sequence` tokens.
/// Errors: BadInput when the architecture is inconsistent or the sequence exceeds learned positions.
Result<std::vector<Operator>> lowerArchitecture(const Architecture& architecture, std::int64_t sequence);

/// Changes operators that were lowered with fused attention to attention whose scores are tensors: kept are the softmax
/// and, where attention has dropout, its mask of one byte and its output, instead of log-sum-exps. In 16 bits that is
/// 5 heads queries keys bytes, or 2 without dropout (arXiv 2205.05198, section 4.1). Keys outside a sliding window are
/// masked, not left out. Live beside a gradient of the scores is that of the probabilities.
/// Errors: BadInput when the scores are more than can be planned.
Result<void> materialiseScores(std::vector<Operator>& operators, bool dropout);

} // namespace shardscope::contract
