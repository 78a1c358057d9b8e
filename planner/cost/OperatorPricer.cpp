// SPDX-License-Identifier: GPL-3.0-or-later
#include "planner/cost/OperatorPricer.h"

#include "runtime/contract/Bytes.h"

#include <algorithm>
#include <cmath>

namespace shardscope::planner {

using contract::Operator;
using contract::OperatorKind;
using contract::Placement;
using contract::PlacementKind;

namespace {

double real(std::int64_t value) {
    return static_cast<double>(value);
}

/// Elements of the sharded slices and of the whole rest.
struct Split {
    std::int64_t slices = 0; ///< sharded ones
    double shardedElements = 0;
    double wholeElements = 0;
};

Split splitElements(const Operator& op, const Placement& placement) {
    Split split;
    for (const contract::SlicePart& part : contract::sliceParts(op, placement)) {
        for (const contract::TensorSpec& tensor : op.tensors)
            (part.sharded ? split.shardedElements : split.wholeElements) += real(partElements(op, tensor, part));
        split.slices += part.sharded ? 1 : 0;
    }
    return split;
}

std::int64_t paperRound(double bytes) {
    return static_cast<std::int64_t>(std::ceil(bytes));
}

} // namespace

OperatorPricer::OperatorPricer(const PlanRequest& request, const contract::Preset& preset)
    : m_preset(preset), m_links(request.cluster, request.mode == CostMode::Paper),
      m_paperMode(request.mode == CostMode::Paper), m_isCpu(request.cluster.isCpu),
      m_lossInChunks(request.lossChunks > 1 && request.mode != CostMode::Paper),
      m_compute(request.cluster, preset, m_paperMode),
      m_overlapEfficiency(request.prefetchDepth > 0 && !m_paperMode ? request.cluster.overlapEfficiency : 0) {}

PlacementBytes OperatorPricer::bytes(const Operator& op, const Placement& placement) const {
    const std::int64_t ranks = m_links.groupRanks(placement.group);
    if (!m_paperMode)
        return {contract::sumState(op, placement, ranks, m_preset), contract::sizeSlot(op, placement, ranks, m_preset)};
    // The paper's formulas over the parameter count: (w+g+o)(P - kP/s) + (w+g+o) kP/(sN); slot wP/s.
    const double parameters = op.isTied() ? 0 : real(op.tensorElements());
    const double fraction = placement.isSharded() ? real(placement.shardedSlices) / real(placement.slices) : 0.0;
    const double stored = parameters * (1 - fraction) + parameters * fraction / real(ranks);
    PlacementBytes bytes;
    bytes.state = {paperRound(stored * real(m_preset.weightBytes)), paperRound(stored * real(m_preset.gradientBytes)),
                   paperRound(stored * real(m_preset.optimizerBytes))};
    if (placement.isSharded())
        bytes.slot.gatheredBytes =
            paperRound(real(m_preset.gatheredBytes) * real(op.tensorElements()) / real(placement.slices));
    return bytes;
}

std::int64_t OperatorPricer::keptBytes(const Operator& op, std::int64_t samples, bool recomputed) const {
    return contract::keptBytes(op, m_preset, samples, recomputed);
}

double OperatorPricer::forwardSeconds(const Operator& op, std::int64_t samples) const {
    return m_compute.forwardSeconds(op, samples);
}

double OperatorPricer::bucketShare(double bytes) const {
    return m_isCpu || m_paperMode ? 1.0 : std::min(1.0, bytes / kBucketBytes);
}

double OperatorPricer::optimizerSeconds(const Operator& op, const Placement& placement) const {
    if (op.isTied())
        return 0;
    const double parameters = real(op.tensorElements());
    const Split split = splitElements(op, placement);
    const double ranks = real(m_links.groupRanks(placement.group));
    const double owned = placement.kind == PlacementKind::Keep ? parameters / ranks
                                                               : split.wholeElements + split.shardedElements / ranks;
    // Reads gradient, moments and weight, writes moments and weight.
    const double moved = real(m_preset.gradientBytes + 2 * m_preset.optimizerBytes + 2 * m_preset.gatheredBytes);
    return m_compute.updateSeconds(owned * moved);
}

bool OperatorPricer::computesHeadAgain(const Operator& op, const Placement& placement) const {
    return m_lossInChunks && op.role == contract::OperatorRole::Head && contract::sliceParts(op, placement).size() > 1;
}

bool OperatorPricer::computesHeadLate(const Operator& op, const Placement& placement) const {
    return m_lossInChunks && op.role == contract::OperatorRole::Head && !computesHeadAgain(op, placement);
}

PlacementFacts OperatorPricer::facts(const Operator& op, const Placement& placement) const {
    return {bytes(op, placement), m_paperMode ? paperExchange(op, placement) : exchange(op, placement),
            m_paperMode ? 0.0 : optimizerSeconds(op, placement), computesHeadAgain(op, placement)};
}

OperatorCost OperatorPricer::price(const Operator& op, const Placement& placement, const Situation& situation) const {
    return price(facts(op, placement), forwardSeconds(op, situation.samples), situation);
}

OperatorCost OperatorPricer::price(const PlacementFacts& facts, double forwardSeconds,
                                   const Situation& situation) const {
    const bool again = situation.recompute && (m_paperMode || !situation.endsBlock);
    OperatorCost cost = priceExchange(facts.exchange, situation.accumulate, again, situation.neighbours);
    const double steps = real(situation.accumulate);
    cost.computeSeconds = 3 * forwardSeconds * steps;
    cost.recomputeSeconds = again || facts.headAgain ? forwardSeconds * steps : 0;
    cost.optimizerSeconds = facts.optimizerSeconds;
    return cost;
}

OperatorCost OperatorPricer::priceCoalesced(const Exchange& exchange, std::int64_t accumulate,
                                            const Neighbours& neighbours) const {
    return priceExchange(exchange, accumulate, false, neighbours);
}

Exchange OperatorPricer::exchange(const Operator& op, const Placement& placement) const {
    Exchange exchange;
    if (m_links.groupRanks(contract::ShardGroup::World) == 1)
        return exchange;
    const Split split = splitElements(op, placement);
    const auto addAcrossNodes = [&](double elements) {
        if (placement.group != contract::ShardGroup::Node || op.isTied()) // once per storage, by its owner
            return;
        const CollectiveCost across = m_links.allReduceAcrossNodes(elements * real(m_preset.gradientBytes) /
                                                                   real(m_links.groupRanks(placement.group)));
        exchange.reduceOnce += across.total();
        exchange.onceSent += real(across.sentBytes);
    };
    if (split.slices > 0) {
        const double slices = real(split.slices);
        const double perSlice = split.shardedElements / slices;
        const CollectiveCost gather = m_links.phase(perSlice * real(m_preset.gatheredBytes), placement.group);
        const CollectiveCost reduce = m_links.phase(perSlice * real(m_preset.gradientBytes), placement.group);
        exchange.gather = slices * gather.total();
        exchange.reduce = slices * reduce.total();
        exchange.gatherSent = slices * real(gather.sentBytes);
        exchange.reduceSent = slices * real(reduce.sentBytes);
        addAcrossNodes(split.shardedElements);
    }
    // What is whole is reduced once per step after its last use, by the owner of the storage.
    if (placement.kind == PlacementKind::Keep && !op.isTied()) {
        const bool once = contract::holdsGradient(op, placement);
        const CollectiveCost reduce =
            m_links.phase(split.wholeElements * real(m_preset.gradientBytes), placement.group);
        const CollectiveCost gather =
            m_links.phase(split.wholeElements * real(m_preset.gatheredBytes), placement.group);
        (once ? exchange.reduceOnce : exchange.reduce) += reduce.total();
        (once ? exchange.onceSent : exchange.reduceSent) += real(reduce.sentBytes);
        exchange.gatherOnce += gather.total();
        exchange.onceSent += real(gather.sentBytes);
        addAcrossNodes(split.wholeElements);
    } else if (split.wholeElements > 0 && !op.isTied()) {
        const double bytes = split.wholeElements * real(m_preset.gradientBytes);
        const CollectiveCost reduce = m_links.allReduce(bytes);
        exchange.reduceOnce += reduce.fixedSeconds * bucketShare(bytes) + reduce.byteSeconds;
        exchange.onceSent += real(reduce.sentBytes);
    }
    return exchange;
}

Exchange OperatorPricer::paperExchange(const Operator& op, const Placement& placement) const {
    // replicate 2(N-1)(a + wP/N b); shard (3 or 4)(N-1)(a k + w kP/(sN) b) + 2(N-1)(a + w(P - kP/s)/N b) when k < s.
    Exchange exchange;
    const double parameters = real(op.tensorElements());
    const double weight = real(m_preset.gatheredBytes);
    double wholeFraction = 1;
    if (placement.isSharded()) {
        const double slices = real(placement.shardedSlices);
        const CollectiveCost one =
            m_links.phase(weight * parameters / real(placement.slices), contract::ShardGroup::World);
        wholeFraction = 1 - slices / real(placement.slices);
        exchange.gather = exchange.reduce = slices * one.total();
        exchange.gatherSent = exchange.reduceSent = slices * real(one.sentBytes);
    }
    if (wholeFraction > 0 && !op.isTied()) {
        const CollectiveCost one = m_links.phase(weight * parameters * wholeFraction, contract::ShardGroup::World);
        exchange.reduceOnce = 2 * one.total();
        exchange.onceSent = 2 * real(one.sentBytes);
    }
    return exchange;
}

Exchange OperatorPricer::coalesce(const std::vector<Member>& members) const {
    Exchange exchange;
    if (members.empty() || m_links.groupRanks(contract::ShardGroup::World) == 1)
        return exchange;
    const contract::ShardGroup group = members.front().placement.group;
    double gathered = 0, unreduced = 0, updated = 0, acrossElements = 0;
    for (const Member& member : members) {
        const double elements = real(member.op.tensorElements());
        unreduced += elements * real(m_preset.gradientBytes);
        (member.placement.isSharded() ? gathered : updated) += elements * real(m_preset.gatheredBytes);
        acrossElements += elements;
    }
    const CollectiveCost gather = m_links.phase(gathered, group);
    const CollectiveCost reduce = m_links.phase(unreduced, group);
    const CollectiveCost update = m_links.phase(updated, group);
    exchange = {gather.total(),         reduce.total(),         update.total(),        0,
                real(gather.sentBytes), real(reduce.sentBytes), real(update.sentBytes)};
    if (group == contract::ShardGroup::Node) {
        const CollectiveCost across = m_links.allReduceAcrossNodes(acrossElements * real(m_preset.gradientBytes) /
                                                                   real(m_links.groupRanks(group)));
        exchange.reduceOnce = across.total();
        exchange.onceSent += real(across.sentBytes);
    }
    return exchange;
}

OperatorPricer::Exposed OperatorPricer::expose(const Exchange& exchange, std::int64_t accumulate, bool gathersAgain,
                                               const Neighbours& neighbours) const {
    const double steps = real(accumulate);
    const double gatherBackward = exchange.gather * (gathersAgain ? 2 : 1);
    const double hideForward = m_overlapEfficiency * neighbours.forwardSeconds;
    const double hideBackward = m_overlapEfficiency * neighbours.backwardSeconds;
    // Exposed = what outlasts the compute beside it (cost-model "Overlap"). A step's once-only parts share the hiding
    // compute of one micro-step with the parts that occur in each.
    const double forwardOnce = std::max(0.0, exchange.gather + exchange.gatherOnce - hideForward);
    const double forwardEach = std::max(0.0, exchange.gather - hideForward);
    const double busy = gatherBackward + exchange.reduce;
    const double backwardOnce = std::max(0.0, busy + exchange.reduceOnce - hideBackward);
    const double backwardEach = std::max(0.0, busy - hideBackward);
    return {forwardOnce + (steps - 1) * forwardEach, backwardOnce + (steps - 1) * backwardEach};
}

double OperatorPricer::stepSeconds(const PlacementFacts& facts, double forwardSeconds,
                                   const Situation& situation) const {
    const bool again = situation.recompute && (m_paperMode || !situation.endsBlock);
    const double steps = real(situation.accumulate);
    const Exposed exposed = expose(facts.exchange, situation.accumulate, again, situation.neighbours);
    return 3 * forwardSeconds * steps + (again || facts.headAgain ? forwardSeconds * steps : 0) +
           (exposed.forward + exposed.backward) + facts.optimizerSeconds;
}

OperatorCost OperatorPricer::priceExchange(const Exchange& exchange, std::int64_t accumulate, bool gathersAgain,
                                           const Neighbours& neighbours) const {
    OperatorCost cost;
    const double steps = real(accumulate);
    const double gatherBackward = exchange.gather * (gathersAgain ? 2 : 1);
    const Exposed exposed = expose(exchange, accumulate, gathersAgain, neighbours);
    cost.gatherSeconds = steps * (exchange.gather + gatherBackward) + exchange.gatherOnce;
    cost.reduceSeconds = steps * exchange.reduce + exchange.reduceOnce;
    const double backward = steps * (gatherBackward + exchange.reduce) + exchange.reduceOnce;
    const double gatherShare = backward > 0 ? steps * gatherBackward / backward : 0;
    cost.exposedGatherSeconds = exposed.forward + exposed.backward * gatherShare;
    cost.exposedReduceSeconds = exposed.backward * (1 - gatherShare);
    cost.communicatedBytes = static_cast<std::int64_t>(
        steps * (exchange.gatherSent * (gathersAgain ? 3 : 2) + exchange.reduceSent) + exchange.onceSent);
    return cost;
}

} // namespace shardscope::planner
