// SPDX-License-Identifier: GPL-3.0-or-later
#include "planner/cost/ActivationConventions.h"

namespace shardscope::planner {

using contract::OperatorRole;

std::string_view activationConventionName(ActivationConvention convention) {
    switch (convention) {
    case ActivationConvention::Native:
        return "native";
    case ActivationConvention::PyTorch:
        return "pytorch";
    case ActivationConvention::Megatron:
        return "megatron";
    case ActivationConvention::LlmC:
        return "llm.c";
    }
    return "native";
}

std::int64_t totalBytes(const KeptByOperator& kept) {
    std::int64_t bytes = 0;
    for (const std::vector<KeptTensor>& tensors : kept) {
        for (const KeptTensor& tensor : tensors)
            bytes += tensor.bytes;
    }
    return bytes;
}

KeptByOperator llmcActivations(const contract::Architecture& architecture,
                               const std::vector<contract::Operator>& operators, const ActivationBatch& batch,
                               AttentionKernel attention) {
    KeptByOperator kept(operators.size());
    if (!architecture.isGpt2())
        return kept;
    const std::int64_t tokens = batch.tokens();
    const std::int64_t stream = tokens * architecture.hidden * batch.elementBytes; // (B, T, C)
    const std::int64_t inner = tokens * architecture.intermediate * batch.elementBytes;
    constexpr std::int64_t kFloat = 4;
    for (std::size_t i = 0; i < operators.size(); ++i) {
        std::vector<KeptTensor>& own = kept[i];
        switch (operators[i].role) {
        case OperatorRole::TokenEmbedding:
            own = {{"encoded", stream}};
            break;
        case OperatorRole::AttentionNorm:
        case OperatorRole::MlpNorm:
        case OperatorRole::FinalNorm:
            own = {{"output", stream}, {"mean", tokens * kFloat}, {"rstd", tokens * kFloat}};
            break;
        case OperatorRole::QueryKeyValue:
            own = {{"qkv", 3 * stream}, {"attention_output", stream}};
            if (attention == AttentionKernel::Materialised)
                own.push_back({"probabilities", tokens * batch.sequence * architecture.heads * batch.elementBytes});
            else
                own.push_back({"logsumexp", tokens * architecture.heads * kFloat});
            break;
        case OperatorRole::AttentionOutput:
        case OperatorRole::MlpDown:
            own = {{"output", stream}, {"residual", stream}};
            break;
        case OperatorRole::MlpUp:
            own = {{"pre_activation", inner}, {"gelu", inner}};
            break;
        case OperatorRole::Head:
            own = {{"logits", tokens * architecture.vocabulary * batch.elementBytes}, {"losses", tokens * kFloat}};
            break;
        default: // position embeddings add to the token embedding's output; llama-like roles do not occur
            break;
        }
    }
    return kept;
}

} // namespace shardscope::planner
