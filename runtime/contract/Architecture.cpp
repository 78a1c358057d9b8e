// SPDX-License-Identifier: GPL-3.0-or-later
#include "runtime/contract/Architecture.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <functional>
#include <utility>
#include <vector>

namespace shardscope::contract {

namespace {

constexpr std::int64_t kMaximumField = std::int64_t{1} << 40; // the true bounds are in checkArchitecture()

std::string_view normName(NormKind kind) {
    return kind == NormKind::LayerNorm ? "layer_norm" : "rms_norm";
}

std::string_view activationName(Activation activation) {
    switch (activation) {
    case Activation::GeluTanh:
        return "gelu_tanh";
    case Activation::Gelu:
        return "gelu";
    case Activation::SiluGated:
        return "silu_gated";
    }
    return "gelu";
}

} // namespace

OrderedJson toJson(const Architecture& a) {
    OrderedJson rope = nullptr;
    if (a.rope)
        rope = {{"theta", a.rope->theta},
                {"scaling_kind", a.rope->scalingKind},
                {"scaling", a.rope->scaling.empty() ? OrderedJson(nullptr) : OrderedJson::parse(a.rope->scaling)}};
    OrderedJson json{
        {"family", a.family},
        {"layers", a.layers},
        {"hidden", a.hidden},
        {"heads", a.heads},
        {"kv_heads", a.kvHeads},
        {"head_dim", a.headDim},
        {"intermediate", a.intermediate},
        {"vocabulary", a.vocabulary},
        {"positions", a.positions},
        {"norm", {{"kind", normName(a.norm)}, {"epsilon", a.normEpsilon}}},
        {"activation", activationName(a.activation)},
        {"attention", a.attention == AttentionLayout::Fused ? "fused" : "separate"},
        {"rope", rope},
        {"biases", {{"attention", a.attentionBias}, {"attention_output", a.attentionOutputBias}, {"mlp", a.mlpBias}}},
        {"qk_norm", a.qkNorm},
        {"tied", a.tied}};
    if (a.window)
        json["sliding_window"] = {{"keys", a.window->keys}, {"layers", a.window->layers}};
    return json;
}

std::int64_t Architecture::seenKeys(std::int64_t layer, std::int64_t tokens) const {
    const bool windowed = window && std::binary_search(window->layers.begin(), window->layers.end(), layer);
    return windowed ? std::min(window->keys, tokens) : tokens;
}

Architecture readArchitecture(const JsonCursor& cursor) {
    Architecture a;
    cursor.expectOnly({"family", "layers", "hidden", "heads", "kv_heads", "head_dim", "intermediate", "vocabulary",
                       "positions", "norm", "activation", "attention", "rope", "biases", "sliding_window", "qk_norm",
                       "tied"});
    a.family = cursor.at("family").text(64);
    a.layers = cursor.at("layers").integer(1, kMaximumField);
    a.hidden = cursor.at("hidden").integer(1, kMaximumField);
    a.heads = cursor.at("heads").integer(1, kMaximumField);
    a.kvHeads = cursor.at("kv_heads").integer(1, kMaximumField);
    a.headDim = cursor.at("head_dim").integer(1, kMaximumField);
    a.intermediate = cursor.at("intermediate").integer(1, kMaximumField);
    a.vocabulary = cursor.at("vocabulary").integer(1, kMaximumField);
    a.positions = cursor.at("positions").integer(1, kMaximumField);
    const JsonCursor norm = cursor.at("norm");
    norm.expectOnly({"kind", "epsilon"});
    a.norm = norm.at("kind").choice<NormKind>({{"layer_norm", NormKind::LayerNorm}, {"rms_norm", NormKind::RmsNorm}});
    a.normEpsilon = norm.at("epsilon").number(0, 1);
    a.activation = cursor.at("activation")
                       .choice<Activation>({{"gelu_tanh", Activation::GeluTanh},
                                            {"gelu", Activation::Gelu},
                                            {"silu_gated", Activation::SiluGated}});
    a.attention =
        cursor.at("attention")
            .choice<AttentionLayout>({{"fused", AttentionLayout::Fused}, {"separate", AttentionLayout::Separate}});
    if (const auto rope = cursor.find("rope")) {
        rope->expectOnly({"theta", "scaling_kind", "scaling"});
        a.rope = Rope{rope->at("theta").number(1e-6, 1e12), rope->at("scaling_kind").text(64), {}};
        if (const auto scaling = rope->find("scaling"))
            a.rope->scaling = scaling->raw().dump();
    }
    const JsonCursor biases = cursor.at("biases");
    biases.expectOnly({"attention", "attention_output", "mlp"});
    a.attentionBias = biases.at("attention").boolean();
    a.attentionOutputBias = biases.at("attention_output").boolean();
    a.mlpBias = biases.at("mlp").boolean();
    if (const auto window = cursor.find("sliding_window")) {
        window->expectOnly({"keys", "layers"});
        a.window = SlidingWindow{window->at("keys").integer(1, kMaximumField), {}};
        const JsonCursor layers = window->at("layers");
        const std::size_t count = layers.arraySize(1 << 14);
        for (std::size_t i = 0; i < count && !cursor.failed(); ++i)
            a.window->layers.push_back(layers.element(i).integer(0, kMaximumField));
    }
    a.qkNorm = cursor.at("qk_norm").boolean();
    a.tied = cursor.at("tied").boolean();
    if (!cursor.failed()) {
        if (const auto wrong = checkArchitecture(a))
            cursor.fail(*wrong);
    }
    return a;
}

std::optional<std::string> checkArchitecture(const Architecture& a) {
    // The bounds keep every product of a layer's sizes inside 63 bits; lowerArchitecture() checks the sums.
    const std::vector<std::pair<const char*, std::pair<std::int64_t, std::int64_t>>> bounds{
        {"layers", {a.layers, 1 << 14}},         {"hidden", {a.hidden, 1 << 20}},
        {"heads", {a.heads, 1 << 16}},           {"kv_heads", {a.kvHeads, 1 << 16}},
        {"head_dim", {a.headDim, 1 << 16}},      {"intermediate", {a.intermediate, 1 << 22}},
        {"vocabulary", {a.vocabulary, 1 << 26}}, {"positions", {a.positions, 1 << 24}}};
    for (const auto& [name, value] : bounds) {
        if (value.first < 1 || value.first > value.second)
            return fmt::format("{} {} is outside 1..{}", name, value.first, value.second);
    }
    if (a.heads % a.kvHeads != 0)
        return fmt::format("kv_heads {} does not divide heads {}", a.kvHeads, a.heads);
    if (a.attention == AttentionLayout::Fused && a.heads * a.headDim != a.hidden)
        return fmt::format("heads {} does not divide hidden {} into heads of {}", a.heads, a.hidden, a.headDim);
    if (a.rope && a.headDim % 2 != 0)
        return fmt::format("head_dim {} must be even for rotary positions", a.headDim);
    if (a.window) {
        const std::vector<std::int64_t>& layers = a.window->layers;
        const bool ascending = std::adjacent_find(layers.begin(), layers.end(), std::greater_equal<>()) == layers.end();
        if (a.window->keys < 1 || layers.empty() || !ascending || layers.front() < 0 || layers.back() >= a.layers)
            return fmt::format("sliding_window must see at least one key, in ascending layers below {}", a.layers);
    }
    return std::nullopt;
}

} // namespace shardscope::contract
