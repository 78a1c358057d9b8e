// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/document/Choices.h"

namespace shardscope::app {

contract::Result<planner::PlanRequest> Choices::request() const {
    planner::PlanRequest request;
    request.graph = graph;
    if (sequence > 0 && sequence != graph->sequence) {
        auto lowered = planner::withSequence(graph, sequence);
        if (!lowered)
            return tl::unexpected(lowered.error());
        request.graph = *lowered;
    }
    if (attention && request.graph->attention != *attention) {
        auto attended = planner::withAttention(request.graph, *attention);
        if (!attended)
            return tl::unexpected(attended.error());
        request.graph = *attended;
    }
    request.cluster = cluster;
    request.precision = precision;
    request.microBatch = microBatch;
    request.accumulate = accumulate;
    request.globalBatch = globalBatch;
    request.recompute = recompute;
    request.slices.clear();
    for (std::int32_t slices = 1; slices <= slicesUpTo; slices *= 2)
        request.slices.push_back(slices);
    request.lossChunks = lossChunks;
    request.prefetchDepth = prefetchDepth;
    request.granularity = granularity;
    request.allowReplicate = allowReplicate;
    request.allowKeep = allowKeep;
    request.allowShard = allowShard;
    request.pins = pins;
    request.recomputePins = recomputePins;
    return request;
}

void Choices::teachCluster() {
    if (extraReserveBytes > 0)
        cluster.reserve.push_back({"seen beyond the plan", extraReserveBytes, "measured"});
    if (deviceBytes > 0)
        cluster.device.memoryBytes = deviceBytes;
}

bool Choices::asksTheSame(const Choices& o) const {
    return graph == o.graph && cluster == o.cluster && sequence == o.sequence && precision == o.precision &&
           microBatch == o.microBatch && accumulate == o.accumulate && globalBatch == o.globalBatch &&
           recompute == o.recompute && attention == o.attention && slicesUpTo == o.slicesUpTo &&
           lossChunks == o.lossChunks && prefetchDepth == o.prefetchDepth && granularity == o.granularity &&
           allowReplicate == o.allowReplicate && allowKeep == o.allowKeep && allowShard == o.allowShard &&
           pins == o.pins && recomputePins == o.recomputePins;
}

} // namespace shardscope::app
