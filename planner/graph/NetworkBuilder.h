// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "runtime/contract/Operator.h"

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace shardscope::planner {

/// Lowers networks that the training runtime does not run to the contract's operators, in forward order, by the same
/// conventions: 2 FLOPs per multiplied weight and token, attention whole (not halved for a causal mask) and fused, each
/// activation kept once by the operator that reads it, sizes per sample.
///
/// Sizes come from files. Once the whole grows beyond what can be planned, tooLarge() says so and nothing more is
/// added.
class NetworkBuilder {
public:
    /// Whether an operator keeps its input for the backward pass, or an operator before it has kept the same one.
    enum class Input { Own, Shared };
    enum class Norm { LayerNorm, LayerNormWithoutBias, RmsNorm };

    explicit NetworkBuilder(std::int64_t tokens) : m_tokens(static_cast<double>(tokens)) {}

    /// Operators that follow process this many tokens of a sample (the decoder of an encoder-decoder, image patches).
    void setTokens(std::int64_t tokens) { m_tokens = static_cast<double>(tokens); }
    std::int64_t tokens() const;

    /// Operators that follow belong to a repeated block; their names continue `name`.
    void enterBlock(const std::string& name);
    void leaveBlock();
    /// Operators that follow are one of `experts`, of which a router sends each token to `active`; all are stored.
    void enterExperts(std::int64_t experts, std::int64_t active);
    void leaveExperts();

    // The returned operator may be changed until the next call.
    contract::Operator& embedding(const std::string& name, std::int64_t rows, std::int64_t width);
    contract::Operator& norm(const std::string& name, std::int64_t width, Norm kind);
    /// One norm of `headDim` over each of `heads` heads.
    contract::Operator& headNorm(const std::string& name, std::int64_t heads, std::int64_t headDim, Norm kind);
    contract::Operator& linear(const std::string& name, std::int64_t outputs, std::int64_t inputs, bool bias,
                               Input input = Input::Own);
    /// Parameters of a module that are merely added to activations of `width` columns.
    contract::Operator& parameters(const std::string& name, std::vector<contract::TensorSpec> tensors,
                                   std::int64_t width);
    /// A matrix product with the storage of `owner`.
    contract::Operator& tied(const std::string& name, std::int64_t outputs, std::int64_t inputs,
                             const std::string& owner);

    struct Attention {
        std::int64_t heads = 0;
        std::int64_t kvHeads = 0;
        std::int64_t headDim = 0;      ///< of query and key
        std::int64_t valueHeadDim = 0; ///< 0: as headDim
        std::int64_t window = 0;       ///< keys that a query sees; 0: all
        std::int64_t keyTokens = 0;    ///< tokens the keys come from; 0: the queries' own
        std::int64_t queryWidth() const { return heads * headDim; }
        std::int64_t keyWidth() const { return kvHeads * headDim; }
        std::int64_t valueWidth() const { return kvHeads * (valueHeadDim > 0 ? valueHeadDim : headDim); }
        std::int64_t outputWidth() const { return heads * (valueHeadDim > 0 ? valueHeadDim : headDim); }
    };
    /// The output of the operator added last, of `width` columns, is kept beside its input.
    void keepOutput(std::int64_t width);
    /// Charges attention (scores, softmax, weighted values) to the operator added last.
    void chargeAttention(const Attention& attention);

    struct ProjectionNames {
        std::string_view query = "self_attn.q_proj";
        std::string_view key = "self_attn.k_proj";
        std::string_view value = "self_attn.v_proj";
        std::string_view output = "self_attn.o_proj";
        std::string_view queryNorm = "self_attn.q_norm";
        std::string_view keyNorm = "self_attn.k_norm";
    };
    enum class HeadNorm { None, LayerNorm, RmsNorm };
    /// Query, key and value projections apart, then attention, then the output projection. The key's and value's
    /// input is that of the query, or (cross-attention) one that is kept once for both.
    void attentionProjections(const ProjectionNames& names, std::int64_t hidden, const Attention& attention, bool bias,
                              bool outputBias, HeadNorm headNorm = HeadNorm::None, Input input = Input::Own);
    /// One projection for query, key and value, then attention, then the output projection.
    void fusedAttention(const std::string& projection, const std::string& output, std::int64_t hidden,
                        const Attention& attention, bool bias, bool outputBias, Input input = Input::Own);
    /// Up, nonlinearity, down.
    void mlp(const std::string& up, const std::string& down, std::int64_t hidden, std::int64_t inner, bool bias,
             Input input = Input::Own);
    /// Gate and up, nonlinearity of the gate times up, down.
    void gatedMlp(const std::string& gate, const std::string& up, const std::string& down, std::int64_t hidden,
                  std::int64_t inner, bool bias, Input input = Input::Own);

    contract::Operator& last() { return m_operators.back(); }
    bool tooLarge() const { return m_tooLarge; }
    std::vector<contract::Operator> take() { return std::move(m_operators); }

private:
    contract::Operator& add(contract::Operator op);
    void share(const std::string& name);
    void keep(contract::Operator& op, const char* name, double elements, bool isFloat32 = false);
    std::int64_t whole(double elements);

    double m_tokens;
    double m_tokensOutsideExperts = 0;
    std::int64_t m_experts = 0;
    std::int64_t m_activeExperts = 0;
    double m_parameters = 0;
    double m_kept = 0;
    bool m_tooLarge = false;
    bool m_blockStarts = false; ///< the next kept input is what the block gets
    std::int32_t m_block = -1;
    std::int32_t m_blocks = 0;
    std::string m_blockName;
    std::vector<contract::Operator> m_operators;
};

} // namespace shardscope::planner
