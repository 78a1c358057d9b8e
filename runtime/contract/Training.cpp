// SPDX-License-Identifier: GPL-3.0-or-later
#include "runtime/contract/Training.h"

#include "runtime/contract/Preset.h"

#include <nlohmann/json.hpp>

namespace shardscope::contract {

namespace {
constexpr std::int64_t kMaximumCount = std::int64_t{1} << 40;
}

std::string_view recomputePolicyName(RecomputePolicy policy) {
    switch (policy) {
    case RecomputePolicy::Off:
        return "off";
    case RecomputePolicy::On:
        return "on";
    case RecomputePolicy::Auto:
        return "auto";
    }
    return "auto";
}

OrderedJson toJson(const Optimizer& optimizer) {
    return {{"name", optimizer.name},
            {"learning_rate", optimizer.learningRate},
            {"betas", optimizer.betas},
            {"epsilon", optimizer.epsilon},
            {"weight_decay", optimizer.weightDecay},
            {"clip_norm", optimizer.clipNorm},
            {"warmup_steps", optimizer.warmupSteps},
            {"schedule", optimizer.schedule},
            {"min_learning_rate", optimizer.minLearningRate}};
}

OrderedJson toJson(const Training& training) {
    OrderedJson json{{"sequence", training.sequence},
                     {"micro_batch", training.microBatch},
                     {"accumulate", training.accumulate},
                     {"global_batch", training.globalBatch},
                     {"precision", training.precision},
                     {"optimizer", toJson(training.optimizer)},
                     {"recompute", recomputePolicyName(training.recompute)},
                     {"loss_chunks", training.lossChunks}};
    if (training.attention != AttentionKernel::Fused) {
        json["attention"] = attentionKernelName(training.attention);
        json["attention_dropout"] = training.attentionDropout;
    }
    return json;
}

Training readTraining(const JsonCursor& cursor) {
    Training training;
    training.sequence = cursor.at("sequence").integer(1, kMaximumCount);
    training.microBatch = cursor.at("micro_batch").integer(1, kMaximumCount);
    training.accumulate = cursor.at("accumulate").integer(1, kMaximumCount);
    training.globalBatch = cursor.at("global_batch").integer(1, kMaximumCount);
    training.precision = cursor.at("precision").text();
    if (!cursor.failed() && !findPreset(training.precision))
        cursor.at("precision").fail("is \"" + training.precision + "\"; known are " + presetNames());
    const JsonCursor optimizer = cursor.at("optimizer");
    training.optimizer.name = optimizer.at("name").text();
    const auto preset = findPreset(training.precision);
    if (!cursor.failed() && training.optimizer.name != preset->optimizer())
        optimizer.at("name").fail("is \"" + training.optimizer.name + "\"; the precision " + preset->name + " is of " +
                                  std::string(preset->optimizer()));
    training.optimizer.learningRate = optimizer.at("learning_rate").number(0, 1e3);
    const JsonCursor betas = optimizer.at("betas");
    if (betas.arraySize(2) != 2)
        betas.fail("must hold two numbers");
    else
        training.optimizer.betas = {betas.element(0).number(0, 1), betas.element(1).number(0, 1)};
    training.optimizer.epsilon = optimizer.at("epsilon").number(0, 1);
    training.optimizer.weightDecay = optimizer.at("weight_decay").number(0, 1e3);
    training.optimizer.clipNorm = optimizer.at("clip_norm").number(0, 1e9);
    training.optimizer.warmupSteps = optimizer.at("warmup_steps").integer(0, kMaximumCount);
    training.optimizer.schedule =
        optimizer.at("schedule").choice<std::string>({{"constant", "constant"}, {"cosine", "cosine"}});
    training.optimizer.minLearningRate = optimizer.at("min_learning_rate").number(0, 1e3);
    training.recompute =
        cursor.at("recompute")
            .choice<RecomputePolicy>(
                {{"off", RecomputePolicy::Off}, {"on", RecomputePolicy::On}, {"auto", RecomputePolicy::Auto}});
    training.lossChunks = cursor.at("loss_chunks").integer(1, kMaximumCount);
    if (const auto attention = cursor.find("attention"))
        training.attention = attention->choice<AttentionKernel>(
            {{"fused", AttentionKernel::Fused}, {"unfused", AttentionKernel::Materialised}});
    if (const auto dropout = cursor.find("attention_dropout"))
        training.attentionDropout = dropout->boolean();
    return training;
}

} // namespace shardscope::contract
