// SPDX-License-Identifier: GPL-3.0-or-later
#include "planner/cost/LinkCost.h"

#include <algorithm>
#include <cmath>

namespace shardscope::planner {

using contract::ShardGroup;

namespace {

CollectiveCost sum(const CollectiveCost& a, const CollectiveCost& b) {
    return {a.fixedSeconds + b.fixedSeconds, a.byteSeconds + b.byteSeconds, a.sentBytes + b.sentBytes};
}

CollectiveCost cheaper(const CollectiveCost& a, const CollectiveCost& b) {
    return b.total() < a.total() ? b : a;
}

} // namespace

LinkCost::LinkCost(const contract::Cluster& cluster, bool paperMode)
    : m_inside(cluster.inside), m_between(cluster.nodes > 1 ? cluster.between : cluster.inside), m_nodes(cluster.nodes),
      m_devices(cluster.devicesPerNode), m_hostSeconds(paperMode ? 0 : cluster.hostSecondsPerCollective),
      m_paperMode(paperMode) {}

std::int64_t LinkCost::groupRanks(ShardGroup group) const {
    return group == ShardGroup::Node ? m_devices : m_nodes * m_devices;
}

contract::Link LinkCost::slowerLink() const {
    if (m_nodes == 1)
        return m_inside;
    if (m_devices == 1)
        return m_between;
    return {std::max(m_inside.latencySeconds, m_between.latencySeconds),
            std::min(m_inside.bytesPerSecond, m_between.bytesPerSecond)};
}

CollectiveCost LinkCost::ring(double bytes, std::int64_t ranks, const contract::Link& link, std::int64_t phases) const {
    if (ranks <= 1 || bytes <= 0)
        return {};
    const double steps = static_cast<double>(phases * (ranks - 1));
    const double sent = steps * bytes / static_cast<double>(ranks);
    return {steps * link.latencySeconds + m_hostSeconds, sent / link.bytesPerSecond, std::llround(sent)};
}

CollectiveCost LinkCost::phase(double bytes, ShardGroup group) const {
    if (group == ShardGroup::Node || m_nodes == 1)
        return ring(bytes, m_devices, m_inside, 1);
    const CollectiveCost flat = ring(bytes, m_nodes * m_devices, slowerLink(), 1);
    if (m_devices == 1 || m_paperMode)
        return flat;
    // Across nodes every device moves its own 1/d of the bytes, then the node completes it over its fast links.
    const CollectiveCost hierarchical =
        sum(ring(bytes / static_cast<double>(m_devices), m_nodes, m_between, 1), ring(bytes, m_devices, m_inside, 1));
    return cheaper(flat, hierarchical);
}

CollectiveCost LinkCost::allReduce(double bytes) const {
    const std::int64_t ranks = m_nodes * m_devices;
    const CollectiveCost flat = ring(bytes, ranks, slowerLink(), 2);
    if (m_paperMode || ranks <= 2 || bytes <= 0)
        return flat;
    const contract::Link link = slowerLink();
    const double depth = std::ceil(std::log2(static_cast<double>(ranks)));
    const CollectiveCost tree{2 * depth * link.latencySeconds + m_hostSeconds, 2 * bytes / link.bytesPerSecond,
                              std::llround(2 * bytes)};
    CollectiveCost best = cheaper(flat, tree);
    if (m_nodes > 1 && m_devices > 1)
        best = cheaper(best, sum(ring(bytes, m_devices, m_inside, 2),
                                 ring(bytes / static_cast<double>(m_devices), m_nodes, m_between, 2)));
    return best;
}

CollectiveCost LinkCost::allReduceAcrossNodes(double bytes) const {
    return ring(bytes, m_nodes, m_between, 2);
}

} // namespace shardscope::planner
