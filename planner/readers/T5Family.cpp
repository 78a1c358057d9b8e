// SPDX-License-Identifier: GPL-3.0-or-later
#include "planner/readers/ConfigFamilies.h"
#include "planner/readers/TaskHeads.h"

#include <fmt/format.h>

namespace shardscope::planner {

using contract::OperatorRole;
using Input = NetworkBuilder::Input;
using Norm = NetworkBuilder::Norm;

namespace {

struct T5 {
    std::int64_t vocabulary = 0, hidden = 0, headDim = 0, inner = 0, layers = 0, decoderLayers = 0, heads = 0,
                 buckets = 0;
    bool gated = false;
    bool tied = true;
    TaskHead task;
};

NetworkBuilder::Attention attentionOf(const T5& t) {
    NetworkBuilder::Attention attention;
    attention.heads = attention.kvHeads = t.heads;
    attention.headDim = t.headDim;
    return attention;
}

/// The first block of a stack owns the relative positions, whose bias all its blocks add to their scores.
void addRelativePositions(NetworkBuilder& builder, const T5& t) {
    contract::Operator& op = builder.embedding("layer.0.SelfAttention.relative_attention_bias", t.buckets, t.heads);
    op.role = OperatorRole::PositionEmbedding;
    op.liveActivationElements = 0;
    builder.keepOutput(builder.tokens() * t.heads);
}

void addFeedForward(NetworkBuilder& builder, const T5& t, int layer) {
    builder.norm(fmt::format("layer.{}.layer_norm", layer), t.hidden, Norm::RmsNorm);
    const std::string prefix = fmt::format("layer.{}.DenseReluDense.", layer);
    if (t.gated)
        builder.gatedMlp(prefix + "wi_0", prefix + "wi_1", prefix + "wo", t.hidden, t.inner, false);
    else
        builder.mlp(prefix + "wi", prefix + "wo", t.hidden, t.inner, false);
}

void addStack(NetworkBuilder& builder, const T5& t, bool isDecoder) {
    const std::string name = isDecoder ? "decoder" : "encoder";
    const std::int64_t layers = isDecoder ? t.decoderLayers : t.layers;
    for (std::int64_t layer = 0; layer < layers && !builder.tooLarge(); ++layer) {
        builder.enterBlock(fmt::format("{}.block.{}", name, layer));
        builder.norm("layer.0.layer_norm", t.hidden, Norm::RmsNorm);
        if (layer == 0)
            addRelativePositions(builder, t);
        builder.attentionProjections({"layer.0.SelfAttention.q", "layer.0.SelfAttention.k", "layer.0.SelfAttention.v",
                                      "layer.0.SelfAttention.o"},
                                     t.hidden, attentionOf(t), false, false);
        if (isDecoder) {
            builder.norm("layer.1.layer_norm", t.hidden, Norm::RmsNorm);
            NetworkBuilder::Attention cross = attentionOf(t);
            cross.keyTokens = builder.tokens(); // the encoder's
            builder.attentionProjections({"layer.1.EncDecAttention.q", "layer.1.EncDecAttention.k",
                                          "layer.1.EncDecAttention.v", "layer.1.EncDecAttention.o"},
                                         t.hidden, cross, false, false);
        }
        addFeedForward(builder, t, isDecoder ? 2 : 1);
    }
    builder.leaveBlock();
    builder.norm(name + ".final_layer_norm", t.hidden, Norm::RmsNorm).role = OperatorRole::FinalNorm;
}

} // namespace

Network readT5(const Fields& fields) {
    T5 t;
    const std::string_view layersKey = fields.either("num_layers", "num_hidden_layers");
    t.vocabulary = fields.size("vocab_size", kMaximumVocabulary, 32128);
    t.hidden = fields.size(fields.either("d_model", "hidden_size"), kMaximumWidth, 512);
    t.headDim = fields.size(fields.either("d_kv", "head_dim"), kMaximumHeads, 64);
    t.inner = fields.size("d_ff", kMaximumIntermediate, 2048);
    t.layers = fields.size(layersKey, kMaximumLayers, 6);
    t.decoderLayers = fields.optionalSize("num_decoder_layers", kMaximumLayers).value_or(t.layers);
    t.heads = fields.size(fields.either("num_heads", "num_attention_heads"), kMaximumHeads, 8);
    t.buckets = fields.has("relative_attention_num_buckets")
                    ? fields.config().at("relative_attention_num_buckets").integer(1, kMaximumWidth)
                    : 32;
    t.tied = fields.flag("tie_word_embeddings", true);
    const std::string projection = fields.text("feed_forward_proj", "relu");
    t.gated = projection.starts_with("gated-");
    if (projection.find('-') != std::string::npos && !t.gated)
        fields.fail("feed_forward_proj", fmt::format("is \"{}\"; write an activation or gated-ACTIVATION", projection));
    t.task = readTaskHead(fields, TaskHeadKind::ConditionalGeneration,
                          {TaskHeadKind::ConditionalGeneration, TaskHeadKind::None, TaskHeadKind::Encoder});
    Network network;
    network.contextField = "n_positions";
    // Relative positions have no limit; published files say what the network was trained with.
    network.usual = fields.optionalSize("n_positions", kMaximumPositions).value_or(512);
    if (t.task.kind != TaskHeadKind::Encoder)
        fields.warn("a sample has as many tokens in the decoder as in the encoder");
    network.build = [t](NetworkBuilder& builder) {
        builder.embedding("shared", t.vocabulary, t.hidden).role = OperatorRole::TokenEmbedding;
        addStack(builder, t, false);
        if (t.task.kind == TaskHeadKind::Encoder)
            return;
        contract::Operator& again = builder.tied("decoder.embed_tokens", t.vocabulary, t.hidden, "shared");
        again.kind = contract::OperatorKind::Embedding;
        again.flopsForward = 0;
        again.kept.clear();
        addStack(builder, t, true);
        if (t.task.kind == TaskHeadKind::ConditionalGeneration)
            addLanguageHead(builder, "lm_head", t.vocabulary, t.hidden, false, t.tied, "shared");
    };
    return network;
}

} // namespace shardscope::planner
