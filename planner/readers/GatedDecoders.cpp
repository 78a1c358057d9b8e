// SPDX-License-Identifier: GPL-3.0-or-later
// Decoders with gated MLPs that the training runtime does not speak of: Gemma (1, 2, 3), Phi-3.
#include "planner/readers/ConfigFamilies.h"
#include "planner/readers/SlidingWindows.h"
#include "planner/readers/TaskHeads.h"

#include <fmt/format.h>

namespace shardscope::planner {

using contract::OperatorRole;
using Norm = NetworkBuilder::Norm;

namespace {

struct GemmaDefaults {
    std::int64_t vocabulary, hidden, intermediate, layers, heads, kvHeads, positions;
};
constexpr GemmaDefaults kGemma{256000, 3072, 24576, 28, 16, 16, 8192};
constexpr GemmaDefaults kGemma2{256000, 2304, 9216, 26, 8, 4, 8192};
constexpr GemmaDefaults kGemma3{262208, 2304, 9216, 26, 8, 4, 131072};

} // namespace

Network readGemma(const Fields& fields) {
    const bool isFirst = fields.family() == "gemma";
    const bool isThird = fields.family() == "gemma3_text";
    const GemmaDefaults& defaults = isFirst ? kGemma : isThird ? kGemma3 : kGemma2;
    const std::int64_t hidden = fields.size("hidden_size", kMaximumWidth, defaults.hidden);
    const std::int64_t layers = fields.size("num_hidden_layers", kMaximumLayers, defaults.layers);
    const std::int64_t inner = fields.size("intermediate_size", kMaximumIntermediate, defaults.intermediate);
    DecoderHead head;
    head.vocabulary = fields.size("vocab_size", kMaximumVocabulary, defaults.vocabulary);
    head.width = hidden;
    head.tied = fields.flag("tie_word_embeddings", true);
    head.task = readDecoderTask(fields);
    NetworkBuilder::Attention attention;
    attention.heads = fields.size("num_attention_heads", kMaximumHeads, defaults.heads);
    attention.kvHeads = fields.size("num_key_value_heads", kMaximumHeads, defaults.kvHeads);
    attention.headDim = fields.size("head_dim", kMaximumHeads, 256);
    const bool bias = fields.flag("attention_bias", false);
    Network network;
    network.context = fields.size("max_position_embeddings", kMaximumPositions, defaults.positions);
    network.contextField = "max_position_embeddings";
    if (fields.failed())
        return network;
    fields.checkKvHeads("num_attention_heads", attention.heads, "num_key_value_heads", attention.kvHeads);
    const LayerWindows windows = readLayerWindows(fields, layers);
    network.build = [=](NetworkBuilder& builder) {
        builder.embedding("embed_tokens", head.vocabulary, hidden).role = OperatorRole::TokenEmbedding;
        for (std::int64_t layer = 0; layer < layers && !builder.tooLarge(); ++layer) {
            builder.enterBlock(fmt::format("layers.{}", layer));
            builder.norm("input_layernorm", hidden, Norm::RmsNorm);
            NetworkBuilder::Attention own = attention;
            own.window = windows.of(layer);
            builder.attentionProjections({}, hidden, own, bias, bias,
                                         isThird ? NetworkBuilder::HeadNorm::RmsNorm : NetworkBuilder::HeadNorm::None);
            builder.norm("post_attention_layernorm", hidden, Norm::RmsNorm);
            if (!isFirst)
                builder.norm("pre_feedforward_layernorm", hidden, Norm::RmsNorm);
            builder.gatedMlp("mlp.gate_proj", "mlp.up_proj", "mlp.down_proj", hidden, inner, false);
            if (!isFirst)
                builder.norm("post_feedforward_layernorm", hidden, Norm::RmsNorm);
        }
        builder.leaveBlock();
        builder.norm("norm", hidden, Norm::RmsNorm).role = OperatorRole::FinalNorm;
        addDecoderHead(builder, head);
    };
    return network;
}

Network readPhi3(const Fields& fields) {
    const std::int64_t hidden = fields.size("hidden_size", kMaximumWidth, 3072);
    const std::int64_t layers = fields.size("num_hidden_layers", kMaximumLayers, 32);
    const std::int64_t inner = fields.size("intermediate_size", kMaximumIntermediate, 8192);
    DecoderHead head;
    head.vocabulary = fields.size("vocab_size", kMaximumVocabulary, 32064);
    head.width = hidden;
    head.tied = fields.flag("tie_word_embeddings", false);
    head.task = readDecoderTask(fields);
    NetworkBuilder::Attention attention;
    attention.heads = fields.size("num_attention_heads", kMaximumHeads, 32);
    attention.kvHeads = fields.optionalSize("num_key_value_heads", kMaximumHeads).value_or(attention.heads);
    const auto headDim = fields.optionalSize("head_dim", kMaximumHeads);
    Network network;
    network.context = fields.size("max_position_embeddings", kMaximumPositions, 4096);
    network.contextField = "max_position_embeddings";
    if (fields.failed())
        return network;
    if (!headDim)
        fields.checkHeads("num_attention_heads", attention.heads, "hidden_size", hidden);
    fields.checkKvHeads("num_attention_heads", attention.heads, "num_key_value_heads", attention.kvHeads);
    attention.headDim = headDim.value_or(hidden / attention.heads);
    const LayerWindows windows = readLayerWindows(fields, layers);
    network.build = [=](NetworkBuilder& builder) {
        builder.embedding("embed_tokens", head.vocabulary, hidden).role = OperatorRole::TokenEmbedding;
        for (std::int64_t layer = 0; layer < layers && !builder.tooLarge(); ++layer) {
            builder.enterBlock(fmt::format("layers.{}", layer));
            builder.norm("input_layernorm", hidden, Norm::RmsNorm);
            NetworkBuilder::Attention own = attention;
            own.window = windows.of(layer);
            builder.fusedAttention("self_attn.qkv_proj", "self_attn.o_proj", hidden, own, false, false);
            builder.norm("post_attention_layernorm", hidden, Norm::RmsNorm);
            builder.linear("mlp.gate_up_proj", 2 * inner, hidden, false);
            builder.keepOutput(2 * inner);
            contract::Operator& down = builder.linear("mlp.down_proj", hidden, inner, false);
            down.liveWideElements = 2 * down.liveActivationElements;
            down.liveActivationElements = 0;
        }
        builder.leaveBlock();
        builder.norm("norm", hidden, Norm::RmsNorm).role = OperatorRole::FinalNorm;
        addDecoderHead(builder, head);
    };
    return network;
}

} // namespace shardscope::planner
