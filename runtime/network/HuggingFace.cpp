// SPDX-License-Identifier: GPL-3.0-or-later
#include "runtime/network/HuggingFace.h"

#include <nlohmann/json.hpp>

#include <algorithm>

namespace shardscope::engine {

using contract::Architecture;
using contract::AttentionLayout;
using contract::OrderedJson;

std::string_view stateDictPrefix(const Architecture& architecture, const contract::Operator& op) {
    if (op.role == contract::OperatorRole::Head)
        return "";
    return architecture.attention == AttentionLayout::Fused ? "transformer." : "model.";
}

std::string stateDictName(const Architecture& architecture, const contract::Operator& op,
                          const contract::TensorSpec& tensor) {
    return std::string(stateDictPrefix(architecture, op)) + op.name + "." + tensor.name;
}

StateDictOrder::StateDictOrder(const Architecture& architecture, const contract::Operator& op,
                               const contract::TensorSpec& tensor)
    : m_transposed(architecture.attention == AttentionLayout::Fused && op.kind == contract::OperatorKind::Linear &&
                   op.role != contract::OperatorRole::Head && tensor.shape.size() == 2),
      m_rows(tensor.rows), m_columns(tensor.columns) {}

namespace {

OrderedJson gpt2Config(const Architecture& a) {
    OrderedJson config{{"architectures", {"GPT2LMHeadModel"}},
                       {"model_type", "gpt2"},
                       {"activation_function", "gelu_new"},
                       {"vocab_size", a.vocabulary},
                       {"n_positions", a.positions},
                       {"n_embd", a.hidden},
                       {"n_layer", a.layers},
                       {"n_head", a.heads},
                       {"n_inner", a.intermediate},
                       {"layer_norm_epsilon", a.normEpsilon},
                       {"tie_word_embeddings", a.tied},
                       {"torch_dtype", "float32"}};
    // GPT-2's own end of text is token 50256, which a smaller vocabulary does not have.
    if (constexpr std::int64_t kEndOfText = 50256; a.vocabulary <= kEndOfText)
        config["bos_token_id"] = config["eos_token_id"] = nullptr;
    return config;
}

/// Mistral sees 4,096 keys unless it is told otherwise; Qwen sees all of them, or names the layers that do not.
void addWindow(const Architecture& a, OrderedJson& config) {
    if (a.family == "mistral")
        config["sliding_window"] = a.window ? OrderedJson(a.window->keys) : OrderedJson(nullptr);
    if (!a.window || !a.family.starts_with("qwen"))
        return;
    config["use_sliding_window"] = true;
    config["sliding_window"] = a.window->keys;
    for (std::int64_t layer = 0; layer < a.layers; ++layer) {
        const auto& layers = a.window->layers;
        const bool windowed = std::find(layers.begin(), layers.end(), layer) != layers.end();
        config["layer_types"].push_back(windowed ? "sliding_attention" : "full_attention");
    }
}

OrderedJson llamaConfig(const Architecture& a) {
    const auto className = [&]() -> const char* {
        if (a.family == "mistral")
            return "MistralForCausalLM";
        if (a.family == "qwen2")
            return "Qwen2ForCausalLM";
        if (a.family == "qwen3")
            return "Qwen3ForCausalLM";
        return "LlamaForCausalLM";
    };
    OrderedJson config{{"architectures", {className()}},
                       {"model_type", a.family},
                       {"hidden_act", "silu"},
                       {"vocab_size", a.vocabulary},
                       {"max_position_embeddings", a.positions},
                       {"hidden_size", a.hidden},
                       {"intermediate_size", a.intermediate},
                       {"num_hidden_layers", a.layers},
                       {"num_attention_heads", a.heads},
                       {"num_key_value_heads", a.kvHeads},
                       {"head_dim", a.headDim},
                       {"rms_norm_eps", a.normEpsilon},
                       {"rope_theta", a.rope ? a.rope->theta : 10000.0},
                       {"tie_word_embeddings", a.tied},
                       {"torch_dtype", "float32"}};
    // Qwen 2 has biases of query, key and value without saying so, and no other.
    if (a.family != "qwen2")
        config["attention_bias"] = a.attentionBias;
    if (a.family == "llama")
        config["mlp_bias"] = a.mlpBias;
    if (a.rope && !a.rope->scaling.empty())
        config["rope_scaling"] = OrderedJson::parse(a.rope->scaling);
    addWindow(a, config);
    return config;
}

} // namespace

OrderedJson huggingFaceConfig(const Architecture& architecture) {
    return architecture.attention == AttentionLayout::Fused ? gpt2Config(architecture) : llamaConfig(architecture);
}

} // namespace shardscope::engine
