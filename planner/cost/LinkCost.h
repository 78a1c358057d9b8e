// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "runtime/contract/Cluster.h"
#include "runtime/contract/Placement.h"

#include <cstdint>

namespace shardscope::planner {

/// What one collective costs: a part per ring step and a part per byte, so that fused collectives can share the former.
struct CollectiveCost {
    double fixedSeconds = 0; ///< latency of all steps and the host's cost
    double byteSeconds = 0;
    std::int64_t sentBytes = 0; ///< by one device
    double total() const { return fixedSeconds + byteSeconds; }
};

/// Seconds of collectives on a cluster of equal nodes. Formulas: cost-model "Links". Every function takes the whole
/// (gathered or unreduced) bytes X; one ring phase over N ranks takes (N-1)(a + X/N b).
class LinkCost {
public:
    /// `paperMode`: one flat ring with the inside link's numbers, no host cost.
    LinkCost(const contract::Cluster& cluster, bool paperMode);

    std::int64_t groupRanks(contract::ShardGroup group) const;
    /// All-gather, or reduce-scatter: one phase. The cheaper of a flat ring and of one per node plus one across nodes.
    CollectiveCost phase(double bytes, contract::ShardGroup group) const;
    /// The cheapest of a flat ring, hierarchical rings and a tree.
    CollectiveCost allReduce(double bytes) const;
    /// All-reduce of `bytes` between devices of equal local rank in different nodes (HSDP's second step).
    CollectiveCost allReduceAcrossNodes(double bytes) const;

private:
    CollectiveCost ring(double bytes, std::int64_t ranks, const contract::Link& link, std::int64_t phases) const;
    contract::Link slowerLink() const;

    contract::Link m_inside;
    contract::Link m_between;
    std::int64_t m_nodes;
    std::int64_t m_devices;
    double m_hostSeconds;
    bool m_paperMode;
};

} // namespace shardscope::planner
