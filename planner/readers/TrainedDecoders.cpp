// SPDX-License-Identifier: GPL-3.0-or-later
// The decoders that the training runtime speaks of: their fields make an architecture, which the contract lowers.
#include "planner/readers/ConfigFamilies.h"
#include "planner/readers/SlidingWindows.h"
#include "planner/readers/TaskHeads.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>
#include <optional>

namespace shardscope::planner {

using contract::Activation;
using contract::Architecture;
using contract::AttentionLayout;
using contract::JsonCursor;
using contract::NormKind;
using contract::Rope;

namespace {

constexpr std::size_t kMaximumScalingText = 64 * 1024;

/// What the transformers library assumes for fields that a Llama-like config.json leaves out.
struct LlamaLikeDefaults {
    std::string_view family;
    std::int64_t vocabulary;
    std::int64_t intermediate;
    std::int64_t kvHeads; ///< 0: as many as query heads
    std::int64_t headDim; ///< 0: hidden / heads
    std::int64_t positions;
};
constexpr std::array kLlamaLike{
    LlamaLikeDefaults{"llama", 32000, 11008, 0, 0, 2048},
    LlamaLikeDefaults{"mistral", 32000, 14336, 8, 0, 131072},
    LlamaLikeDefaults{"qwen2", 151936, 22016, 32, 0, 32768},
    LlamaLikeDefaults{"qwen3", 151936, 22016, 32, 128, 32768},
};

Activation readGpt2Activation(const Fields& fields) {
    const std::string name = fields.text("activation_function", "gelu_new");
    if (name == "gelu_new" || name == "gelu_pytorch_tanh" || name == "gelu_fast")
        return Activation::GeluTanh;
    if (name != "gelu")
        fields.fail("activation_function",
                    fmt::format("is \"{}\"; this version knows gelu_new, gelu_fast, gelu_pytorch_tanh and gelu", name));
    return Activation::Gelu;
}

Architecture readGpt2Architecture(const Fields& fields) {
    const std::string_view hidden = fields.either("n_embd", "hidden_size");
    const std::string_view layers = fields.either("n_layer", "num_hidden_layers");
    const std::string_view heads = fields.either("n_head", "num_attention_heads");
    const std::string_view positions = fields.either("n_positions", "max_position_embeddings");
    Architecture a;
    a.family = "gpt2";
    a.vocabulary = fields.size("vocab_size", kMaximumVocabulary, 50257);
    a.positions = fields.size(positions, kMaximumPositions, 1024);
    a.hidden = fields.size(hidden, kMaximumWidth, 768);
    a.layers = fields.size(layers, kMaximumLayers, 12);
    a.heads = fields.size(heads, kMaximumHeads, 12);
    a.intermediate = fields.optionalSize("n_inner", kMaximumIntermediate).value_or(4 * a.hidden);
    a.activation = readGpt2Activation(fields);
    a.norm = NormKind::LayerNorm;
    a.normEpsilon = fields.number("layer_norm_epsilon", 1e-5, 0, 1);
    a.attention = AttentionLayout::Fused;
    a.attentionBias = true;
    a.attentionOutputBias = true;
    a.mlpBias = true;
    a.tied = fields.flag("tie_word_embeddings", true);
    if (fields.config().failed())
        return a;
    a.kvHeads = a.heads;
    a.headDim = a.hidden / a.heads;
    fields.checkHeads(heads, a.heads, hidden, a.hidden);
    if (fields.flag("add_cross_attention", false))
        fields.fail("add_cross_attention", "is true; this version reads decoders without cross-attention");
    for (const std::string_view key : {"scale_attn_by_inverse_layer_idx", "reorder_and_upcast_attn"}) {
        if (fields.flag(key, false))
            fields.warn(fmt::format("{} is true; sizes are right, but training here does without it", key));
    }
    if (!fields.flag("scale_attn_weights", true))
        fields.warn("scale_attn_weights is false; sizes are right, but training here scales attention");
    return a;
}

/// The kind of a rotary scaling object, "" for none. Older files say "type", newer "rope_type".
std::string readScalingKind(const JsonCursor& scaling, bool mayBeAbsent) {
    if (const auto kind = scaling.find("rope_type"))
        return kind->text(64);
    if (const auto kind = scaling.find("type"))
        return kind->text(64);
    return mayBeAbsent && scaling.isObject() ? std::string() : scaling.at("rope_type").text(64);
}

/// `rope_theta` and `rope_scaling`, or the `rope_parameters` that later files hold both in.
Rope readRope(const Fields& fields) {
    Rope rope;
    rope.theta = fields.number("rope_theta", 10000.0, 1, 1e12);
    const auto parameters = fields.config().find("rope_parameters");
    const auto scaling = parameters ? parameters : fields.config().find("rope_scaling");
    if (!scaling)
        return rope;
    rope.scalingKind = readScalingKind(*scaling, parameters.has_value());
    if (const auto theta = parameters ? parameters->find("rope_theta") : std::nullopt)
        rope.theta = theta->number(1, 1e12);
    if (const auto factor = scaling->find("factor"))
        factor->number(1e-6, 1e6);
    if (fields.config().failed())
        return rope;
    if (scaling->raw().dump().size() > kMaximumScalingText)
        scaling->fail(fmt::format("is longer than {} characters", kMaximumScalingText));
    if (rope.scalingKind == "default")
        rope.scalingKind.clear();
    if (!rope.scalingKind.empty())
        rope.scaling = scaling->raw().dump();
    return rope;
}

/// A window as long as the context hides nothing.
std::optional<contract::SlidingWindow> readWindow(const Fields& fields, const Architecture& a) {
    const LayerWindows windows = readLayerWindows(fields, a.layers);
    contract::SlidingWindow window{windows.keys, {}};
    for (std::int64_t layer = 0; layer < a.layers && !fields.failed() && windows.keys > 0; ++layer) {
        if (windows.of(layer) > 0)
            window.layers.push_back(layer);
    }
    if (window.layers.empty() || window.keys >= a.positions)
        return std::nullopt;
    return window;
}

void checkHeads(const Fields& fields, const Architecture& a, bool headDimGiven) {
    if (!headDimGiven)
        fields.checkHeads("num_attention_heads", a.heads, "hidden_size", a.hidden);
    fields.checkKvHeads("num_attention_heads", a.heads, "num_key_value_heads", a.kvHeads);
    if (a.headDim % 2 != 0) {
        const bool headsGiven = fields.has("num_attention_heads");
        fields.fail(headDimGiven ? "head_dim" : (headsGiven ? "num_attention_heads" : "hidden_size"),
                    fmt::format("gives heads of {}; rotary positions need an even size", a.headDim));
    }
}

std::int64_t readKvHeads(const Fields& fields, const LlamaLikeDefaults& defaults, std::int64_t heads) {
    if (fields.isNull("num_key_value_heads") || (!fields.has("num_key_value_heads") && defaults.kvHeads == 0))
        return heads;
    return fields.size("num_key_value_heads", kMaximumHeads, defaults.kvHeads);
}

Architecture readLlamaLikeArchitecture(const Fields& fields, const LlamaLikeDefaults& defaults) {
    Architecture a;
    a.family = defaults.family;
    a.vocabulary = fields.size("vocab_size", kMaximumVocabulary, defaults.vocabulary);
    a.positions = fields.size("max_position_embeddings", kMaximumPositions, defaults.positions);
    a.hidden = fields.size("hidden_size", kMaximumWidth, 4096);
    a.layers = fields.size("num_hidden_layers", kMaximumLayers, 32);
    a.heads = fields.size("num_attention_heads", kMaximumHeads, 32);
    a.intermediate = fields.size("intermediate_size", kMaximumIntermediate, defaults.intermediate);
    a.kvHeads = readKvHeads(fields, defaults, a.heads);
    std::optional<std::int64_t> headDim = fields.optionalSize("head_dim", kMaximumHeads);
    if (!headDim && defaults.headDim != 0 && !fields.isNull("head_dim"))
        headDim = defaults.headDim;
    a.activation = Activation::SiluGated;
    if (const std::string name = fields.text("hidden_act", "silu"); name != "silu" && name != "swish")
        fields.fail("hidden_act", fmt::format("is \"{}\"; this version knows silu in this family", name));
    a.norm = NormKind::RmsNorm;
    a.normEpsilon = fields.number("rms_norm_eps", 1e-6, 0, 1);
    a.attention = AttentionLayout::Separate;
    a.rope = readRope(fields);
    // Qwen2 has biases on query, key and value by construction, Mistral none; the other two say so.
    const bool asksForBias = (a.family == "llama" || a.family == "qwen3") && fields.flag("attention_bias", false);
    a.attentionBias = a.family == "qwen2" || asksForBias;
    a.attentionOutputBias = asksForBias;
    a.mlpBias = a.family == "llama" && fields.flag("mlp_bias", false);
    a.qkNorm = a.family == "qwen3";
    a.tied = fields.flag("tie_word_embeddings", false);
    if (fields.config().failed())
        return a;
    a.headDim = headDim.value_or(a.hidden / a.heads);
    if (a.headDim == 0)
        fields.fail("hidden_size", fmt::format("{} is smaller than num_attention_heads {}", a.hidden, a.heads));
    else
        checkHeads(fields, a, headDim.has_value());
    a.window = readWindow(fields, a);
    return a;
}

/// The runtime trains language models. Under another task head the body is lowered the same and the head replaced.
Network networkOf(const Fields& fields, Architecture architecture, std::string_view contextField,
                  std::string_view tokenClassifier) {
    Network network;
    network.family = architecture.family;
    network.context = architecture.positions;
    network.contextField = contextField;
    const TaskHead task = readDecoderTask(fields);
    if (task.kind == TaskHeadKind::Language) {
        network.architecture = std::move(architecture);
        return network;
    }
    architecture.tied = false;
    DecoderHead head;
    head.task = task;
    head.width = architecture.hidden;
    head.tokenClassifier = tokenClassifier;
    network.body = std::move(architecture);
    network.adapt = [head](std::vector<contract::Operator>& operators, NetworkBuilder& builder) {
        operators.pop_back();
        addDecoderHead(builder, head);
        for (contract::Operator& op : builder.take())
            operators.push_back(std::move(op));
    };
    return network;
}

} // namespace

Network readGpt2(const Fields& fields) {
    return networkOf(fields, readGpt2Architecture(fields), fields.either("n_positions", "max_position_embeddings"),
                     "classifier");
}

Network readLlamaLike(const Fields& fields) {
    const auto* defaults = std::find_if(kLlamaLike.begin(), kLlamaLike.end(), [&](const LlamaLikeDefaults& entry) {
        return entry.family == fields.family();
    });
    return networkOf(fields, readLlamaLikeArchitecture(fields, *defaults), "max_position_embeddings", "score");
}

} // namespace shardscope::planner
