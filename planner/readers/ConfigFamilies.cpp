// SPDX-License-Identifier: GPL-3.0-or-later
#include "planner/readers/ConfigFamilies.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

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

// Bounds of single fields; contract::checkArchitecture() bounds their products.
constexpr std::int64_t kMaximumLayers = 1 << 14;
constexpr std::int64_t kMaximumWidth = 1 << 20;
constexpr std::int64_t kMaximumHeads = 1 << 16;
constexpr std::int64_t kMaximumIntermediate = 1 << 22;
constexpr std::int64_t kMaximumVocabulary = 1 << 26;
constexpr std::int64_t kMaximumPositions = 1 << 24;
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

/// The members of one configuration. A member that is null is not the same as one that is left out: only fields for
/// which the library gives null a meaning accept it.
class Fields {
public:
    Fields(const JsonCursor& config, std::string_view family, std::vector<std::string>& warnings)
        : m_config(config), m_family(family), m_warnings(warnings) {}

    bool has(std::string_view key) const { return m_config.raw().contains(std::string(key)); }
    bool isNull(std::string_view key) const { return has(key) && m_config.at(key).isNull(); }

    /// A size that every configuration should state; the default is used with a warning.
    std::int64_t size(std::string_view key, std::int64_t maximum, std::int64_t fallback) const {
        if (has(key))
            return m_config.at(key).integer(1, maximum);
        m_warnings.push_back(fmt::format("{} is not given; the default {} of {} is used", key, fallback, m_family));
        return fallback;
    }
    /// A size that may be left out or null.
    std::optional<std::int64_t> optionalSize(std::string_view key, std::int64_t maximum) const {
        if (const auto field = m_config.find(key))
            return field->integer(1, maximum);
        return std::nullopt;
    }
    double number(std::string_view key, double fallback, double minimum, double maximum) const {
        return has(key) ? m_config.at(key).number(minimum, maximum) : fallback;
    }
    bool flag(std::string_view key, bool fallback) const { return has(key) ? m_config.at(key).boolean() : fallback; }
    std::string text(std::string_view key, std::string_view fallback) const {
        return has(key) ? m_config.at(key).text(256) : std::string(fallback);
    }
    void fail(std::string_view key, std::string_view message) const { m_config.at(key).fail(message); }
    const JsonCursor& config() const { return m_config; }
    void warn(std::string text) const { m_warnings.push_back(std::move(text)); }

private:
    const JsonCursor& m_config;
    std::string_view m_family;
    std::vector<std::string>& m_warnings;
};

/// GPT2Config also answers to the common names.
std::string_view gpt2Name(const Fields& fields, std::string_view name, std::string_view commonName) {
    return !fields.has(name) && fields.has(commonName) ? commonName : name;
}

Activation readGpt2Activation(const Fields& fields) {
    const std::string name = fields.text("activation_function", "gelu_new");
    if (name == "gelu_new" || name == "gelu_pytorch_tanh" || name == "gelu_fast")
        return Activation::GeluTanh;
    if (name != "gelu")
        fields.fail("activation_function",
                    fmt::format("is \"{}\"; this version knows gelu_new, gelu_fast, gelu_pytorch_tanh and gelu", name));
    return Activation::Gelu;
}

Architecture readGpt2(const Fields& fields) {
    const std::string_view hidden = gpt2Name(fields, "n_embd", "hidden_size");
    const std::string_view layers = gpt2Name(fields, "n_layer", "num_hidden_layers");
    const std::string_view heads = gpt2Name(fields, "n_head", "num_attention_heads");
    const std::string_view positions = gpt2Name(fields, "n_positions", "max_position_embeddings");
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
    if (a.hidden % a.heads != 0) {
        // A head count that was left out has no place of its own in the file.
        if (fields.has(heads))
            fields.fail(heads, fmt::format("{} does not divide {} {}", a.heads, hidden, a.hidden));
        else
            fields.fail(hidden, fmt::format("{} is not a multiple of the default {} {}", a.hidden, heads, a.heads));
    }
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

/// A sliding window changes which keys a query sees, not one size of ours.
void noteSlidingWindow(const Fields& fields, const Architecture& a) {
    if (a.family == "llama")
        return;
    const bool used = a.family == "mistral" || fields.flag("use_sliding_window", false);
    std::optional<std::int64_t> window = fields.optionalSize("sliding_window", kMaximumPositions);
    if (!window && !fields.isNull("sliding_window"))
        window = 4096;
    if (used && window && *window < a.positions)
        fields.warn(fmt::format("sliding_window is {}; longer sequences are planned as full attention", *window));
}

void checkHeads(const Fields& fields, const Architecture& a, bool headDimGiven) {
    if (!headDimGiven && a.hidden % a.heads != 0) {
        if (fields.has("num_attention_heads"))
            fields.fail("num_attention_heads", fmt::format("{} does not divide hidden_size {}", a.heads, a.hidden));
        else
            fields.fail("hidden_size",
                        fmt::format("{} is not a multiple of the default num_attention_heads {}", a.hidden, a.heads));
    }
    if (a.heads % a.kvHeads != 0) {
        const bool given = fields.has("num_key_value_heads");
        fields.fail(
            given ? "num_key_value_heads" : "num_attention_heads",
            given ? fmt::format("{} does not divide num_attention_heads {}", a.kvHeads, a.heads)
                  : fmt::format("{} is not a multiple of the default num_key_value_heads {}", a.heads, a.kvHeads));
    }
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

Architecture readLlamaLike(const Fields& fields, const LlamaLikeDefaults& defaults) {
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
    noteSlidingWindow(fields, a);
    return a;
}

/// Sizes are those of a language model with its head, whatever task head the checkpoint was saved with.
void noteTaskHead(const JsonCursor& config, std::vector<std::string>& warnings) {
    const auto architectures = config.find("architectures");
    if (!architectures)
        return;
    const std::size_t count = architectures->arraySize(64);
    for (std::size_t i = 0; i < count && !config.failed(); ++i) {
        const std::string name = architectures->element(i).text(256);
        if (!name.ends_with("ForCausalLM") && !name.ends_with("LMHeadModel") && !config.failed())
            warnings.push_back(fmt::format("architectures names {}; it is planned with a language head", name));
    }
}

} // namespace

std::string supportedFamilies() {
    std::string list = "gpt2";
    for (const LlamaLikeDefaults& entry : kLlamaLike)
        list += fmt::format(", {}", entry.family);
    return list;
}

Architecture readFamily(const JsonCursor& config, std::vector<std::string>& warnings) {
    if (!config.isObject()) {
        config.fail("must be an object, as a Hugging Face config.json is");
        return {};
    }
    if (const auto format = config.find("format"); format && !config.find("model_type")) {
        format->fail(fmt::format("is \"{}\"; this version reads graphs from the config.json of a Hugging Face folder",
                                 format->text(64)));
        return {};
    }
    const auto type = config.find("model_type");
    if (const auto nested = config.find("text_config")) {
        nested->fail("describes the text part of a multimodal network; this version reads plain decoders (" +
                     supportedFamilies() + ")");
        return {};
    }
    if (!type) {
        config.at("model_type").fail("is not given; it must name a family: " + supportedFamilies());
        return {};
    }
    if (const auto quantized = config.find("quantization_config")) {
        quantized->fail(
            "says that the weights are quantised; this version plans unquantised training, remove the entry "
            "to plan that");
        return {};
    }
    const std::string family = type->text(128);
    const Fields fields(config, family, warnings);
    noteTaskHead(config, warnings);
    if (family == "gpt2")
        return readGpt2(fields);
    for (const LlamaLikeDefaults& defaults : kLlamaLike) {
        if (family == defaults.family)
            return readLlamaLike(fields, defaults);
    }
    type->fail(fmt::format("is \"{}\"; this version reads {}", family, supportedFamilies()));
    return {};
}

std::string_view contextField(std::string_view family) {
    return family == "gpt2" ? "n_positions" : "max_position_embeddings";
}

} // namespace shardscope::planner
