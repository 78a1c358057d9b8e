// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "runtime/contract/Preset.h"

#include <cstdint>

namespace shardscope::planner {

/// Bytes of weights, gradients and optimizer on one of `ranks` ranks under a stage of ZeRO (arXiv 1910.02054,
/// section 5): stage 1 divides the optimizer's share, 2 also the gradients', 3 also the weights'. Not rounded.
double zeroStateBytes(double parameters, int stage, double ranks, const contract::Preset& preset);

/// What DeepSpeed's estimator moves to the host.
enum class DeepSpeedOffload { None, Optimizer, OptimizerAndParameters };

/// GPU bytes of estimate_zero3_model_states_mem_needs (deepspeed/runtime/zero/stage3.py): 4 bytes for each parameter of
/// the largest layer, gathered in fp32, plus 18 bytes a parameter over all GPUs; 2 bytes where the optimizer is on the
/// host; nothing more where the parameters are too. The largest layer is the module that itself owns most parameters.
double deepspeedZero3Bytes(std::int64_t parameters, std::int64_t largestLayerParameters, std::int64_t gpus,
                           DeepSpeedOffload offload);

/// A T5 encoder-decoder (arXiv 1910.10683) with tied embedding and head and the ReLU feed-forward of version 1.0.
struct T5Sizes {
    std::int64_t hidden = 0;
    std::int64_t headWidth = 0; ///< d_kv
    std::int64_t heads = 0;
    std::int64_t intermediate = 0;
    std::int64_t layers = 0; ///< of the encoder, and of the decoder
    std::int64_t vocabulary = 0;
    std::int64_t positionBuckets = 0; ///< rows of the relative attention bias, one table per stack
};
struct T5Parameters {
    std::int64_t total = 0;
    std::int64_t largestLayer = 0; ///< of one module: the embedding or a matrix
};
T5Parameters countT5Parameters(const T5Sizes& sizes);

} // namespace shardscope::planner
