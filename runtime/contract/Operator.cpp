// SPDX-License-Identifier: GPL-3.0-or-later
#include "runtime/contract/Operator.h"

#include <fmt/format.h>

#include <algorithm>

namespace shardscope::contract {

std::string_view operatorKindName(OperatorKind kind) {
    switch (kind) {
    case OperatorKind::Embedding:
        return "embedding";
    case OperatorKind::Linear:
        return "linear";
    case OperatorKind::Norm:
        return "norm";
    case OperatorKind::Other:
        return "other";
    }
    return "other";
}

std::string_view attentionKernelName(AttentionKernel kernel) {
    return kernel == AttentionKernel::Fused ? "fused" : "unfused";
}

double AttentionShape::flops(std::int64_t seen) const {
    return 2.0 * static_cast<double>(queries) * static_cast<double>(seen) * static_cast<double>(heads) *
           static_cast<double>(headDim + valueHeadDim);
}

std::int64_t Operator::parameters() const {
    return isTied() ? 0 : tensorElements();
}

std::int64_t Operator::tensorElements() const {
    std::int64_t elements = 0;
    for (const TensorSpec& tensor : tensors)
        elements += tensor.elements();
    return elements;
}

std::int64_t Operator::maximumSlices() const {
    if (kind == OperatorKind::Norm || tensors.empty())
        return 1;
    return tensors.front().rows;
}

namespace {

constexpr std::string_view kLogSumExp = "logsumexp";

/// Builds the operators of one decoder. All sizes are per sample of `m_sequence` tokens.
class DecoderLowering {
public:
    DecoderLowering(const Architecture& architecture, std::int64_t sequence)
        : m_architecture(architecture), m_sequence(sequence), m_hidden(architecture.hidden),
          m_queryWidth(architecture.heads * architecture.headDim),
          m_keyWidth(architecture.kvHeads * architecture.headDim) {}

    std::vector<Operator> build() {
        const bool gpt2 = m_architecture.attention == AttentionLayout::Fused;
        const std::string embedding = gpt2 ? "wte" : "embed_tokens";
        add(embeddingOperator(embedding, OperatorRole::TokenEmbedding, m_architecture.vocabulary));
        m_operators.back().sharedStorage = m_architecture.tied;
        if (!m_architecture.rope)
            add(embeddingOperator("wpe", OperatorRole::PositionEmbedding, m_architecture.positions));
        for (std::int64_t layer = 0; layer < m_architecture.layers; ++layer) {
            m_block = static_cast<std::int32_t>(layer);
            m_blockName = (gpt2 ? "h." : "layers.") + std::to_string(layer);
            gpt2 ? addGpt2Block() : addLlamaBlock();
        }
        m_block = -1;
        m_blockName.clear();
        add(normOperator(gpt2 ? "ln_f" : "norm", OperatorRole::FinalNorm, false));
        Operator head = linearOperator("lm_head", OperatorRole::Head, m_architecture.vocabulary, m_hidden, false);
        head.tensors.front().shape = {m_architecture.vocabulary, m_hidden}; // a torch Linear in every family
        if (m_architecture.tied)
            head.tiedTo = embedding;
        add(std::move(head));
        return std::move(m_operators);
    }

private:
    void add(Operator op) {
        op.block = m_block;
        op.blockName = m_blockName;
        if (m_block >= 0)
            op.name = m_blockName + "." + op.name;
        m_operators.push_back(std::move(op));
    }

    Operator embeddingOperator(const std::string& name, OperatorRole role, std::int64_t rows) const {
        Operator op;
        op.name = name;
        op.kind = OperatorKind::Embedding;
        op.role = role;
        op.tensors = {{"weight", {rows, m_hidden}, rows, m_hidden}};
        op.liveActivationElements = m_sequence * m_hidden; // the residual stream's gradient, which it consumes
        return op;
    }

    Operator normOperator(const std::string& name, OperatorRole role, bool blockInput) const {
        const bool layerNorm = m_architecture.norm == NormKind::LayerNorm;
        Operator op;
        op.name = name;
        op.kind = OperatorKind::Norm;
        op.role = role;
        op.tensors = {{"weight", {m_hidden}, m_hidden, 1}};
        if (layerNorm)
            op.tensors.push_back({"bias", {m_hidden}, m_hidden, 1});
        op.flopsForward = static_cast<double>(m_sequence) * static_cast<double>(m_hidden) * (layerNorm ? 8 : 5);
        op.kept = {{"input", m_sequence * m_hidden, false, blockInput},
                   {"statistics", m_sequence * (layerNorm ? 2 : 1), true, false}};
        op.liveActivationElements = m_sequence * m_hidden;
        return op;
    }

    /// RMS norm over each head of the query or key (Qwen3).
    Operator headNormOperator(const std::string& name, OperatorRole role, std::int64_t width) const {
        Operator op;
        op.name = name;
        op.kind = OperatorKind::Norm;
        op.role = role;
        op.tensors = {{"weight", {m_architecture.headDim}, m_architecture.headDim, 1}};
        op.flopsForward = static_cast<double>(m_sequence) * static_cast<double>(width) * 5;
        op.kept = {{"input", m_sequence * width, false, false},
                   {"statistics", m_sequence * (width / m_architecture.headDim), true, false}};
        return op;
    }

    Operator linearOperator(const std::string& name, OperatorRole role, std::int64_t outputs, std::int64_t inputs,
                            bool bias) const {
        Operator op;
        op.name = name;
        op.kind = OperatorKind::Linear;
        op.role = role;
        // GPT-2 stores its projections as Conv1D: (in, out).
        const bool transposed = m_architecture.attention == AttentionLayout::Fused;
        op.tensors = {
            {"weight", transposed ? std::vector{inputs, outputs} : std::vector{outputs, inputs}, outputs, inputs}};
        if (bias)
            op.tensors.push_back({"bias", {outputs}, outputs, 1});
        op.flopsForward =
            2.0 * static_cast<double>(m_sequence) * static_cast<double>(outputs) * static_cast<double>(inputs);
        op.kept = {{"input", m_sequence * inputs, false, false}};
        op.liveActivationElements = m_sequence * inputs;
        return op;
    }

    /// The whole of attention is charged to the operator before it.
    void chargeAttention(Operator& op) const {
        const Architecture& a = m_architecture;
        const std::int64_t keys = a.seenKeys(m_block, m_sequence);
        op.attention = AttentionShape{a.heads, a.kvHeads, a.headDim, keys, a.headDim, m_sequence, m_sequence};
        op.flopsForward += op.attention->flops(keys);
        op.kept.push_back({std::string(kLogSumExp), m_sequence * a.heads, true, false});
        op.liveScratchBytes = 2 * kAttentionTileRows * keys * static_cast<std::int64_t>(sizeof(float));
    }

    void addGpt2Block() {
        const std::int64_t inner = m_architecture.intermediate;
        add(normOperator("ln_1", OperatorRole::AttentionNorm, true));
        Operator attention = linearOperator("attn.c_attn", OperatorRole::QueryKeyValue, 3 * m_hidden, m_hidden,
                                            m_architecture.attentionBias);
        attention.kept.push_back({"output", m_sequence * 3 * m_hidden, false, false});
        attention.liveWideElements = m_sequence * 3 * m_hidden;
        chargeAttention(attention);
        add(std::move(attention));
        add(linearOperator("attn.c_proj", OperatorRole::AttentionOutput, m_hidden, m_hidden,
                           m_architecture.attentionOutputBias));
        add(normOperator("ln_2", OperatorRole::MlpNorm, false));
        Operator up = linearOperator("mlp.c_fc", OperatorRole::MlpUp, inner, m_hidden, m_architecture.mlpBias);
        up.kept.push_back({"pre_activation", m_sequence * inner, false, false});
        up.liveWideElements = m_sequence * inner;
        add(std::move(up));
        add(downProjection("mlp.c_proj", m_sequence * inner));
    }

    void addLlamaBlock() {
        const Architecture& a = m_architecture;
        const std::int64_t queryKeyValue = m_sequence * (m_queryWidth + 2 * m_keyWidth);
        add(normOperator("input_layernorm", OperatorRole::AttentionNorm, true));
        Operator query =
            linearOperator("self_attn.q_proj", OperatorRole::Query, m_queryWidth, m_hidden, a.attentionBias);
        query.kept.push_back({"output", m_sequence * m_queryWidth, false, false});
        query.liveWideElements = queryKeyValue;
        add(std::move(query));
        // One normalised input serves the three projections: it is kept by the query alone.
        Operator key = linearOperator("self_attn.k_proj", OperatorRole::Key, m_keyWidth, m_hidden, a.attentionBias);
        key.kept = {{"output", m_sequence * m_keyWidth, false, false}};
        key.liveWideElements = queryKeyValue;
        add(std::move(key));
        if (a.qkNorm) {
            add(headNormOperator("self_attn.q_norm", OperatorRole::QueryNorm, m_queryWidth));
            add(headNormOperator("self_attn.k_norm", OperatorRole::KeyNorm, m_keyWidth));
        }
        Operator value = linearOperator("self_attn.v_proj", OperatorRole::Value, m_keyWidth, m_hidden, a.attentionBias);
        value.kept = {{"output", m_sequence * m_keyWidth, false, false}};
        value.liveWideElements = queryKeyValue;
        chargeAttention(value);
        add(std::move(value));
        add(linearOperator("self_attn.o_proj", OperatorRole::AttentionOutput, m_hidden, m_queryWidth,
                           a.attentionOutputBias));
        add(normOperator("post_attention_layernorm", OperatorRole::MlpNorm, false));
        Operator gate = linearOperator("mlp.gate_proj", OperatorRole::MlpGate, a.intermediate, m_hidden, a.mlpBias);
        gate.kept.push_back({"output", m_sequence * a.intermediate, false, false});
        gate.liveWideElements = 2 * m_sequence * a.intermediate;
        add(std::move(gate));
        Operator up = linearOperator("mlp.up_proj", OperatorRole::MlpUp, a.intermediate, m_hidden, a.mlpBias);
        up.kept = {{"output", m_sequence * a.intermediate, false, false}};
        up.liveWideElements = 2 * m_sequence * a.intermediate;
        add(std::move(up));
        add(downProjection("mlp.down_proj", 2 * m_sequence * a.intermediate));
    }

    /// The gradient of its wide input goes to the wide region.
    Operator downProjection(const std::string& name, std::int64_t wideElements) const {
        Operator op =
            linearOperator(name, OperatorRole::MlpDown, m_hidden, m_architecture.intermediate, m_architecture.mlpBias);
        op.liveActivationElements = 0;
        op.liveWideElements = wideElements;
        return op;
    }

    const Architecture& m_architecture;
    std::int64_t m_sequence;
    std::int64_t m_hidden;
    std::int64_t m_queryWidth;
    std::int64_t m_keyWidth;
    std::int32_t m_block = -1;
    std::string m_blockName;
    std::vector<Operator> m_operators;
};

} // namespace

Result<std::vector<Operator>> lowerArchitecture(const Architecture& architecture, std::int64_t sequence) {
    if (const auto wrong = checkArchitecture(architecture))
        return badInput("architecture: " + *wrong);
    constexpr std::int64_t kMaximumSequence = 1 << 24;
    const std::int64_t longest = architecture.rope ? kMaximumSequence : architecture.positions;
    if (sequence < 1 || sequence > longest)
        return badInput(fmt::format("sequence {} is outside 1..{}", sequence, longest));
    // Bound the totals in floating point before any integer sum is formed.
    const auto real = [](std::int64_t value) { return static_cast<double>(value); };
    const double width = real(architecture.hidden) + real(architecture.heads) * real(architecture.headDim) +
                         real(architecture.intermediate);
    const double perLayer = real(sequence) * width * 16;
    const double parameters =
        real(architecture.layers) * 4 * width * width + 2 * real(architecture.vocabulary) * real(architecture.hidden);
    if (perLayer * real(architecture.layers) > 0x1p50 || parameters > 0x1p50)
        return badInput(fmt::format("architecture: {} layers of hidden {} at sequence {} are too large to plan",
                                    architecture.layers, architecture.hidden, sequence));
    return DecoderLowering(architecture, sequence).build();
}

Result<void> materialiseScores(std::vector<Operator>& operators, bool dropout) {
    double total = 0;
    for (const Operator& op : operators) {
        if (op.attention)
            total += static_cast<double>(op.attention->heads) * static_cast<double>(op.attention->queries) *
                     static_cast<double>(op.attention->tokens);
    }
    if (total > 0x1p50)
        return badInput("unfused attention: its scores are too large to plan");
    for (Operator& op : operators) {
        if (!op.attention)
            continue;
        AttentionShape& shape = *op.attention;
        const std::int64_t scores = shape.heads * shape.queries * shape.tokens;
        std::erase_if(op.kept, [](const ActivationSpec& spec) { return spec.name == kLogSumExp; });
        op.kept.push_back({"softmax", scores, false, false});
        if (dropout) {
            op.kept.push_back({"dropout_mask", scores, false, false, true});
            op.kept.push_back({"dropout_output", scores, false, false});
        }
        op.flopsForward += shape.flops(shape.tokens) - shape.flops(shape.keys);
        shape.keys = shape.tokens;
        op.liveScratchBytes = 0;
        op.liveWideElements += 2 * scores;
    }
    return {};
}

} // namespace shardscope::contract
