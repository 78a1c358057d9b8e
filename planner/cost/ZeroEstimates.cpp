// SPDX-License-Identifier: GPL-3.0-or-later
#include "planner/cost/ZeroEstimates.h"

#include <algorithm>

namespace shardscope::planner {

double zeroStateBytes(double parameters, int stage, double ranks, const contract::Preset& preset) {
    const auto share = [&](std::int64_t bytes, int dividedFrom) {
        return static_cast<double>(bytes) / (stage >= dividedFrom ? ranks : 1);
    };
    return parameters *
           (share(preset.weightBytes, 3) + share(preset.gradientBytes, 2) + share(preset.optimizerBytes, 1));
}

double deepspeedZero3Bytes(std::int64_t parameters, std::int64_t largestLayerParameters, std::int64_t gpus,
                           DeepSpeedOffload offload) {
    const double largestLayer = 4.0 * static_cast<double>(largestLayerParameters);
    const double share = static_cast<double>(parameters) / static_cast<double>(gpus);
    switch (offload) {
    case DeepSpeedOffload::None:
        return largestLayer + 18 * share;
    case DeepSpeedOffload::Optimizer:
        return largestLayer + 2 * share;
    case DeepSpeedOffload::OptimizerAndParameters:
        break;
    }
    return largestLayer;
}

T5Parameters countT5Parameters(const T5Sizes& sizes) {
    const std::int64_t embedding = sizes.vocabulary * sizes.hidden;
    const std::int64_t projection = sizes.hidden * sizes.heads * sizes.headWidth;
    const std::int64_t attention = 4 * projection;
    const std::int64_t feedForward = 2 * sizes.hidden * sizes.intermediate;
    const std::int64_t encoderLayer = attention + feedForward + 2 * sizes.hidden;
    const std::int64_t decoderLayer = 2 * attention + feedForward + 3 * sizes.hidden;
    const std::int64_t perStack = sizes.positionBuckets * sizes.heads + sizes.hidden; // bias table and final norm
    return {embedding + sizes.layers * (encoderLayer + decoderLayer) + 2 * perStack,
            std::max({embedding, projection, sizes.hidden * sizes.intermediate})};
}

} // namespace shardscope::planner
