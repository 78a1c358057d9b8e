// SPDX-License-Identifier: GPL-3.0-or-later
#include "planner/readers/WeightGraph.h"

#include "planner/graph/NetworkBuilder.h"
#include "planner/graph/SplitAxes.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <set>
#include <tuple>
#include <unordered_map>

namespace shardscope::planner {

using contract::badInput;
using contract::Result;
using contract::TensorSpec;

namespace {

constexpr std::int64_t kDefaultSequence = 4096;
constexpr std::int64_t kMaximumSequence = 1 << 24;

template<std::size_t N> bool containsAny(std::string_view text, const std::array<std::string_view, N>& words) {
    return std::any_of(words.begin(), words.end(),
                       [&](std::string_view word) { return text.find(word) != std::string_view::npos; });
}

std::string_view lastPart(std::string_view name) {
    const auto dot = name.rfind('.');
    return dot == std::string_view::npos ? name : name.substr(dot + 1);
}

bool isBuffer(const StoredTensor& tensor) {
    constexpr std::array<std::string_view, 8> kBufferNames{
        "inv_freq",     "position_ids", "token_type_ids",      "masked_bias",
        "running_mean", "running_var",  "num_batches_tracked", "e_score_correction_bias"};
    const std::string_view last = lastPart(tensor.name);
    if (isIntegerDtype(tensor.dtype) || std::find(kBufferNames.begin(), kBufferNames.end(), last) != kBufferNames.end())
        return true;
    // The causal mask of GPT-2, GPT-J and GPT-NeoX: "attn.bias" or "attention.bias" of shape (1, 1, n, n).
    return last == "bias" && tensor.shape.size() == 4 && tensor.shape[0] == 1 && tensor.shape[1] == 1;
}

bool isEmbeddingName(std::string_view module) {
    constexpr std::array<std::string_view, 6> kWords{
        "embed", "wte", "wpe", "shared", "relative_attention_bias", "word_embeddings"};
    // "shared_experts" are matrices, "patch_embeddings.projection" is one as well.
    return containsAny(module, kWords) && module.find("expert") == std::string_view::npos &&
           module.find("projection") == std::string_view::npos && module.find("norm") == std::string_view::npos;
}

/// Under which names the library stores a tied weight again.
bool isCopyName(std::string_view name) {
    constexpr std::array<std::string_view, 6> kNames{"lm_head.weight",
                                                     "embed_out.weight",
                                                     "decoder.weight",
                                                     "vocab_projector.weight",
                                                     "encoder.embed_tokens.weight",
                                                     "decoder.embed_tokens.weight"};
    return std::any_of(kNames.begin(), kNames.end(), [&](std::string_view known) { return name.ends_with(known); });
}

} // namespace

std::string operatorTensorName(const std::string& stored) {
    std::string name = stored;
    for (const std::string_view prefix : {"transformer.", "model."}) {
        if (name.starts_with(prefix)) {
            name.erase(0, prefix.size());
            break;
        }
    }
    if (name.ends_with(".gamma"))
        name.replace(name.size() - 5, 5, "weight");
    else if (name.ends_with(".beta"))
        name.replace(name.size() - 4, 4, "bias");
    return name;
}

std::vector<StoredKind> classifyTensors(const WeightFiles& weights) {
    std::vector<StoredKind> kinds(weights.tensors.size(), StoredKind::Parameter);
    std::vector<std::size_t> embeddings;
    for (std::size_t i = 0; i < kinds.size(); ++i) {
        const StoredTensor& tensor = weights.tensors[i];
        if (isBuffer(tensor))
            kinds[i] = StoredKind::Buffer;
        else if (tensor.shape.size() == 2 && isEmbeddingName(tensor.name) && !isCopyName(tensor.name))
            embeddings.push_back(i);
    }
    for (std::size_t i = 0; i < kinds.size(); ++i) {
        if (kinds[i] != StoredKind::Parameter || !isCopyName(weights.tensors[i].name))
            continue;
        // Where only "decoder.embed_tokens" is stored it is no copy but the embedding itself.
        const bool isCopy = std::any_of(embeddings.begin(), embeddings.end(), [&](std::size_t owner) {
            return holdSameBytes(weights, weights.tensors[owner], weights.tensors[i]);
        });
        if (isCopy)
            kinds[i] = StoredKind::Copy;
        else if (weights.tensors[i].name.find("embed_tokens") != std::string::npos)
            embeddings.push_back(i);
    }
    return kinds;
}

StoredWeights summarize(const WeightFiles& weights, const std::vector<StoredKind>& kinds) {
    StoredWeights stored;
    stored.source = weights.source;
    stored.files = static_cast<std::int64_t>(weights.files.size());
    for (std::size_t i = 0; i < kinds.size(); ++i) {
        const StoredTensor& tensor = weights.tensors[i];
        stored.elements += tensor.elements;
        stored.bytes += tensor.end - tensor.begin;
        stored.elementsByDtype[tensor.dtype] += tensor.elements;
        if (kinds[i] == StoredKind::Buffer)
            stored.bufferElements += tensor.elements;
        if (kinds[i] == StoredKind::Copy)
            stored.copiedElements += tensor.elements;
    }
    return stored;
}

namespace {

/// A module that owns tensors, and where it stands in the network as far as its name tells.
struct Module {
    std::string name;
    std::string blockPrefix; ///< "layers", "h"; empty outside blocks
    std::int64_t block = -1;
    std::vector<const StoredTensor*> tensors;
};

/// "layers.3.mlp.up_proj" is in block 3 of "layers".
void findBlock(Module& module) {
    const std::string block = blockOf(module.name);
    if (block.empty())
        return;
    const auto dot = block.rfind('.');
    module.blockPrefix = block.substr(0, dot);
    module.block = std::stoll(block.substr(dot + 1));
}

/// Where modules of a block stand, by what their names usually mean.
int rankInside(std::string_view name) {
    constexpr std::array<std::string_view, 17> kOrder{
        "input_layernorm", "ln_1",   "layernorm_before", "q_",     "query",          "k_",   "key",  "v_", "value",
        "c_attn",          "o_proj", "out_proj",         "c_proj", "post_attention", "ln_2", "gate", "up"};
    for (std::size_t i = 0; i < kOrder.size(); ++i) {
        if (name.find(kOrder[i]) != std::string_view::npos)
            return static_cast<int>(i) + (name.find("mlp") != std::string_view::npos ? 100 : 0);
    }
    return name.find("mlp") != std::string_view::npos ? 150 : 50;
}

/// Splits a name where digits begin, so that "layers.10" comes after "layers.9".
std::vector<std::pair<std::string, std::int64_t>> naturalKey(const std::string& name) {
    std::vector<std::pair<std::string, std::int64_t>> key;
    std::size_t i = 0;
    while (i < name.size()) {
        std::string text;
        while (i < name.size() && (name[i] < '0' || name[i] > '9'))
            text += name[i++];
        std::int64_t number = -1;
        for (int digits = 0; i < name.size() && name[i] >= '0' && name[i] <= '9' && digits < 15; ++digits, ++i)
            number = std::max<std::int64_t>(number, 0) * 10 + (name[i] - '0');
        key.emplace_back(std::move(text), number);
    }
    return key;
}

/// Embeddings, then blocks (an encoder's before a decoder's) in the order of their numbers, then the rest.
void sortModules(std::vector<Module>& modules) {
    using Key = std::tuple<int, std::string, std::int64_t, int, std::vector<std::pair<std::string, std::int64_t>>>;
    std::vector<std::pair<Key, std::size_t>> order;
    for (std::size_t i = 0; i < modules.size(); ++i) {
        const Module& m = modules[i];
        const int stage = m.block >= 0                                                                ? 1
                          : isEmbeddingName(m.name) || m.name.find("embeddings") != std::string::npos ? 0
                                                                                                      : 2;
        const bool decoder = m.name.starts_with("decoder.");
        order.emplace_back(Key{stage, (decoder ? "1" : "0") + m.blockPrefix, m.block,
                               m.block >= 0 ? rankInside(m.name) : (m.tensors.front()->shape.size() == 1 ? 0 : 1),
                               naturalKey(m.name)},
                           i);
    }
    std::sort(order.begin(), order.end());
    std::vector<Module> sorted;
    for (const auto& [key, index] : order)
        sorted.push_back(std::move(modules[index]));
    modules = std::move(sorted);
}

const StoredTensor* tensorOf(const Module& module, std::string_view name) {
    for (const StoredTensor* tensor : module.tensors) {
        if (lastPart(operatorTensorName(tensor->name)) == name)
            return tensor;
    }
    return nullptr;
}

/// A matrix is stored (out, in), except by GPT-2, whose bias then has the length of the second axis.
TensorSpec specOf(const StoredTensor& tensor, const StoredTensor* bias) {
    TensorSpec spec{std::string(lastPart(operatorTensorName(tensor.name))), tensor.shape, 1, 1};
    if (tensor.shape.empty())
        return spec;
    const bool transposed = tensor.shape.size() == 2 && bias && bias->shape.size() == 1 &&
                            bias->shape[0] == tensor.shape[1] && bias->shape[0] != tensor.shape[0];
    spec.rows = transposed ? tensor.shape[1] : tensor.shape[0];
    spec.columns = spec.rows > 0 ? tensor.elements / spec.rows : 0;
    return spec;
}

void addModule(NetworkBuilder& builder, const Module& module, const std::string& blockName) {
    const std::string name = module.block >= 0 ? module.name.substr(blockName.size() + 1) : module.name;
    const StoredTensor* weight = tensorOf(module, "weight");
    const StoredTensor* bias = tensorOf(module, "bias");
    const std::size_t usual = (weight ? 1U : 0U) + (bias ? 1U : 0U);
    const bool plain = weight && module.tensors.size() == usual;
    std::vector<TensorSpec> specs;
    if (weight)
        specs.push_back(specOf(*weight, bias));
    for (const StoredTensor* tensor : module.tensors) {
        if (tensor != weight)
            specs.push_back(specOf(*tensor, nullptr));
    }
    if (plain && weight->shape.size() == 2 && isEmbeddingName(module.name))
        builder.embedding(name, specs[0].rows, specs[0].columns);
    else if (plain && weight->shape.size() >= 2)
        builder.linear(name, specs[0].rows, specs[0].columns, bias != nullptr);
    else if (plain && weight->shape.size() == 1)
        builder.norm(name, specs[0].rows, bias ? NetworkBuilder::Norm::LayerNorm : NetworkBuilder::Norm::RmsNorm);
    else
        builder.parameters(name, specs, specs.front().columns);
    if (builder.tooLarge())
        return;
    builder.last().tensors = std::move(specs);
    alignSplitAxes(builder.last());
}

std::vector<Module> groupModules(const WeightFiles& weights, const std::vector<StoredKind>& kinds) {
    std::vector<Module> modules;
    std::unordered_map<std::string, std::size_t> index;
    for (std::size_t i = 0; i < kinds.size(); ++i) {
        if (kinds[i] != StoredKind::Parameter)
            continue;
        const std::string full = operatorTensorName(weights.tensors[i].name);
        const auto dot = full.rfind('.');
        const std::string name = dot == std::string::npos ? full : full.substr(0, dot);
        const auto [entry, isNew] = index.emplace(name, modules.size());
        if (isNew) {
            modules.push_back({name, {}, -1, {}});
            findBlock(modules.back());
        }
        modules[entry->second].tensors.push_back(&weights.tensors[i]);
    }
    sortModules(modules);
    return modules;
}

/// Rows of learned positions bound the sequence.
std::int64_t learnedPositions(const std::vector<Module>& modules) {
    for (const Module& module : modules) {
        const StoredTensor* weight = tensorOf(module, "weight");
        const std::string_view last = lastPart(module.name);
        if (weight && weight->shape.size() == 2 && (last == "wpe" || last == "position_embeddings"))
            return weight->shape[0];
    }
    return 0;
}

Result<std::vector<contract::Operator>> lowerModules(const std::vector<Module>& modules, std::int64_t sequence,
                                                     const std::string& file) {
    NetworkBuilder builder(sequence);
    std::string openBlock;
    for (const Module& module : modules) {
        const std::string blockName = module.block < 0
                                          ? std::string()
                                          : module.name.substr(0, module.name.find('.', module.blockPrefix.size() + 1));
        if (blockName != openBlock) {
            blockName.empty() ? builder.leaveBlock() : builder.enterBlock(blockName);
            openBlock = blockName;
        }
        addModule(builder, module, blockName);
    }
    if (builder.tooLarge())
        return badInput(fmt::format("{}: its tensors make a network that is too large to plan", file));
    return builder.take();
}

} // namespace

Result<GraphPointer> readWeightGraph(const WeightFiles& weights, const std::string& name, std::int64_t sequence) {
    const auto owned = std::make_shared<const WeightFiles>(weights);
    const std::vector<StoredKind> kinds = classifyTensors(*owned);
    const auto modules = std::make_shared<const std::vector<Module>>(groupModules(*owned, kinds));
    if (modules->empty())
        return badInput(fmt::format("{}: holds no parameters", weights.source));
    auto graph = std::make_shared<Graph>();
    graph->maximumSequence = learnedPositions(*modules);
    const std::int64_t longest = graph->maximumSequence > 0 ? graph->maximumSequence : kMaximumSequence;
    if (sequence < 0 || sequence > longest)
        return badInput(fmt::format("{}: a sequence of {} tokens is outside 1..{}", weights.source, sequence, longest));
    graph->sequence = sequence == 0 ? std::min(longest, kDefaultSequence) : sequence;
    auto operators = lowerModules(*modules, graph->sequence, weights.source);
    if (!operators)
        return tl::unexpected(operators.error());
    graph->operators = std::move(*operators);
    graph->name = name;
    graph->title = name;
    graph->family = "safetensors";
    graph->source = weights.source;
    graph->weights = summarize(*owned, kinds);
    graph->warnings = weights.notes;
    graph->warnings.push_back("read from tensor names and shapes alone: attention itself is not in FLOPs and "
                              "activations; a config.json beside the file says more");
    if (std::any_of(modules->begin(), modules->end(),
                    [](const Module& module) { return module.name.find(".experts.") != std::string::npos; }))
        graph->warnings.push_back("experts are counted as if every token passed through each; how many are active is "
                                  "in the config.json");
    graph->lower = [owned, modules](std::int64_t other) { return lowerModules(*modules, other, owned->source); };
    return GraphPointer(std::move(graph));
}

} // namespace shardscope::planner
