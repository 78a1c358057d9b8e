// SPDX-License-Identifier: GPL-3.0-or-later
#include "planner/readers/ConfigFamilies.h"

#include <fmt/format.h>

#include <array>

namespace shardscope::planner {

using contract::JsonCursor;

namespace {

struct Family {
    std::string_view name;
    Network (*read)(const Fields&);
    std::string_view attentionDropout = "attention_dropout";
    double usualDropout = 0; ///< when it is left out
};
constexpr std::array kFamilies{
    Family{"gpt2", readGpt2, "attn_pdrop", 0.1},
    Family{"llama", readLlamaLike},
    Family{"mistral", readLlamaLike},
    Family{"mixtral", readMixtral},
    Family{"qwen2", readLlamaLike},
    Family{"qwen2_moe", readQwenMoe},
    Family{"qwen3", readLlamaLike},
    Family{"qwen3_moe", readQwenMoe},
    Family{"gemma", readGemma},
    Family{"gemma2", readGemma},
    Family{"gemma3_text", readGemma},
    Family{"phi", readPhi},
    Family{"phi3", readPhi3},
    Family{"opt", readOpt},
    Family{"bloom", readBloom},
    Family{"gpt_neox", readGptNeox},
    Family{"gptj", readGptj, "attn_pdrop"},
    Family{"falcon", readFalcon},
    Family{"bert", readBert, "attention_probs_dropout_prob", 0.1},
    Family{"roberta", readBert, "attention_probs_dropout_prob", 0.1},
    Family{"distilbert", readDistilbert, "attention_dropout", 0.1},
    Family{"t5", readT5, "dropout_rate", 0.1},
    Family{"vit", readVit, "attention_probs_dropout_prob"},
    Family{"deepseek_v2", readDeepseek},
    Family{"deepseek_v3", readDeepseek},
};

const Family* findFamily(std::string_view name) {
    for (const Family& family : kFamilies) {
        if (family.name == name)
            return &family;
    }
    return nullptr;
}

bool isQuantized(const JsonCursor& config) {
    const auto quantized = config.find("quantization_config");
    if (quantized)
        quantized->fail("says that the weights are quantised; this version plans unquantised training, remove the "
                        "entry to plan that");
    return quantized.has_value();
}

/// The family of the text part: its own, or the one that the library assumes for the whole.
std::string textFamily(const JsonCursor& text, const std::string& outer) {
    if (const auto own = text.find("model_type"))
        return own->text(128);
    if (outer == "gemma3")
        return "gemma3_text";
    text.fail("has no model_type; it must name a family: " + supportedFamilies());
    return {};
}

Network readNamed(const JsonCursor& config, const JsonCursor& type, const std::string& family,
                  std::vector<std::string>& warnings) {
    const Family* known = findFamily(family);
    if (!known) {
        type.fail(fmt::format("is \"{}\"; this version reads {}", family, supportedFamilies()));
        return {};
    }
    const Fields fields(config, family, warnings);
    Network network = known->read(fields);
    network.family = family;
    network.attentionDropout = !fields.isNull(known->attentionDropout) &&
                               fields.number(known->attentionDropout, known->usualDropout, 0, 1) > 0;
    return network;
}

} // namespace

std::string supportedFamilies() {
    std::string list;
    for (const Family& family : kFamilies)
        list += fmt::format("{}{}", list.empty() ? "" : ", ", family.name);
    return list;
}

Network readFamily(const JsonCursor& config, std::vector<std::string>& warnings) {
    if (!config.isObject()) {
        config.fail("must be an object, as a Hugging Face config.json is");
        return {};
    }
    const auto type = config.find("model_type");
    if (const auto format = config.find("format"); format && !type) {
        format->fail(
            fmt::format("is \"{}\"; a config.json of Hugging Face has a model_type instead", format->text(64)));
        return {};
    }
    if (!type) {
        config.fail("has no model_type; it must name a family: " + supportedFamilies());
        return {};
    }
    const std::string family = type->text(128);
    if (config.failed() || isQuantized(config))
        return {};
    const auto nested = config.find("text_config");
    // A family of ours stands for itself, whatever a text_config beside its fields may say.
    if (!nested || findFamily(family))
        return readNamed(config, *type, family, warnings);
    const std::string inner = nested->isObject() ? textFamily(*nested, family) : std::string();
    if (!nested->isObject())
        nested->fail("must be an object");
    if (config.failed() || isQuantized(*nested))
        return {};
    warnings.push_back(fmt::format("only the text part of {} is planned: text_config, of family {}", family, inner));
    const auto innerType = nested->find("model_type");
    return readNamed(*nested, innerType ? *innerType : *type, inner, warnings);
}

} // namespace shardscope::planner
