// SPDX-License-Identifier: GPL-3.0-or-later
// Encoders: BERT, RoBERTa, DistilBERT, vision transformers.
#include "planner/readers/ConfigFamilies.h"
#include "planner/readers/TaskHeads.h"

#include <fmt/format.h>

namespace shardscope::planner {

using contract::OperatorRole;
using Input = NetworkBuilder::Input;
using Norm = NetworkBuilder::Norm;

namespace {

/// "bert." for BertForMaskedLM, nothing for BertModel.
std::string prefixOf(const TaskHead& task, std::string_view name) {
    return task.kind == TaskHeadKind::None ? std::string() : fmt::format("{}.", name);
}

NetworkBuilder::Attention plainAttention(std::int64_t hidden, std::int64_t heads) {
    NetworkBuilder::Attention attention;
    attention.heads = attention.kvHeads = heads;
    attention.headDim = hidden / std::max<std::int64_t>(heads, 1);
    return attention;
}

struct Bert {
    bool isRoberta = false;
    std::int64_t vocabulary = 0, hidden = 0, layers = 0, heads = 0, intermediate = 0, positions = 0, types = 0;
    bool tied = true;
    TaskHead task;
};

void addBertBlock(NetworkBuilder& builder, const Bert& b) {
    const NetworkBuilder::ProjectionNames names{"attention.self.query", "attention.self.key", "attention.self.value",
                                                "attention.output.dense"};
    builder.attentionProjections(names, b.hidden, plainAttention(b.hidden, b.heads), true, true);
    builder.norm("attention.output.LayerNorm", b.hidden, Norm::LayerNorm);
    builder.mlp("intermediate.dense", "output.dense", b.hidden, b.intermediate, true);
    builder.norm("output.LayerNorm", b.hidden, Norm::LayerNorm);
}

/// Logits over the vocabulary: a dense layer with its norm, then the tied decoder, whose bias the head itself owns.
void addMaskedLanguageHead(NetworkBuilder& builder, const Bert& b, const std::string& embedding) {
    const std::string head = b.isRoberta ? "lm_head" : "cls.predictions";
    builder.linear(b.isRoberta ? "lm_head.dense" : "cls.predictions.transform.dense", b.hidden, b.hidden, true);
    builder.keepOutput(b.hidden);
    builder.norm(b.isRoberta ? "lm_head.layer_norm" : "cls.predictions.transform.LayerNorm", b.hidden, Norm::LayerNorm);
    builder.parameters(head, {{"bias", {b.vocabulary}, b.vocabulary, 1}}, b.vocabulary).liveActivationElements = 0;
    addLanguageHead(builder, head + ".decoder", b.vocabulary, b.hidden, false, b.tied, embedding);
}

bool hasPooler(const Bert& b) {
    switch (b.task.kind) {
    case TaskHeadKind::None:
    case TaskHeadKind::PreTraining:
    case TaskHeadKind::NextSentence:
    case TaskHeadKind::MultipleChoice:
        return true;
    case TaskHeadKind::SequenceClassification:
        return !b.isRoberta; // whose head has a dense layer of its own
    default:
        return false;
    }
}

void addBertHead(NetworkBuilder& builder, const Bert& b, const std::string& prefix) {
    const std::int64_t tokens = builder.tokens();
    builder.setTokens(1); // what follows reads the first token
    if (hasPooler(b))
        builder.linear(prefix + "pooler.dense", b.hidden, b.hidden, true);
    if (b.task.kind == TaskHeadKind::PreTraining || b.task.kind == TaskHeadKind::NextSentence)
        builder.linear("cls.seq_relationship", 2, b.hidden, true);
    if (b.task.kind == TaskHeadKind::SequenceClassification && b.isRoberta) {
        builder.linear("classifier.dense", b.hidden, b.hidden, true);
        builder.linear("classifier.out_proj", b.task.labels, b.hidden, true);
    } else if (b.task.kind == TaskHeadKind::SequenceClassification || b.task.kind == TaskHeadKind::MultipleChoice) {
        const bool choice = b.task.kind == TaskHeadKind::MultipleChoice;
        builder.linear("classifier", choice ? 1 : b.task.labels, b.hidden, true);
    }
    builder.setTokens(tokens);
    if (b.task.kind == TaskHeadKind::TokenClassification)
        builder.linear("classifier", b.task.labels, b.hidden, true);
    if (b.task.kind == TaskHeadKind::QuestionAnswering)
        builder.linear("qa_outputs", b.task.labels, b.hidden, true);
    if (b.task.kind == TaskHeadKind::MaskedLanguage || b.task.kind == TaskHeadKind::Language ||
        b.task.kind == TaskHeadKind::PreTraining)
        addMaskedLanguageHead(builder, b, prefix + "embeddings.word_embeddings");
}

} // namespace

Network readBert(const Fields& fields) {
    Bert b;
    b.isRoberta = fields.family() == "roberta";
    b.vocabulary = fields.size("vocab_size", kMaximumVocabulary, b.isRoberta ? 50265 : 30522);
    b.hidden = fields.size("hidden_size", kMaximumWidth, 768);
    b.layers = fields.size("num_hidden_layers", kMaximumLayers, 12);
    b.heads = fields.size("num_attention_heads", kMaximumHeads, 12);
    b.intermediate = fields.size("intermediate_size", kMaximumIntermediate, 3072);
    b.positions = fields.size("max_position_embeddings", kMaximumPositions, 512);
    b.types = fields.size("type_vocab_size", kMaximumVocabulary, 2);
    b.tied = fields.flag("tie_word_embeddings", true);
    std::vector<TaskHeadKind> heads{TaskHeadKind::None,
                                    TaskHeadKind::Language,
                                    TaskHeadKind::MaskedLanguage,
                                    TaskHeadKind::PreTraining,
                                    TaskHeadKind::NextSentence,
                                    TaskHeadKind::SequenceClassification,
                                    TaskHeadKind::MultipleChoice,
                                    TaskHeadKind::TokenClassification,
                                    TaskHeadKind::QuestionAnswering};
    if (b.isRoberta)
        std::erase_if(heads, [](TaskHeadKind kind) {
            return kind == TaskHeadKind::PreTraining || kind == TaskHeadKind::NextSentence;
        });
    b.task = readTaskHead(fields, TaskHeadKind::None, heads);
    if (const std::string kind = fields.text("position_embedding_type", "absolute"); kind != "absolute")
        fields.fail("position_embedding_type", fmt::format("is \"{}\"; this version reads absolute", kind));
    Network network;
    // RoBERTa counts positions from after the padding index.
    const std::int64_t offset = b.isRoberta ? fields.count("pad_token_id", kMaximumPositions, 1) + 1 : 0;
    network.context = b.positions - offset;
    network.contextField = "max_position_embeddings";
    if (fields.failed())
        return network;
    fields.checkHeads("num_attention_heads", b.heads, "hidden_size", b.hidden);
    if (network.context < 1)
        fields.fail("max_position_embeddings", fmt::format("{} leaves no position after the padding", b.positions));
    network.build = [b](NetworkBuilder& builder) {
        const std::string prefix = prefixOf(b.task, b.isRoberta ? "roberta" : "bert");
        builder.embedding(prefix + "embeddings.word_embeddings", b.vocabulary, b.hidden).role =
            OperatorRole::TokenEmbedding;
        builder.embedding(prefix + "embeddings.position_embeddings", b.positions, b.hidden).role =
            OperatorRole::PositionEmbedding;
        builder.embedding(prefix + "embeddings.token_type_embeddings", b.types, b.hidden);
        builder.norm(prefix + "embeddings.LayerNorm", b.hidden, Norm::LayerNorm);
        for (std::int64_t layer = 0; layer < b.layers && !builder.tooLarge(); ++layer) {
            builder.enterBlock(fmt::format("{}encoder.layer.{}", prefix, layer));
            addBertBlock(builder, b);
        }
        builder.last().role = OperatorRole::FinalNorm;
        builder.leaveBlock();
        addBertHead(builder, b, prefix);
    };
    return network;
}

Network readDistilbert(const Fields& fields) {
    const std::int64_t vocabulary = fields.size("vocab_size", kMaximumVocabulary, 30522);
    const std::int64_t positions = fields.size("max_position_embeddings", kMaximumPositions, 512);
    const std::string_view widthKey = fields.either("dim", "hidden_size");
    const std::string_view headsKey = fields.either("n_heads", "num_attention_heads");
    const std::int64_t hidden = fields.size(widthKey, kMaximumWidth, 768);
    const std::int64_t layers = fields.size(fields.either("n_layers", "num_hidden_layers"), kMaximumLayers, 6);
    const std::int64_t heads = fields.size(headsKey, kMaximumHeads, 12);
    const std::int64_t inner = fields.size("hidden_dim", kMaximumIntermediate, 3072);
    const bool tied = fields.flag("tie_word_embeddings", true);
    const TaskHead task = readTaskHead(fields, TaskHeadKind::None,
                                       {TaskHeadKind::None, TaskHeadKind::MaskedLanguage,
                                        TaskHeadKind::SequenceClassification, TaskHeadKind::MultipleChoice,
                                        TaskHeadKind::TokenClassification, TaskHeadKind::QuestionAnswering});
    Network network;
    network.context = positions;
    network.contextField = "max_position_embeddings";
    if (fields.failed())
        return network;
    fields.checkHeads(headsKey, heads, widthKey, hidden);
    network.build = [=](NetworkBuilder& builder) {
        const std::string prefix = prefixOf(task, "distilbert");
        builder.embedding(prefix + "embeddings.word_embeddings", vocabulary, hidden).role =
            OperatorRole::TokenEmbedding;
        builder.embedding(prefix + "embeddings.position_embeddings", positions, hidden).role =
            OperatorRole::PositionEmbedding;
        builder.norm(prefix + "embeddings.LayerNorm", hidden, Norm::LayerNorm);
        for (std::int64_t layer = 0; layer < layers && !builder.tooLarge(); ++layer) {
            // Of a bare DistilBertModel the first word is that of the base network: it is left out everywhere.
            builder.enterBlock(fmt::format("{}layer.{}", prefix.empty() ? "" : prefix + "transformer.", layer));
            builder.attentionProjections({"attention.q_lin", "attention.k_lin", "attention.v_lin", "attention.out_lin"},
                                         hidden, plainAttention(hidden, heads), true, true);
            builder.norm("sa_layer_norm", hidden, Norm::LayerNorm);
            builder.mlp("ffn.lin1", "ffn.lin2", hidden, inner, true);
            builder.norm("output_layer_norm", hidden, Norm::LayerNorm);
        }
        builder.last().role = OperatorRole::FinalNorm;
        builder.leaveBlock();
        switch (task.kind) {
        case TaskHeadKind::MaskedLanguage:
            builder.linear("vocab_transform", hidden, hidden, true);
            builder.keepOutput(hidden);
            builder.norm("vocab_layer_norm", hidden, Norm::LayerNorm);
            addLanguageHead(builder, "vocab_projector", vocabulary, hidden, true, tied,
                            prefix + "embeddings.word_embeddings");
            break;
        case TaskHeadKind::SequenceClassification:
        case TaskHeadKind::MultipleChoice:
            builder.setTokens(1);
            builder.linear("pre_classifier", hidden, hidden, true);
            builder.linear("classifier", task.kind == TaskHeadKind::MultipleChoice ? 1 : task.labels, hidden, true);
            break;
        case TaskHeadKind::TokenClassification:
            builder.linear("classifier", task.labels, hidden, true);
            break;
        case TaskHeadKind::QuestionAnswering:
            builder.linear("qa_outputs", task.labels, hidden, true);
            break;
        default:
            break;
        }
    };
    return network;
}

namespace {

/// A side or [height, width].
std::pair<std::int64_t, std::int64_t> readExtent(const Fields& fields, std::string_view key, std::int64_t fallback) {
    constexpr std::int64_t kMaximumSide = 1 << 16;
    if (!fields.has(key) || !fields.config().at(key).isArray()) {
        const std::int64_t side = fields.size(key, kMaximumSide, fallback);
        return {side, side};
    }
    const contract::JsonCursor list = fields.config().at(key);
    if (list.arraySize(2) != 2) {
        list.fail("must be a side or [height, width]");
        return {fallback, fallback};
    }
    return {list.element(0).integer(1, kMaximumSide), list.element(1).integer(1, kMaximumSide)};
}

} // namespace

Network readVit(const Fields& fields) {
    const std::int64_t hidden = fields.size("hidden_size", kMaximumWidth, 768);
    const std::int64_t layers = fields.size("num_hidden_layers", kMaximumLayers, 12);
    const std::int64_t heads = fields.size("num_attention_heads", kMaximumHeads, 12);
    const std::int64_t inner = fields.size("intermediate_size", kMaximumIntermediate, 3072);
    const std::int64_t channels = fields.size("num_channels", 1 << 16, 3);
    const auto image = readExtent(fields, "image_size", 224);
    const auto patch = readExtent(fields, "patch_size", 16);
    const bool bias = fields.flag("qkv_bias", true);
    const std::int64_t pooled = fields.optionalSize("pooler_output_size", kMaximumWidth).value_or(hidden);
    const TaskHead task =
        readTaskHead(fields, TaskHeadKind::None, {TaskHeadKind::None, TaskHeadKind::ImageClassification});
    const std::int64_t patches = (image.first / patch.first) * (image.second / patch.second);
    Network network;
    network.context = patches + 1;
    network.fixedSequence = true;
    network.contextField = "image_size";
    if (fields.failed())
        return network;
    fields.checkHeads("num_attention_heads", heads, "hidden_size", hidden);
    if (patches < 1 || network.context > kMaximumPositions)
        fields.fail("image_size", fmt::format("gives {} patches", patches));
    network.build = [=](NetworkBuilder& builder) {
        const std::string prefix = prefixOf(task, "vit");
        const std::int64_t pixels = channels * patch.first * patch.second;
        builder.setTokens(patches);
        contract::Operator& projection =
            builder.linear(prefix + "embeddings.patch_embeddings.projection", hidden, pixels, true);
        projection.tensors.front().shape = {hidden, channels, patch.first, patch.second};
        builder.setTokens(patches + 1);
        builder.parameters(prefix + "embeddings",
                           {{"cls_token", {1, 1, hidden}, 1, hidden},
                            {"position_embeddings", {1, patches + 1, hidden}, patches + 1, hidden}},
                           hidden);
        for (std::int64_t layer = 0; layer < layers && !builder.tooLarge(); ++layer) {
            builder.enterBlock(fmt::format("{}encoder.layer.{}", prefix, layer));
            builder.norm("layernorm_before", hidden, Norm::LayerNorm);
            builder.attentionProjections({"attention.attention.query", "attention.attention.key",
                                          "attention.attention.value", "attention.output.dense"},
                                         hidden, plainAttention(hidden, heads), bias, true);
            builder.norm("layernorm_after", hidden, Norm::LayerNorm);
            builder.mlp("intermediate.dense", "output.dense", hidden, inner, true);
        }
        builder.leaveBlock();
        builder.norm(prefix + "layernorm", hidden, Norm::LayerNorm).role = OperatorRole::FinalNorm;
        builder.setTokens(1);
        if (task.kind == TaskHeadKind::ImageClassification)
            builder.linear("classifier", task.labels, hidden, true);
        else
            builder.linear("pooler.dense", pooled, hidden, true);
    };
    return network;
}

} // namespace shardscope::planner
