// SPDX-License-Identifier: GPL-3.0-or-later
#include "planner/cost/PyTorchActivations.h"

#include "runtime/contract/Sizing.h"

#include <algorithm>
#include <map>

namespace shardscope::planner {

using contract::Operator;
using contract::OperatorRole;

namespace {

constexpr std::int64_t kFloat = 4;
constexpr std::int64_t kIndex = 8; // token ids are int64

/// Lists what each operator of one forward saves.
class Autograd {
public:
    Autograd(const contract::Architecture& architecture, const ActivationBatch& batch, const PyTorchOptions& options)
        : m_options(options), m_gpt2(architecture.attention == contract::AttentionLayout::Fused),
          m_layerNorm(architecture.norm == contract::NormKind::LayerNorm), m_element(batch.elementBytes),
          m_tokens(batch.tokens()), m_hidden(architecture.hidden), m_heads(architecture.heads),
          m_kvHeads(architecture.kvHeads), m_headDim(architecture.headDim), m_inner(architecture.intermediate),
          m_scores(batch.tokens() * batch.sequence * architecture.heads) {}

    std::vector<KeptTensor> saved(const Operator& op) {
        if (op.block != m_block) {
            m_block = op.block;
            m_products = 0;
        }
        const bool inside = op.block >= 0;
        if (inside && m_options.recompute == PyTorchRecompute::Full)
            return op.role == OperatorRole::AttentionNorm ? blockInput() : std::vector<KeptTensor>{};
        if (inside && m_options.recompute == PyTorchRecompute::MatrixProducts)
            return selected(op);
        return everything(op);
    }

private:
    std::int64_t wide(std::int64_t width) const { return m_tokens * width * m_element; }
    std::vector<KeptTensor> blockInput() const { return {{"block_input", wide(m_hidden)}}; }
    bool isFused() const { return m_options.attention == AttentionKernel::Fused; }
    std::int64_t keyWidth() const { return (m_options.repeatedKeyValue ? m_heads : m_kvHeads) * m_headDim; }
    std::vector<KeptTensor> fusedAttentionResults() const {
        return {{"attention_output", wide(m_heads * m_headDim)}, {"logsumexp", m_tokens * m_heads * kFloat}};
    }

    /// The products are counted in the order of execution, restarting with each block. The policy knows aten.mm, which
    /// is a linear layer without bias; with one it is addmm and recomputed.
    std::vector<KeptTensor> selected(const Operator& op) {
        std::vector<KeptTensor> own;
        if (op.role == OperatorRole::AttentionNorm)
            own = blockInput();
        if (op.kind == contract::OperatorKind::Linear && op.tensors.size() == 1) {
            ++m_products;
            // No backward reads the output of a block's last product: a compiler drops it, eager mode cannot know.
            const bool dropped = m_options.compiled && op.role == OperatorRole::MlpDown;
            if (m_products % 2 == 1 && !dropped)
                own.push_back({"output", wide(op.tensors.front().rows)});
        }
        if (isFused() && (op.role == OperatorRole::QueryKeyValue || op.role == OperatorRole::Value)) {
            for (const KeptTensor& tensor : fusedAttentionResults())
                own.push_back(tensor);
        }
        return own;
    }

    std::vector<KeptTensor> norm(std::int64_t width, std::int64_t rows, bool inside) const {
        if (m_layerNorm)
            return {{"input", wide(width)}, {"mean", rows * kFloat}, {"rstd", rows * kFloat}};
        if (!m_options.composedNorm || (inside && m_options.compiled))
            return {{"input", wide(width)}, {"rstd", rows * kFloat}};
        return {{"input_fp32", m_tokens * width * kFloat}, {"rstd", rows * kFloat}, {"normalised", wide(width)}};
    }

    void addAttention(std::vector<KeptTensor>& own) const {
        if (isFused()) {
            for (const KeptTensor& tensor : fusedAttentionResults())
                own.push_back(tensor);
            return;
        }
        if (m_gpt2) {
            own.push_back({"probabilities", m_scores * m_element});
            if (m_options.dropout) {
                own.push_back({"dropout_mask", m_scores});
                own.push_back({"dropout_output", m_scores * m_element});
            }
            return;
        }
        own.push_back({"probabilities_fp32", m_scores * kFloat});
        if (m_element != kFloat)
            own.push_back({"probabilities", m_scores * m_element});
    }

    std::vector<KeptTensor> everything(const Operator& op) const {
        std::vector<KeptTensor> own;
        const std::int64_t queries = wide(m_heads * m_headDim);
        const bool inside = op.block >= 0;
        const auto addDropout = [&] {
            if (m_gpt2 && m_options.dropout)
                own.push_back({"dropout_mask", m_tokens * m_hidden});
        };
        switch (op.role) {
        case OperatorRole::TokenEmbedding:
            own = {{"indices", m_tokens * kIndex}};
            addDropout();
            break;
        case OperatorRole::AttentionNorm:
        case OperatorRole::MlpNorm:
        case OperatorRole::FinalNorm:
            own = norm(m_hidden, m_tokens, inside);
            break;
        case OperatorRole::QueryNorm:
            own = norm(m_heads * m_headDim, m_tokens * m_heads, inside);
            break;
        case OperatorRole::KeyNorm:
            own = norm(m_kvHeads * m_headDim, m_tokens * m_kvHeads, inside);
            break;
        case OperatorRole::QueryKeyValue:
            own = {{"input", wide(m_hidden)}, {"query", queries}, {"key", queries}, {"value", queries}};
            addAttention(own);
            break;
        case OperatorRole::Query:
            own = {{"input", wide(m_hidden)}, {"query", queries}}; // the three projections share this input
            break;
        case OperatorRole::Key:
            own = {{"key", wide(keyWidth())}};
            break;
        case OperatorRole::Value:
            own = {{"value", wide(keyWidth())}};
            addAttention(own);
            break;
        case OperatorRole::AttentionOutput:
            if (!isFused()) // else its input is the kernel's output, which is held already
                own = {{"input", queries}};
            addDropout();
            break;
        case OperatorRole::MlpGate:
            own = {{"input", wide(m_hidden)}, {"gate", wide(m_inner)}, {"silu", wide(m_inner)}};
            if (m_options.compiled)
                own.pop_back(); // recomputed from the gate inside the fused backward
            break;
        case OperatorRole::MlpUp:
            if (!m_gpt2) {
                own = {{"up", wide(m_inner)}};
                break;
            }
            own = {{"input", wide(m_hidden)}, {"pre_activation", wide(m_inner)}};
            if (m_options.composedActivation && !m_options.compiled)
                own.insert(own.end(),
                           {{"half", wide(m_inner)}, {"tanh", wide(m_inner)}, {"one_plus_tanh", wide(m_inner)}});
            break;
        case OperatorRole::MlpDown:
            own = {{"input", wide(m_inner)}};
            addDropout();
            break;
        case OperatorRole::Head:
            own = {{"input", wide(m_hidden)}};
            break;
        case OperatorRole::PositionEmbedding:
        case OperatorRole::Other:
            break;
        }
        return own;
    }

    PyTorchOptions m_options;
    bool m_gpt2;
    bool m_layerNorm;
    std::int64_t m_element;
    std::int64_t m_tokens;
    std::int64_t m_hidden;
    std::int64_t m_heads;
    std::int64_t m_kvHeads;
    std::int64_t m_headDim;
    std::int64_t m_inner;
    std::int64_t m_scores;
    std::int32_t m_block = -1;
    std::int64_t m_products = 0;
};

} // namespace

KeptByOperator pytorchActivations(const contract::Architecture& architecture, const std::vector<Operator>& operators,
                                  const ActivationBatch& batch, const PyTorchOptions& options) {
    Autograd autograd(architecture, batch, options);
    KeptByOperator kept;
    kept.reserve(operators.size());
    for (const Operator& op : operators)
        kept.push_back(autograd.saved(op));
    return kept;
}

PyTorchLoss pytorchLoss(std::int64_t tokens, std::int64_t vocabulary, std::int64_t elementBytes) {
    const std::int64_t elements = tokens * vocabulary;
    const std::int64_t copy = elementBytes == kFloat ? 0 : kFloat;
    const std::int64_t forward = elementBytes + copy + kFloat;
    const std::int64_t backward = 3 * kFloat;
    const std::int64_t hole = elementBytes + copy;
    const std::int64_t fresh = std::max<std::int64_t>(0, 2 - hole / kFloat) * kFloat; // gradients beyond the hole
    const std::int64_t reserved = forward + fresh;
    const std::int64_t peak = std::max(forward, backward);
    return {elements * peak, elements * (reserved - peak)};
}

contract::Ledger fsdp2Reserved(const std::vector<Operator>& operators, const KeptByOperator& kept,
                               const PyTorchLoss& loss, const contract::Preset& preset, std::int64_t ranks) {
    contract::Ledger ledger;
    std::int64_t rootBytes = 0;
    std::map<std::int32_t, std::int64_t> blockBytes;
    const contract::Placement sharded{contract::PlacementKind::Shard, 1, 1, contract::ShardGroup::World};
    for (const Operator& op : operators) {
        const contract::StateSize state = contract::sumState(op, sharded, ranks, preset);
        ledger[contract::Category::Parameters] += state.parameters;
        ledger[contract::Category::Gradients] += state.gradients;
        ledger[contract::Category::Optimizer] += state.optimizer;
        (op.block < 0 ? rootBytes : blockBytes[op.block]) += op.parameters() * preset.gatheredBytes;
    }
    std::int64_t largestBlock = 0;
    for (const auto& [block, bytes] : blockBytes)
        largestBlock = std::max(largestBlock, bytes);
    const std::int64_t lastBlock = blockBytes.empty() ? 0 : blockBytes.rbegin()->second;
    ledger[contract::Category::Activations] = totalBytes(kept);
    ledger[contract::Category::Logits] = loss.peakBytes;
    ledger[contract::Category::Gathered] = rootBytes + lastBlock;
    ledger[contract::Category::Collective] = ranks > 1 ? rootBytes + largestBlock : 0;
    ledger[contract::Category::Slack] = loss.slackBytes;
    return ledger;
}

} // namespace shardscope::planner
