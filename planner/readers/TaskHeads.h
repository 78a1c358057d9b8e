// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "planner/graph/NetworkBuilder.h"
#include "planner/readers/ConfigFields.h"

#include <cstdint>
#include <string>

namespace shardscope::planner {

enum class TaskHeadKind {
    None, ///< the bare network: "LlamaModel"
    Language,
    MaskedLanguage,
    PreTraining,
    NextSentence,
    SequenceClassification,
    TokenClassification,
    QuestionAnswering,
    MultipleChoice,
    ImageClassification,
    ConditionalGeneration,
    Encoder, ///< the encoder of an encoder-decoder alone
};

/// What stands on top of a network, from `architectures` of its configuration.
struct TaskHead {
    TaskHeadKind kind = TaskHeadKind::Language;
    std::int64_t labels = 2; ///< from id2label or num_labels
    std::string className;   ///< as in `architectures`; empty when there is none
};

/// `usual` when the configuration names no class. A class that none of `supported` is fails by name.
TaskHead readTaskHead(const Fields& fields, TaskHeadKind usual, const std::vector<TaskHeadKind>& supported);

/// Names and sizes of the heads of a decoder.
struct DecoderHead {
    TaskHead task;
    std::string language = "lm_head";
    std::string embedding = "embed_tokens"; ///< to whose storage the language head may be tied
    std::int64_t vocabulary = 0;
    std::int64_t width = 0;
    bool tied = false;
    bool bias = false;                     ///< of the language head
    std::string tokenClassifier = "score"; ///< "classifier" in older families
    std::int64_t questionOutputs = 2;
};
/// The heads that decoders have in the transformers library.
TaskHead readDecoderTask(const Fields& fields);
void addDecoderHead(NetworkBuilder& builder, const DecoderHead& head);

/// A language head over the embedding's storage or its own. With a bias and tied storage the bias is an operator of
/// its own, since a tied operator owns no tensor.
void addLanguageHead(NetworkBuilder& builder, const std::string& name, std::int64_t vocabulary, std::int64_t width,
                     bool bias, bool tied, const std::string& embedding);

} // namespace shardscope::planner
