// SPDX-License-Identifier: GPL-3.0-or-later
// Decoders whose MLP is a mixture of experts: every expert is stored, a router sends each token to a few.
#include "planner/readers/ConfigFamilies.h"
#include "planner/readers/SlidingWindows.h"
#include "planner/readers/TaskHeads.h"

#include <fmt/format.h>

#include <set>

namespace shardscope::planner {

using contract::OperatorRole;
using Input = NetworkBuilder::Input;
using Norm = NetworkBuilder::Norm;

namespace {

struct Experts {
    std::int64_t count = 0;
    std::int64_t active = 0;
    std::int64_t inner = 0;
};

/// The fields that all of these share.
struct Body {
    std::int64_t vocabulary = 0;
    std::int64_t hidden = 0;
    std::int64_t layers = 0;
    std::int64_t intermediate = 0;
    bool tied = false;
    TaskHead task;
};

Experts checkedExperts(const Fields& fields, Experts experts, std::string_view countKey, std::string_view activeKey) {
    if (experts.active > experts.count)
        fields.fail(fields.has(activeKey) ? activeKey : countKey,
                    fmt::format("makes {} active of {} experts", experts.active, experts.count));
    return experts;
}

void addExperts(NetworkBuilder& builder, const Experts& experts, const std::string& prefix, std::int64_t hidden,
                const char* gate, const char* up, const char* down, bool bias) {
    builder.enterExperts(experts.count, experts.active);
    for (std::int64_t i = 0; i < experts.count && !builder.tooLarge(); ++i) {
        const std::string expert = fmt::format("{}.{}.", prefix, i);
        builder.gatedMlp(expert + gate, expert + up, expert + down, hidden, experts.inner, bias);
    }
    builder.leaveExperts();
}

/// Embedding, blocks named layers.N, final norm and head; `block` adds one block's operators.
template<typename Block> void addDecoder(NetworkBuilder& builder, const Body& body, const Block& block) {
    builder.embedding("embed_tokens", body.vocabulary, body.hidden).role = OperatorRole::TokenEmbedding;
    for (std::int64_t layer = 0; layer < body.layers && !builder.tooLarge(); ++layer) {
        builder.enterBlock(fmt::format("layers.{}", layer));
        block(layer);
    }
    builder.leaveBlock();
    builder.norm("norm", body.hidden, Norm::RmsNorm).role = OperatorRole::FinalNorm;
    DecoderHead head;
    head.task = body.task;
    head.vocabulary = body.vocabulary;
    head.width = body.hidden;
    head.tied = body.tied;
    addDecoderHead(builder, head);
}

struct BodyDefaults {
    std::int64_t vocabulary, hidden, layers, intermediate;
};
Body readBody(const Fields& fields, const BodyDefaults& defaults) {
    Body body;
    body.vocabulary = fields.size("vocab_size", kMaximumVocabulary, defaults.vocabulary);
    body.hidden = fields.size("hidden_size", kMaximumWidth, defaults.hidden);
    body.layers = fields.size("num_hidden_layers", kMaximumLayers, defaults.layers);
    body.intermediate = fields.size("intermediate_size", kMaximumIntermediate, defaults.intermediate);
    body.tied = fields.flag("tie_word_embeddings", false);
    body.task = readDecoderTask(fields);
    return body;
}

/// Heads with grouped keys. Null key heads mean one for each query head.
NetworkBuilder::Attention readAttention(const Fields& fields, std::int64_t hidden, std::int64_t heads,
                                        std::int64_t kvHeads) {
    NetworkBuilder::Attention attention;
    attention.heads = fields.size("num_attention_heads", kMaximumHeads, heads);
    attention.kvHeads = fields.isNull("num_key_value_heads")
                            ? attention.heads
                            : fields.size("num_key_value_heads", kMaximumHeads, kvHeads);
    const auto headDim = fields.optionalSize("head_dim", kMaximumHeads);
    if (fields.failed())
        return attention;
    if (!headDim)
        fields.checkHeads("num_attention_heads", attention.heads, "hidden_size", hidden);
    fields.checkKvHeads("num_attention_heads", attention.heads, "num_key_value_heads", attention.kvHeads);
    attention.headDim = headDim.value_or(hidden / attention.heads);
    return attention;
}

NetworkBuilder::Attention seeing(NetworkBuilder::Attention attention, std::int64_t keys) {
    attention.window = keys;
    return attention;
}

Network positionsOf(const Fields& fields, std::int64_t fallback) {
    Network network;
    network.context = fields.size("max_position_embeddings", kMaximumPositions, fallback);
    network.contextField = "max_position_embeddings";
    return network;
}

} // namespace

Network readMixtral(const Fields& fields) {
    Network network = positionsOf(fields, 131072);
    const Body body = readBody(fields, {32000, 4096, 32, 14336});
    const NetworkBuilder::Attention attention = readAttention(fields, body.hidden, 32, 8);
    const Experts experts = checkedExperts(fields,
                                           {fields.size("num_local_experts", kMaximumExperts, 8),
                                            fields.size("num_experts_per_tok", kMaximumExperts, 2), body.intermediate},
                                           "num_local_experts", "num_experts_per_tok");
    const LayerWindows windows = readLayerWindows(fields, body.layers);
    network.build = [=](NetworkBuilder& builder) {
        addDecoder(builder, body, [&](std::int64_t layer) {
            builder.norm("input_layernorm", body.hidden, Norm::RmsNorm);
            builder.attentionProjections({}, body.hidden, seeing(attention, windows.of(layer)), false, false);
            builder.norm("post_attention_layernorm", body.hidden, Norm::RmsNorm);
            builder.linear("block_sparse_moe.gate", experts.count, body.hidden, false);
            addExperts(builder, experts, "block_sparse_moe.experts", body.hidden, "w1", "w3", "w2", false);
        });
    };
    return network;
}

Network readQwenMoe(const Fields& fields) {
    const bool isQwen3 = fields.family() == "qwen3_moe";
    Network network = positionsOf(fields, 32768);
    const Body body = readBody(fields, {151936, 2048, 24, isQwen3 ? 6144 : 5632});
    const NetworkBuilder::Attention attention =
        isQwen3 ? readAttention(fields, body.hidden, 32, 4) : readAttention(fields, body.hidden, 16, 16);
    const LayerWindows windows = readLayerWindows(fields, body.layers);
    const Experts experts =
        checkedExperts(fields,
                       {fields.count("num_experts", kMaximumExperts, isQwen3 ? 128 : 60),
                        fields.size("num_experts_per_tok", kMaximumExperts, isQwen3 ? 8 : 4),
                        fields.size("moe_intermediate_size", kMaximumIntermediate, isQwen3 ? 768 : 1408)},
                       "num_experts", "num_experts_per_tok");
    const std::int64_t shared =
        isQwen3 ? 0 : fields.size("shared_expert_intermediate_size", kMaximumIntermediate, 5632);
    const std::int64_t step =
        fields.has("decoder_sparse_step") ? fields.config().at("decoder_sparse_step").integer(1, kMaximumLayers) : 1;
    const bool bias = isQwen3 ? fields.flag("attention_bias", false) : fields.flag("qkv_bias", true);
    std::set<std::int64_t> denseLayers;
    if (const auto dense = fields.config().find("mlp_only_layers")) {
        const std::size_t count = dense->arraySize(static_cast<std::size_t>(kMaximumLayers));
        for (std::size_t i = 0; i < count && !fields.failed(); ++i)
            denseLayers.insert(dense->element(i).integer(0, kMaximumLayers));
    }
    network.build = [=](NetworkBuilder& builder) {
        addDecoder(builder, body, [&](std::int64_t layer) {
            builder.norm("input_layernorm", body.hidden, Norm::RmsNorm);
            builder.attentionProjections({}, body.hidden, seeing(attention, windows.of(layer)), bias, isQwen3 && bias,
                                         isQwen3 ? NetworkBuilder::HeadNorm::RmsNorm : NetworkBuilder::HeadNorm::None);
            builder.norm("post_attention_layernorm", body.hidden, Norm::RmsNorm);
            if (denseLayers.contains(layer) || experts.count == 0 || (layer + 1) % step != 0) {
                builder.gatedMlp("mlp.gate_proj", "mlp.up_proj", "mlp.down_proj", body.hidden, body.intermediate,
                                 false);
                return;
            }
            builder.linear("mlp.gate", experts.count, body.hidden, false);
            addExperts(builder, experts, "mlp.experts", body.hidden, "gate_proj", "up_proj", "down_proj", false);
            if (shared == 0)
                return;
            builder.gatedMlp("mlp.shared_expert.gate_proj", "mlp.shared_expert.up_proj", "mlp.shared_expert.down_proj",
                             body.hidden, shared, false, Input::Shared);
            builder.linear("mlp.shared_expert_gate", 1, body.hidden, false, Input::Shared);
        });
    };
    return network;
}

namespace {

/// Multi-head latent attention: queries and keys pass through low-rank projections with a norm between.
struct LatentAttention {
    std::int64_t heads = 0;
    std::int64_t queryRank = 0; ///< 0: queries are projected at once
    std::int64_t keyRank = 0;
    std::int64_t plainDim = 0;
    std::int64_t rotaryDim = 0;
    std::int64_t valueDim = 0;
    bool bias = false;
};

LatentAttention readLatentAttention(const Fields& fields, std::int64_t heads) {
    LatentAttention a;
    a.heads = fields.size("num_attention_heads", kMaximumHeads, heads);
    a.queryRank = fields.nullableSize("q_lora_rank", kMaximumWidth, 1536).value_or(0);
    a.keyRank = fields.size("kv_lora_rank", kMaximumWidth, 512);
    a.plainDim = fields.size("qk_nope_head_dim", kMaximumHeads, 128);
    a.rotaryDim = fields.size("qk_rope_head_dim", kMaximumHeads, 64);
    a.valueDim = fields.size("v_head_dim", kMaximumHeads, 128);
    a.bias = fields.flag("attention_bias", false);
    return a;
}

void addLatentAttention(NetworkBuilder& builder, const LatentAttention& a, std::int64_t hidden) {
    const std::int64_t queryWidth = a.heads * (a.plainDim + a.rotaryDim);
    if (a.queryRank == 0) {
        builder.linear("self_attn.q_proj", queryWidth, hidden, false);
    } else {
        builder.linear("self_attn.q_a_proj", a.queryRank, hidden, a.bias);
        builder.norm("self_attn.q_a_layernorm", a.queryRank, Norm::RmsNorm);
        builder.linear("self_attn.q_b_proj", queryWidth, a.queryRank, false);
    }
    builder.keepOutput(queryWidth);
    builder.linear("self_attn.kv_a_proj_with_mqa", a.keyRank + a.rotaryDim, hidden, a.bias, Input::Shared);
    builder.keepOutput(a.rotaryDim); // the rest of it is the input of the norm
    builder.norm("self_attn.kv_a_layernorm", a.keyRank, Norm::RmsNorm);
    builder.linear("self_attn.kv_b_proj", a.heads * (a.plainDim + a.valueDim), a.keyRank, false);
    builder.keepOutput(a.heads * (a.plainDim + a.valueDim));
    NetworkBuilder::Attention attention;
    attention.heads = attention.kvHeads = a.heads;
    attention.headDim = a.plainDim + a.rotaryDim;
    attention.valueHeadDim = a.valueDim;
    builder.chargeAttention(attention);
    builder.linear("self_attn.o_proj", hidden, a.heads * a.valueDim, a.bias);
}

} // namespace

Network readDeepseek(const Fields& fields) {
    const bool isV3 = fields.family() == "deepseek_v3";
    Network network = positionsOf(fields, isV3 ? 4096 : 2048);
    const Body body = isV3 ? readBody(fields, {129280, 7168, 61, 18432}) : readBody(fields, {32000, 4096, 32, 11008});
    const LatentAttention attention = readLatentAttention(fields, isV3 ? 128 : 32);
    // V2 has no default for the experts of a token, and the library cannot run without it.
    const std::int64_t active = isV3 || fields.has("num_experts_per_tok")
                                    ? fields.size("num_experts_per_tok", kMaximumExperts, 8)
                                    : fields.config().at("num_experts_per_tok").integer(1, kMaximumExperts);
    const Experts experts =
        checkedExperts(fields,
                       {fields.size("n_routed_experts", kMaximumExperts, isV3 ? 256 : 64), active,
                        fields.size("moe_intermediate_size", kMaximumIntermediate, isV3 ? 2048 : 1407)},
                       "n_routed_experts", "num_experts_per_tok");
    const std::int64_t shared = isV3 ? fields.size("n_shared_experts", kMaximumExperts, 1)
                                     : fields.nullableSize("n_shared_experts", kMaximumExperts, 2).value_or(0);
    const std::int64_t denseLayers = fields.count("first_k_dense_replace", kMaximumLayers, isV3 ? 3 : 0);
    const bool bias = !isV3 && fields.flag("mlp_bias", false);
    network.build = [=](NetworkBuilder& builder) {
        addDecoder(builder, body, [&](std::int64_t layer) {
            builder.norm("input_layernorm", body.hidden, Norm::RmsNorm);
            addLatentAttention(builder, attention, body.hidden);
            builder.norm("post_attention_layernorm", body.hidden, Norm::RmsNorm);
            if (layer < denseLayers) {
                builder.gatedMlp("mlp.gate_proj", "mlp.up_proj", "mlp.down_proj", body.hidden, body.intermediate, bias);
                return;
            }
            builder.linear("mlp.gate", experts.count, body.hidden, false);
            addExperts(builder, experts, "mlp.experts", body.hidden, "gate_proj", "up_proj", "down_proj", bias);
            if (shared > 0)
                builder.gatedMlp("mlp.shared_experts.gate_proj", "mlp.shared_experts.up_proj",
                                 "mlp.shared_experts.down_proj", body.hidden, shared * experts.inner, bias,
                                 Input::Shared);
        });
    };
    return network;
}

} // namespace shardscope::planner
