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
      m_memoryBandwidth(request.cluster.device.memoryBandwidth),
      m_overlapEfficiency(request.prefetchDepth > 0 && !m_paperMode ? request.cluster.overlapEfficiency : 0) {
    const contract::Device& device = request.cluster.device;
    m_flops = preset.gatheredBytes == 2 && device.flopsBf16 > 0 ? device.flopsBf16 : device.flopsFp32;
}

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
    const double flopSeconds = op.flopsForward * real(samples) / m_flops;
    if (m_paperMode)
        return flopSeconds;
    // What is kept is written once and read once; embeddings read their rows and write the residual stream.
    double touched = 2 * real(keptBytes(op, samples, false));
    if (op.kind == OperatorKind::Embedding)
        touched = 3 * real(samples * m_preset.gatheredBytes) * real(op.liveActivationElements);
    return flopSeconds + touched / m_memoryBandwidth;
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
    return owned * moved / m_memoryBandwidth;
}

OperatorCost OperatorPricer::price(const Operator& op, const Placement& placement, const Situation& situation) const {
    OperatorCost cost = m_paperMode ? priceCommunicationPaper(op, placement, situation.recompute)
                                    : priceCommunication(op, placement, situation);
    const double forward = forwardSeconds(op, situation.samples);
    const double steps = real(situation.accumulate);
    cost.computeSeconds = 3 * forward * steps;
    if (situation.recompute && !(situation.endsBlock && !m_paperMode))
        cost.recomputeSeconds = forward * steps;
    if (!m_paperMode)
        cost.optimizerSeconds = optimizerSeconds(op, placement);
    return cost;
}

OperatorCost OperatorPricer::priceCommunication(const Operator& op, const Placement& placement,
                                                const Situation& situation) const {
    OperatorCost cost;
    if (m_links.groupRanks(contract::ShardGroup::World) == 1)
        return cost;
    const Split split = splitElements(op, placement);
    const double steps = real(situation.accumulate);
    const double hideForward = m_overlapEfficiency * situation.neighbours.forwardSeconds;
    const double hideBackward = m_overlapEfficiency * situation.neighbours.backwardSeconds;
    const bool shared = op.sharedStorage || op.isTied();

    double gatherForward = 0;  // per micro-step
    double gatherBackward = 0; // per micro-step
    double reduceMicro = 0;    // per micro-step
    double gatherOnce = 0;     // per step, before the first forward
    double reduceOnce = 0;     // per step, in the last backward
    double sent = 0;
    const auto addAcrossNodes = [&](double elements) {
        if (placement.group != contract::ShardGroup::Node)
            return;
        const CollectiveCost across = m_links.allReduceAcrossNodes(elements * real(m_preset.gradientBytes) /
                                                                   real(m_links.groupRanks(placement.group)));
        reduceOnce += across.total();
        sent += real(across.sentBytes);
    };
    if (split.slices > 0) {
        const double perSlice = split.shardedElements / real(split.slices);
        const CollectiveCost gather = m_links.phase(perSlice * real(m_preset.gatheredBytes), placement.group);
        const CollectiveCost reduce = m_links.phase(perSlice * real(m_preset.gradientBytes), placement.group);
        const bool again = situation.recompute && !situation.endsBlock;
        gatherForward = real(split.slices) * gather.total();
        gatherBackward = real(split.slices) * gather.total() * (again ? 2 : 1);
        reduceMicro = real(split.slices) * reduce.total();
        sent += steps * real(split.slices) * (real(gather.sentBytes) * (again ? 3 : 2) + real(reduce.sentBytes));
        addAcrossNodes(split.shardedElements);
    }
    // What is whole is reduced once per step after its last use, by the owner of the storage.
    if (placement.kind == PlacementKind::Keep && !op.isTied()) {
        const CollectiveCost reduce =
            m_links.phase(split.wholeElements * real(m_preset.gradientBytes), placement.group);
        const CollectiveCost gather =
            m_links.phase(split.wholeElements * real(m_preset.gatheredBytes), placement.group);
        (shared ? reduceOnce : reduceMicro) += reduce.total();
        gatherOnce += gather.total();
        sent += real(reduce.sentBytes) * (shared ? 1 : steps) + real(gather.sentBytes);
        addAcrossNodes(split.wholeElements);
    } else if (split.wholeElements > 0 && !op.isTied()) {
        const double bytes = split.wholeElements * real(m_preset.gradientBytes);
        const CollectiveCost reduce = m_links.allReduce(bytes);
        reduceOnce += reduce.fixedSeconds * bucketShare(bytes) + reduce.byteSeconds;
        sent += real(reduce.sentBytes);
    }
    // Exposed = what outlasts the compute beside it (cost-model "Overlap"). A step's once-only parts share the hiding
    // compute of one micro-step with the parts that occur in each.
    const double forwardOnce = std::max(0.0, gatherForward + gatherOnce - hideForward);
    const double forwardEach = std::max(0.0, gatherForward - hideForward);
    const double busy = gatherBackward + reduceMicro;
    const double backwardOnce = std::max(0.0, busy + reduceOnce - hideBackward);
    const double backwardEach = std::max(0.0, busy - hideBackward);
    const double exposedBackward = backwardOnce + (steps - 1) * backwardEach;
    const double all = steps * busy + reduceOnce;
    cost.gatherSeconds = steps * (gatherForward + gatherBackward) + gatherOnce;
    cost.reduceSeconds = steps * reduceMicro + reduceOnce;
    const double backwardGatherShare = all > 0 ? steps * gatherBackward / all : 0;
    cost.exposedGatherSeconds = forwardOnce + (steps - 1) * forwardEach + exposedBackward * backwardGatherShare;
    cost.exposedReduceSeconds = exposedBackward * (1 - backwardGatherShare);
    cost.communicatedBytes = static_cast<std::int64_t>(sent);
    return cost;
}

OperatorCost OperatorPricer::priceCommunicationPaper(const Operator& op, const Placement& placement,
                                                     bool recompute) const {
    // replicate 2(N-1)(a + wP/N b); shard (3 or 4)(N-1)(a k + w kP/(sN) b) + 2(N-1)(a + w(P - kP/s)/N b) when k < s.
    OperatorCost cost;
    const double parameters = real(op.tensorElements());
    const double weight = real(m_preset.gatheredBytes);
    const auto phases = [&](double count, double bytes) {
        const CollectiveCost one = m_links.phase(bytes, contract::ShardGroup::World);
        cost.communicatedBytes += static_cast<std::int64_t>(count * real(one.sentBytes));
        return count * one.total();
    };
    double wholeFraction = 1;
    if (placement.isSharded()) {
        const double slices = real(placement.shardedSlices);
        const double bytes = weight * parameters / real(placement.slices);
        wholeFraction = 1 - slices / real(placement.slices);
        cost.gatherSeconds = phases((recompute ? 3 : 2) * slices, bytes);
        cost.reduceSeconds = phases(slices, bytes);
    }
    if (wholeFraction > 0 && !op.isTied())
        cost.reduceSeconds += phases(2, weight * parameters * wholeFraction);
    cost.exposedGatherSeconds = cost.gatherSeconds;
    cost.exposedReduceSeconds = cost.reduceSeconds;
    return cost;
}

} // namespace shardscope::planner
