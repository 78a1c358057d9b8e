// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "runtime/contract/Architecture.h"
#include "runtime/contract/Operator.h"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace shardscope::planner {

/// What is held from forward to backward depends on who runs the plan.
enum class ActivationConvention {
    Native,   ///< our engine: contract::keptBytes
    PyTorch,  ///< what autograd saves: PyTorchActivations.h
    Megatron, ///< arXiv 2205.05198: MegatronActivations.h
    LlmC,     ///< llm.c: every forward tensor has its own buffer for the whole step
};
std::string_view activationConventionName(ActivationConvention convention);

using contract::AttentionKernel;

/// A tensor held from an operator's forward to its backward, on one device.
struct KeptTensor {
    std::string name;
    std::int64_t bytes = 0;
};
/// [operator of the graph]: what is held for it. A tensor that several operators read is listed once, with the first.
using KeptByOperator = std::vector<std::vector<KeptTensor>>;
std::int64_t totalBytes(const KeptByOperator& kept);

/// The batch for which activations are counted.
struct ActivationBatch {
    std::int64_t sequence = 0;     ///< tokens of a sample; the operators must be lowered for it
    std::int64_t samples = 1;      ///< micro-batch of one device
    std::int64_t elementBytes = 2; ///< of an activation in compute precision
    std::int64_t tokens() const { return sequence * samples; }
};

/// llm.c (train_gpt2.cu, pull request 309, without recomputation): each operator's output stays, and so do the layer
/// norms' fp32 statistics, the attention probabilities (materialised attention), the residual stream after each
/// projection, the logits (whose buffer becomes their gradient) and the fp32 losses.
/// Only for GPT-2-like architectures; others keep nothing.
KeptByOperator llmcActivations(const contract::Architecture& architecture,
                               const std::vector<contract::Operator>& operators, const ActivationBatch& batch,
                               AttentionKernel attention);

} // namespace shardscope::planner
