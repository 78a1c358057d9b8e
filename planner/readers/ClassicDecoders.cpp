// SPDX-License-Identifier: GPL-3.0-or-later
// Decoders with plain MLPs: OPT, BLOOM, GPT-NeoX, GPT-J, Falcon, Phi.
#include "planner/readers/ConfigFamilies.h"
#include "planner/readers/TaskHeads.h"

#include <fmt/format.h>

#include <algorithm>

namespace shardscope::planner {

using contract::OperatorRole;
using Input = NetworkBuilder::Input;
using Norm = NetworkBuilder::Norm;

namespace {

NetworkBuilder::Attention headsOf(std::int64_t hidden, std::int64_t heads, std::int64_t kvHeads) {
    NetworkBuilder::Attention attention;
    attention.heads = heads;
    attention.kvHeads = kvHeads;
    attention.headDim = hidden / std::max<std::int64_t>(heads, 1);
    return attention;
}

template<typename Block>
void addBlocks(NetworkBuilder& builder, const char* prefix, std::int64_t layers, const Block& block) {
    for (std::int64_t layer = 0; layer < layers && !builder.tooLarge(); ++layer) {
        builder.enterBlock(fmt::format("{}.{}", prefix, layer));
        block();
    }
    builder.leaveBlock();
}

Network withContext(const Fields& fields, std::string_view key, std::int64_t fallback) {
    Network network;
    network.context = fields.size(key, kMaximumPositions, fallback);
    network.contextField = key;
    return network;
}

} // namespace

Network readOpt(const Fields& fields) {
    const std::int64_t vocabulary = fields.size("vocab_size", kMaximumVocabulary, 50272);
    const std::int64_t hidden = fields.size("hidden_size", kMaximumWidth, 768);
    const std::int64_t layers = fields.size("num_hidden_layers", kMaximumLayers, 12);
    const std::int64_t heads = fields.size("num_attention_heads", kMaximumHeads, 12);
    const std::int64_t inner = fields.size("ffn_dim", kMaximumIntermediate, 3072);
    const std::int64_t projected = fields.optionalSize("word_embed_proj_dim", kMaximumWidth).value_or(hidden);
    const bool bias = fields.flag("enable_bias", true);
    const bool affine = fields.flag("layer_norm_elementwise_affine", true);
    const bool finalNorm = fields.flag("do_layer_norm_before", true) && !fields.flag("_remove_final_layer_norm", false);
    Network network = withContext(fields, "max_position_embeddings", 2048);
    DecoderHead head;
    head.task = readDecoderTask(fields);
    head.embedding = "decoder.embed_tokens";
    head.vocabulary = vocabulary;
    head.width = projected;
    head.tied = fields.flag("tie_word_embeddings", true);
    if (fields.failed())
        return network;
    fields.checkHeads("num_attention_heads", heads, "hidden_size", hidden);
    const std::int64_t positions = network.context + 2; // the first two rows stand for padding
    network.build = [=](NetworkBuilder& builder) {
        const auto norm = [&](const char* name) {
            contract::Operator& op = builder.norm(name, hidden, Norm::LayerNorm);
            if (!affine)
                op.tensors.clear();
        };
        builder.embedding("decoder.embed_tokens", vocabulary, projected).role = OperatorRole::TokenEmbedding;
        builder.embedding("decoder.embed_positions", positions, hidden).role = OperatorRole::PositionEmbedding;
        if (projected != hidden)
            builder.linear("decoder.project_in", hidden, projected, false);
        addBlocks(builder, "decoder.layers", layers, [&] {
            norm("self_attn_layer_norm");
            builder.attentionProjections(
                {"self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj", "self_attn.out_proj"}, hidden,
                headsOf(hidden, heads, heads), bias, bias);
            norm("final_layer_norm");
            builder.mlp("fc1", "fc2", hidden, inner, bias);
        });
        if (finalNorm) {
            norm("decoder.final_layer_norm");
            builder.last().role = OperatorRole::FinalNorm;
        }
        if (projected != hidden)
            builder.linear("decoder.project_out", projected, hidden, false);
        addDecoderHead(builder, head);
    };
    return network;
}

Network readBloom(const Fields& fields) {
    const std::int64_t vocabulary = fields.size("vocab_size", kMaximumVocabulary, 250880);
    const bool named = fields.config().find("n_embed").has_value(); // which the library prefers to hidden_size
    const std::string_view hiddenKey = named ? "n_embed" : "hidden_size";
    const std::string_view headsKey = fields.either("n_head", "num_attention_heads");
    const std::int64_t hidden = fields.size(hiddenKey, kMaximumWidth, 64);
    const std::int64_t layers = fields.size(fields.either("n_layer", "num_hidden_layers"), kMaximumLayers, 2);
    const std::int64_t heads = fields.size(headsKey, kMaximumHeads, 8);
    Network network;
    // Positions are biases of the scores, so nothing bounds the sequence; published files state what was trained.
    network.usual = fields.optionalSize("seq_length", kMaximumPositions).value_or(2048);
    network.contextField = "seq_length";
    DecoderHead head;
    head.task = readDecoderTask(fields);
    head.embedding = "word_embeddings";
    head.vocabulary = vocabulary;
    head.width = hidden;
    head.tied = fields.flag("tie_word_embeddings", true);
    head.tokenClassifier = "classifier";
    if (fields.failed())
        return network;
    fields.checkHeads(headsKey, heads, hiddenKey, hidden);
    network.build = [=](NetworkBuilder& builder) {
        builder.embedding("word_embeddings", vocabulary, hidden).role = OperatorRole::TokenEmbedding;
        builder.norm("word_embeddings_layernorm", hidden, Norm::LayerNorm);
        addBlocks(builder, "h", layers, [&] {
            builder.norm("input_layernorm", hidden, Norm::LayerNorm);
            builder.fusedAttention("self_attention.query_key_value", "self_attention.dense", hidden,
                                   headsOf(hidden, heads, heads), true, true);
            builder.norm("post_attention_layernorm", hidden, Norm::LayerNorm);
            builder.mlp("mlp.dense_h_to_4h", "mlp.dense_4h_to_h", hidden, 4 * hidden, true);
        });
        builder.norm("ln_f", hidden, Norm::LayerNorm).role = OperatorRole::FinalNorm;
        addDecoderHead(builder, head);
    };
    return network;
}

Network readGptNeox(const Fields& fields) {
    const std::int64_t vocabulary = fields.size("vocab_size", kMaximumVocabulary, 50432);
    const std::int64_t hidden = fields.size("hidden_size", kMaximumWidth, 6144);
    const std::int64_t layers = fields.size("num_hidden_layers", kMaximumLayers, 44);
    const std::int64_t heads = fields.size("num_attention_heads", kMaximumHeads, 64);
    const std::int64_t inner = fields.size("intermediate_size", kMaximumIntermediate, 24576);
    const bool bias = fields.flag("attention_bias", true);
    Network network = withContext(fields, "max_position_embeddings", 2048);
    DecoderHead head;
    head.task = readDecoderTask(fields);
    // The bare network's names have no prefix; with a head the library keeps "gpt_neox.".
    const std::string prefix = head.task.kind == TaskHeadKind::None ? "" : "gpt_neox.";
    head.language = "embed_out";
    head.embedding = prefix + "embed_in";
    head.vocabulary = vocabulary;
    head.width = hidden;
    head.tied = fields.flag("tie_word_embeddings", false);
    head.tokenClassifier = "classifier";
    if (fields.failed())
        return network;
    fields.checkHeads("num_attention_heads", heads, "hidden_size", hidden);
    network.build = [=](NetworkBuilder& builder) {
        builder.embedding(prefix + "embed_in", vocabulary, hidden).role = OperatorRole::TokenEmbedding;
        addBlocks(builder, (prefix + "layers").c_str(), layers, [&] {
            builder.norm("input_layernorm", hidden, Norm::LayerNorm);
            builder.fusedAttention("attention.query_key_value", "attention.dense", hidden,
                                   headsOf(hidden, heads, heads), bias, bias);
            builder.norm("post_attention_layernorm", hidden, Norm::LayerNorm);
            builder.mlp("mlp.dense_h_to_4h", "mlp.dense_4h_to_h", hidden, inner, true);
        });
        builder.norm(prefix + "final_layer_norm", hidden, Norm::LayerNorm).role = OperatorRole::FinalNorm;
        addDecoderHead(builder, head);
    };
    return network;
}

Network readGptj(const Fields& fields) {
    const std::string_view hiddenKey = fields.either("n_embd", "hidden_size");
    const std::string_view headsKey = fields.either("n_head", "num_attention_heads");
    const std::int64_t vocabulary = fields.size("vocab_size", kMaximumVocabulary, 50400);
    const std::int64_t hidden = fields.size(hiddenKey, kMaximumWidth, 4096);
    const std::int64_t layers = fields.size(fields.either("n_layer", "num_hidden_layers"), kMaximumLayers, 28);
    const std::int64_t heads = fields.size(headsKey, kMaximumHeads, 16);
    const std::int64_t inner = fields.optionalSize("n_inner", kMaximumIntermediate).value_or(4 * hidden);
    Network network = withContext(fields, fields.either("n_positions", "max_position_embeddings"), 2048);
    DecoderHead head;
    head.task = readDecoderTask(fields);
    head.embedding = "wte";
    head.vocabulary = vocabulary;
    head.width = hidden;
    head.bias = true;
    head.tied = fields.flag("tie_word_embeddings", false);
    head.questionOutputs = head.task.labels;
    if (fields.failed())
        return network;
    fields.checkHeads(headsKey, heads, hiddenKey, hidden);
    network.build = [=](NetworkBuilder& builder) {
        builder.embedding("wte", vocabulary, hidden).role = OperatorRole::TokenEmbedding;
        addBlocks(builder, "h", layers, [&] {
            builder.norm("ln_1", hidden, Norm::LayerNorm);
            builder.attentionProjections({"attn.q_proj", "attn.k_proj", "attn.v_proj", "attn.out_proj"}, hidden,
                                         headsOf(hidden, heads, heads), false, false);
            builder.mlp("mlp.fc_in", "mlp.fc_out", hidden, inner, true, Input::Shared); // beside attention
        });
        builder.norm("ln_f", hidden, Norm::LayerNorm).role = OperatorRole::FinalNorm;
        addDecoderHead(builder, head);
    };
    return network;
}

Network readFalcon(const Fields& fields) {
    const std::int64_t vocabulary = fields.size("vocab_size", kMaximumVocabulary, 65024);
    const bool named = fields.config().find("n_embed").has_value();
    const std::string_view hiddenKey = named ? "n_embed" : "hidden_size";
    const std::int64_t hidden = fields.size(hiddenKey, kMaximumWidth, 4544);
    const std::int64_t layers = fields.size("num_hidden_layers", kMaximumLayers, 32);
    const std::int64_t heads = fields.size("num_attention_heads", kMaximumHeads, 71);
    const bool newBlocks = fields.flag("new_decoder_architecture", false);
    const bool multiQuery = fields.flag("multi_query", true);
    const bool parallel = fields.flag("parallel_attn", true);
    const bool bias = fields.flag("bias", false);
    const std::int64_t inner = fields.optionalSize("ffn_hidden_size", kMaximumIntermediate).value_or(4 * hidden);
    const std::int64_t kvHeads = newBlocks    ? fields.optionalSize("num_kv_heads", kMaximumHeads).value_or(heads)
                                 : multiQuery ? 1
                                              : heads;
    const std::int64_t parallelNorms = fields.optionalSize("num_ln_in_parallel_attn", 2).value_or(newBlocks ? 2 : 1);
    Network network = withContext(fields, "max_position_embeddings", 2048);
    DecoderHead head;
    head.task = readDecoderTask(fields);
    head.embedding = "word_embeddings";
    head.vocabulary = vocabulary;
    head.width = hidden;
    head.tied = fields.flag("tie_word_embeddings", true);
    head.tokenClassifier = "classifier";
    if (fields.failed())
        return network;
    fields.checkHeads("num_attention_heads", heads, hiddenKey, hidden);
    fields.checkKvHeads("num_attention_heads", heads, "num_kv_heads", kvHeads);
    network.build = [=](NetworkBuilder& builder) {
        builder.embedding("word_embeddings", vocabulary, hidden).role = OperatorRole::TokenEmbedding;
        addBlocks(builder, "h", layers, [&] {
            const bool twoNorms = parallel && parallelNorms == 2;
            builder.norm(twoNorms ? "ln_attn" : "input_layernorm", hidden, Norm::LayerNorm);
            builder.fusedAttention("self_attention.query_key_value", "self_attention.dense", hidden,
                                   headsOf(hidden, heads, kvHeads), bias, bias);
            if (twoNorms || !parallel)
                builder.norm(twoNorms ? "ln_mlp" : "post_attention_layernorm", hidden, Norm::LayerNorm);
            builder.mlp("mlp.dense_h_to_4h", "mlp.dense_4h_to_h", hidden, inner, bias,
                        twoNorms || !parallel ? Input::Own : Input::Shared);
        });
        builder.norm("ln_f", hidden, Norm::LayerNorm).role = OperatorRole::FinalNorm;
        addDecoderHead(builder, head);
    };
    return network;
}

Network readPhi(const Fields& fields) {
    const std::int64_t vocabulary = fields.size("vocab_size", kMaximumVocabulary, 51200);
    const std::int64_t hidden = fields.size("hidden_size", kMaximumWidth, 2048);
    const std::int64_t layers = fields.size("num_hidden_layers", kMaximumLayers, 24);
    const std::int64_t heads = fields.size("num_attention_heads", kMaximumHeads, 32);
    const std::int64_t kvHeads = fields.optionalSize("num_key_value_heads", kMaximumHeads).value_or(heads);
    const std::int64_t inner = fields.size("intermediate_size", kMaximumIntermediate, 8192);
    const bool headNorms = fields.flag("qk_layernorm", false);
    Network network = withContext(fields, "max_position_embeddings", 2048);
    DecoderHead head;
    head.task = readDecoderTask(fields);
    head.vocabulary = vocabulary;
    head.width = hidden;
    head.bias = true;
    head.tied = fields.flag("tie_word_embeddings", false);
    const auto headDim = fields.optionalSize("head_dim", kMaximumHeads);
    if (fields.failed())
        return network;
    if (!headDim)
        fields.checkHeads("num_attention_heads", heads, "hidden_size", hidden);
    fields.checkKvHeads("num_attention_heads", heads, "num_key_value_heads", kvHeads);
    NetworkBuilder::Attention attention = headsOf(hidden, heads, kvHeads);
    attention.headDim = headDim.value_or(attention.headDim);
    network.build = [=](NetworkBuilder& builder) {
        builder.embedding("embed_tokens", vocabulary, hidden).role = OperatorRole::TokenEmbedding;
        addBlocks(builder, "layers", layers, [&] {
            builder.norm("input_layernorm", hidden, Norm::LayerNorm);
            builder.attentionProjections({"self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj", "self_attn.dense",
                                          "self_attn.q_layernorm", "self_attn.k_layernorm"},
                                         hidden, attention, true, true,
                                         headNorms ? NetworkBuilder::HeadNorm::LayerNorm
                                                   : NetworkBuilder::HeadNorm::None);
            builder.mlp("mlp.fc1", "mlp.fc2", hidden, inner, true, Input::Shared); // beside attention
        });
        builder.norm("final_layernorm", hidden, Norm::LayerNorm).role = OperatorRole::FinalNorm;
        addDecoderHead(builder, head);
    };
    return network;
}

} // namespace shardscope::planner
