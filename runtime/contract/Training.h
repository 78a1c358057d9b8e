// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "runtime/contract/Json.h"
#include "runtime/contract/Operator.h"

#include <array>
#include <cstdint>
#include <string>

namespace shardscope::contract {

struct Optimizer {
    std::string name = "adamw"; ///< that of the precision, see Preset::optimizer()
    double learningRate = 3e-4;
    std::array<double, 2> betas{0.9, 0.95}; ///< of "sgd" the first is the momentum, the second unused
    double epsilon = 1e-8;
    double weightDecay = 0.1; ///< matrices only; biases, norms and position embeddings are not decayed. With "sgd" it
                              ///< joins the gradient, as in torch.optim.SGD
    double clipNorm = 1.0;    ///< global gradient norm; 0 = no clipping
    std::int64_t warmupSteps = 0;
    std::string schedule = "constant"; ///< "constant" or "cosine"
    double minLearningRate = 0;
    bool operator==(const Optimizer&) const = default;
};

enum class RecomputePolicy { Off, On, Auto };
std::string_view recomputePolicyName(RecomputePolicy policy);

/// How a plan trains. `microBatch` is per device and micro-step; globalBatch = microBatch x accumulate x data ranks.
struct Training {
    std::int64_t sequence = 0;
    std::int64_t microBatch = 1;
    std::int64_t accumulate = 1;
    std::int64_t globalBatch = 1;
    std::string precision = "fp32-adam"; ///< a preset's name
    Optimizer optimizer;
    RecomputePolicy recompute = RecomputePolicy::Auto;
    std::int64_t lossChunks = 1;
    AttentionKernel attention = AttentionKernel::Fused;
    bool attentionDropout = false; ///< its masks and outputs are kept where attention is not fused
    bool operator==(const Training&) const = default;
};

OrderedJson toJson(const Optimizer& optimizer);
OrderedJson toJson(const Training& training);
Training readTraining(const JsonCursor& cursor);

} // namespace shardscope::contract
