// SPDX-License-Identifier: GPL-3.0-or-later
#include "planner/cost/MegatronActivations.h"

#include "runtime/contract/Bytes.h"

namespace shardscope::planner {

using contract::OperatorRole;

std::int64_t megatronFirstStageBytes(const MegatronDecoder& decoder, const ActivationBatch& batch,
                                     const MegatronOptions& options) {
    const std::int64_t h = decoder.hidden;
    const std::int64_t t = options.tensor;
    // Per token, times t: the formulas of the header multiplied out, so that everything stays an integer.
    const std::int64_t scores = options.recompute == MegatronRecompute::None ? 5 * decoder.heads * batch.sequence : 0;
    std::int64_t perToken = options.sequenceParallel ? 34 * h + scores : 10 * h * t + 24 * h + scores;
    if (options.recompute == MegatronRecompute::Full)
        perToken = options.sequenceParallel ? 2 * h : 2 * h * t;
    const std::int64_t p = options.pipeline;
    const std::int64_t v = options.interleave;
    const std::int64_t bytes = batch.tokens() * perToken * decoder.layers;
    return v > 1 ? contract::ceilDivide(bytes * (p * v + p - 1), t * p * v) : contract::ceilDivide(bytes, t);
}

KeptByOperator megatronActivations(const contract::Architecture& architecture,
                                   const std::vector<contract::Operator>& operators, const ActivationBatch& batch,
                                   const MegatronOptions& options) {
    KeptByOperator kept(operators.size());
    const std::int64_t tokens = batch.tokens();
    const std::int64_t e = batch.elementBytes;
    const std::int64_t t = options.tensor;
    const bool gpt2 = architecture.attention == contract::AttentionLayout::Fused;
    const auto split = [&](std::int64_t bytes) { return contract::ceilDivide(bytes, t); };
    // Outside the tensor-parallel regions every device holds the whole, unless the sequence is split there.
    const auto outside = [&](std::int64_t bytes) { return options.sequenceParallel ? split(bytes) : bytes; };
    const std::int64_t stream = tokens * architecture.hidden * e;
    const std::int64_t mask = tokens * architecture.hidden; // one byte an element
    const std::int64_t queries = tokens * architecture.heads * architecture.headDim * e;
    const std::int64_t keys = tokens * architecture.kvHeads * architecture.headDim * e;
    const std::int64_t inner = tokens * architecture.intermediate * e;
    const std::int64_t scores = tokens * batch.sequence * architecture.heads;

    for (std::size_t i = 0; i < operators.size(); ++i) {
        std::vector<KeptTensor>& own = kept[i];
        if (operators[i].block < 0)
            continue;
        if (options.recompute == MegatronRecompute::Full) {
            if (operators[i].role == OperatorRole::AttentionNorm)
                own = {{"input", outside(stream)}};
            continue;
        }
        const auto addAttentionCore = [&] {
            if (options.recompute == MegatronRecompute::Selective)
                return;
            own.push_back({"softmax", split(scores * e)});
            if (gpt2) {
                own.push_back({"dropout_mask", split(scores)});
                own.push_back({"dropout_output", split(scores * e)});
            }
        };
        switch (operators[i].role) {
        case OperatorRole::AttentionNorm:
        case OperatorRole::MlpNorm:
            own = {{"input", outside(stream)}};
            break;
        case OperatorRole::QueryKeyValue:
            own = {{"input", outside(stream)}, {"query", split(queries)}, {"key", split(keys)}, {"value", split(keys)}};
            addAttentionCore();
            break;
        case OperatorRole::Query:
            own = {{"input", outside(stream)}, {"query", split(queries)}};
            break;
        case OperatorRole::Key:
            own = {{"key", split(keys)}};
            break;
        case OperatorRole::Value:
            own = {{"value", split(keys)}};
            addAttentionCore();
            break;
        case OperatorRole::QueryNorm:
            own = {{"input", split(queries)}};
            break;
        case OperatorRole::KeyNorm:
            own = {{"input", split(keys)}};
            break;
        case OperatorRole::AttentionOutput:
            own = {{"input", split(queries)}};
            if (gpt2)
                own.push_back({"dropout_mask", outside(mask)});
            break;
        case OperatorRole::MlpGate:
            own = {{"input", outside(stream)}, {"gate", split(inner)}};
            break;
        case OperatorRole::MlpUp:
            if (gpt2)
                own = {{"input", outside(stream)}, {"pre_activation", split(inner)}};
            else
                own = {{"up", split(inner)}};
            break;
        case OperatorRole::MlpDown:
            own = {{"input", split(inner)}};
            if (gpt2)
                own.push_back({"dropout_mask", outside(mask)});
            break;
        default: // outside blocks
            break;
        }
    }
    return kept;
}

double megatronStateBytes(const MegatronDecoder& decoder, const MegatronOptions& options,
                          std::int64_t bytesPerParameter) {
    const double h = static_cast<double>(decoder.hidden);
    return static_cast<double>(bytesPerParameter) * 12 * static_cast<double>(decoder.layers) * h * h /
           static_cast<double>(options.tensor * options.pipeline);
}

} // namespace shardscope::planner
