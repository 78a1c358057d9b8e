// SPDX-License-Identifier: GPL-3.0-or-later
#include "planner/readers/TaskHeads.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>
#include <optional>

namespace shardscope::planner {

using contract::JsonCursor;
using contract::OperatorRole;

namespace {

constexpr std::int64_t kMaximumLabels = 1 << 20;

struct Suffix {
    std::string_view text;
    TaskHeadKind kind;
};
// Longer suffixes first: "ForPreTraining" is no "Model".
constexpr std::array kSuffixes{
    Suffix{"ForCausalLM", TaskHeadKind::Language},
    Suffix{"LMHeadModel", TaskHeadKind::Language},
    Suffix{"ForMaskedLM", TaskHeadKind::MaskedLanguage},
    Suffix{"ForPreTraining", TaskHeadKind::PreTraining},
    Suffix{"ForNextSentencePrediction", TaskHeadKind::NextSentence},
    Suffix{"ForSequenceClassification", TaskHeadKind::SequenceClassification},
    Suffix{"ForTokenClassification", TaskHeadKind::TokenClassification},
    Suffix{"ForQuestionAnswering", TaskHeadKind::QuestionAnswering},
    Suffix{"ForMultipleChoice", TaskHeadKind::MultipleChoice},
    Suffix{"ForImageClassification", TaskHeadKind::ImageClassification},
    Suffix{"ForConditionalGeneration", TaskHeadKind::ConditionalGeneration},
    Suffix{"EncoderModel", TaskHeadKind::Encoder},
    Suffix{"DoubleHeadsModel", TaskHeadKind::MultipleChoice},
    Suffix{"Model", TaskHeadKind::None},
};

std::optional<TaskHeadKind> kindOf(const std::string& className) {
    for (const Suffix& suffix : kSuffixes) {
        if (className.ends_with(suffix.text))
            return suffix.kind;
    }
    return std::nullopt;
}

std::string suffixes(const std::vector<TaskHeadKind>& kinds) {
    std::string list;
    for (const Suffix& suffix : kSuffixes) {
        if (std::find(kinds.begin(), kinds.end(), suffix.kind) != kinds.end())
            list += fmt::format("{}...{}", list.empty() ? "" : ", ", suffix.text);
    }
    return list;
}

/// The library counts id2label and falls back to num_labels, then to two.
std::int64_t readLabels(const Fields& fields) {
    if (const auto names = fields.config().find("id2label")) {
        if (!names->isObject() || names->raw().empty() ||
            names->raw().size() > static_cast<std::size_t>(kMaximumLabels)) {
            names->fail("must be an object with a name for each label");
            return 2;
        }
        return static_cast<std::int64_t>(names->raw().size());
    }
    return fields.optionalSize("num_labels", kMaximumLabels).value_or(2);
}

} // namespace

TaskHead readTaskHead(const Fields& fields, TaskHeadKind usual, const std::vector<TaskHeadKind>& supported) {
    TaskHead head;
    head.kind = usual;
    head.labels = readLabels(fields);
    const auto architectures = fields.config().find("architectures");
    if (!architectures)
        return head;
    const std::size_t count = architectures->arraySize(64);
    for (std::size_t i = 0; i < count && !fields.failed(); ++i) {
        const JsonCursor element = architectures->element(i);
        const std::string name = element.text(256);
        if (fields.failed() || i > 0)
            continue; // the library builds the first
        const auto kind = kindOf(name);
        if (!kind || std::find(supported.begin(), supported.end(), *kind) == supported.end())
            element.fail(
                fmt::format("is \"{}\"; of {} this version reads {}", name, fields.family(), suffixes(supported)));
        else
            head.kind = *kind;
        head.className = name;
    }
    return head;
}

TaskHead readDecoderTask(const Fields& fields) {
    return readTaskHead(fields, TaskHeadKind::Language,
                        {TaskHeadKind::Language, TaskHeadKind::None, TaskHeadKind::SequenceClassification,
                         TaskHeadKind::TokenClassification, TaskHeadKind::QuestionAnswering});
}

void addLanguageHead(NetworkBuilder& builder, const std::string& name, std::int64_t vocabulary, std::int64_t width,
                     bool bias, bool tied, const std::string& embedding) {
    if (!tied) {
        builder.linear(name, vocabulary, width, bias).role = OperatorRole::Head;
        return;
    }
    if (bias)
        builder.parameters(name, {{"bias", {vocabulary}, vocabulary, 1}}, vocabulary).liveActivationElements = 0;
    builder.tied(bias ? name + ".weight" : name, vocabulary, width, embedding).role = OperatorRole::Head;
}

void addDecoderHead(NetworkBuilder& builder, const DecoderHead& head) {
    switch (head.task.kind) {
    case TaskHeadKind::Language:
        addLanguageHead(builder, head.language, head.vocabulary, head.width, head.bias, head.tied, head.embedding);
        break;
    case TaskHeadKind::SequenceClassification:
        builder.linear("score", head.task.labels, head.width, false);
        break;
    case TaskHeadKind::TokenClassification:
        builder.linear(head.tokenClassifier, head.task.labels, head.width, true);
        break;
    case TaskHeadKind::QuestionAnswering:
        builder.linear("qa_outputs", head.questionOutputs, head.width, true);
        break;
    default:
        break;
    }
}

} // namespace shardscope::planner
