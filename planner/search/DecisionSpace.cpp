// SPDX-License-Identifier: GPL-3.0-or-later
#include "planner/search/DecisionSpace.h"

#include "runtime/contract/StepProgram.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <unordered_map>

namespace shardscope::planner {

using contract::Operator;
using contract::Placement;
using contract::PlacementKind;
using contract::RecomputePolicy;
using contract::ShardGroup;

bool globMatches(std::string_view pattern, std::string_view text) {
    std::size_t p = 0, t = 0, star = std::string_view::npos, resume = 0;
    while (t < text.size()) {
        if (p < pattern.size() && (pattern[p] == '?' || pattern[p] == text[t])) {
            ++p;
            ++t;
        } else if (p < pattern.size() && pattern[p] == '*') {
            star = p++;
            resume = t;
        } else if (star != std::string_view::npos) {
            p = star + 1;
            t = ++resume;
        } else {
            return false;
        }
    }
    while (p < pattern.size() && pattern[p] == '*')
        ++p;
    return p == pattern.size();
}

contract::Result<DecisionSpace> DecisionSpace::create(const PlanRequest& given) {
    PlanRequest request = given;
    if (!request.graph || request.graph->operators.empty())
        return contract::usageError("there is no graph to plan");
    if (request.precision.empty())
        request.precision = request.cluster.device.flopsBf16 > 0 && !request.cluster.isCpu ? "bf16-adam" : "fp32-adam";
    const auto preset = contract::findPreset(request.precision);
    if (!preset)
        return contract::usageError(
            fmt::format("precision \"{}\" is unknown; known are {}", request.precision, contract::presetNames()));
    request.optimizer.name = preset->optimizer();
    if (request.mode == CostMode::Paper) {
        request.prefetchDepth = 0;
        request.allowKeep = false;
    }
    for (const std::int32_t slices : request.slices) {
        if (slices < 1)
            return contract::usageError(fmt::format("slices must be positive, not {}", slices));
    }
    constexpr std::size_t kMaximumSliceCounts = 32;
    if (request.slices.size() > kMaximumSliceCounts)
        return contract::usageError(fmt::format("{} slice counts are given; at most {} are searched",
                                                request.slices.size(), kMaximumSliceCounts));
    if (request.microBatch < 0 || request.accumulate < 0 || request.globalBatch < 0 || request.prefetchDepth < 0)
        return contract::usageError("batch, accumulate, global batch and prefetch depth must not be negative");
    DecisionSpace space(request, *preset);
    if (preset->gatheredBytes == 2 && request.cluster.device.flopsBf16 <= 0)
        space.m_notes.push_back(fmt::format("{} has no bf16 rate; {} is priced at its fp32 rate",
                                            request.cluster.device.name, preset->name));
    if (auto done = space.chooseBatches(); !done)
        return tl::unexpected(done.error());
    if (auto done = space.resolvePlacements(); !done)
        return tl::unexpected(done.error());
    if (auto done = space.resolveRecompute(); !done)
        return tl::unexpected(done.error());
    space.buildClasses();
    space.buildGroups();
    space.buildSample();
    space.buildSlotLevels();
    return space;
}

DecisionSpace::DecisionSpace(const PlanRequest& request, const contract::Preset& preset)
    : m_request(request), m_preset(preset), m_pricer(request, preset),
      m_owners(contract::storageOwners(request.graph->operators)) {}

std::vector<Placement> DecisionSpace::openPlacements(const Operator& op) const {
    std::vector<Placement> open;
    const bool alone = ranks() == 1;
    if (m_request.allowReplicate || alone)
        open.push_back({});
    if (alone)
        return open;
    const bool severalNodes = m_request.cluster.nodes > 1 && m_request.cluster.devicesPerNode > 1;
    std::vector<ShardGroup> groups;
    const bool nodeGroup = severalNodes && m_request.mode == CostMode::Full && m_request.allowNodeGroup;
    if (m_request.allowWorldGroup || !nodeGroup)
        groups.push_back(ShardGroup::World);
    if (nodeGroup)
        groups.push_back(ShardGroup::Node);
    // Gradients that are held need accumulation: placements that no batch allows would make bounds of memory too low.
    const bool accumulates =
        std::any_of(m_batches.begin(), m_batches.end(), [](const Batch& batch) { return batch.accumulate > 1; });
    for (const ShardGroup group : groups) {
        if (m_request.allowKeep)
            open.push_back({PlacementKind::Keep, 1, 1, group});
        if (m_request.allowKeep && accumulates)
            open.push_back({PlacementKind::Keep, 1, 1, group, true});
        std::vector<std::int32_t> slices = m_request.slices;
        std::sort(slices.begin(), slices.end());
        slices.erase(std::unique(slices.begin(), slices.end()), slices.end());
        for (const std::int32_t s : slices) {
            if (!m_request.allowShard || s > op.maximumSlices())
                continue;
            for (std::int32_t k = 1; k <= s; ++k)
                open.push_back({PlacementKind::Shard, s, k, group});
        }
    }
    return open;
}

Placement DecisionSpace::legalPlacement(const Operator& op, Placement placement) {
    // More slices than this only add latency, and every one is an instruction of the plan.
    constexpr std::int64_t kMaximumSlices = 1024;
    const std::int64_t most = std::min(kMaximumSlices, op.maximumSlices());
    if (placement.isSharded() && placement.slices > most) {
        const auto slices = static_cast<std::int32_t>(most);
        m_notes.push_back(
            fmt::format("{} allows at most {} slices; the pin asked for {}", op.name, slices, placement.slices));
        placement.shardedSlices = std::min(placement.shardedSlices, slices);
        placement.slices = slices;
    }
    if (placement.group == ShardGroup::Node && (m_request.cluster.nodes == 1 || m_request.cluster.devicesPerNode == 1))
        placement.group = ShardGroup::World;
    return placement;
}

contract::Result<void> DecisionSpace::resolvePlacements() {
    const auto& operators = m_request.graph->operators;
    m_placements.resize(operators.size());
    m_pinned.assign(operators.size(), false);
    std::vector<bool> used(m_request.pins.size(), false);
    // A pin on an operator pins its storage, whichever of those that share it is named; later pins win.
    constexpr std::size_t kNoPin = std::numeric_limits<std::size_t>::max();
    std::vector<std::size_t> pinOf(operators.size(), kNoPin);
    for (std::size_t p = 0; p < m_request.pins.size(); ++p) {
        for (std::size_t i = 0; i < operators.size(); ++i) {
            if (!globMatches(m_request.pins[p].pattern, operators[i].name))
                continue;
            used[p] = true;
            pinOf[static_cast<std::size_t>(m_owners[i])] = p;
        }
    }
    for (std::size_t i = 0; i < operators.size(); ++i) {
        const Operator& op = operators[i];
        m_placements[i] = openPlacements(op);
        if (pinOf[i] != kNoPin) {
            m_placements[i] = {m_request.pins[pinOf[i]].placement};
            m_pinned[i] = true;
        }
        if (m_pinned[i])
            m_placements[i] = {legalPlacement(op, m_placements[i].front())};
        if (m_placements[i].empty())
            return contract::usageError(
                fmt::format("no placement is allowed for {}; allow replicate, keep or shard", op.name));
    }
    for (std::size_t p = 0; p < used.size(); ++p) {
        if (!used[p])
            return contract::usageError(
                fmt::format("pin \"{}\" matches no operator of {}", m_request.pins[p].pattern, m_request.graph->name));
    }
    // Tied operators follow the owner of their storage.
    for (std::size_t i = 0; i < operators.size(); ++i) {
        const auto owner = static_cast<std::size_t>(m_owners[i]);
        if (owner == i)
            continue;
        m_placements[i] = m_placements[owner];
        m_pinned[i] = m_pinned[owner];
    }
    return {};
}

contract::Result<void> DecisionSpace::chooseBatches() {
    const std::int64_t devices = ranks();
    if (m_request.globalBatch > 0) {
        if (m_request.globalBatch % devices != 0)
            return contract::usageError(
                fmt::format("global batch {} does not divide by {} devices", m_request.globalBatch, devices));
        const std::int64_t each = m_request.globalBatch / devices;
        constexpr std::int64_t kMaximumEach = 1 << 20;
        if (each > kMaximumEach)
            return contract::usageError(
                fmt::format("global batch {} is more than {} samples a device", m_request.globalBatch, kMaximumEach));
        for (std::int64_t samples = 1; samples <= each; ++samples) {
            const bool fits = each % samples == 0 && (m_request.microBatch == 0 || m_request.microBatch == samples) &&
                              (m_request.accumulate == 0 || m_request.accumulate == each / samples);
            if (fits)
                m_batches.push_back({samples, each / samples});
        }
        if (m_batches.empty())
            return contract::usageError(
                fmt::format("global batch {} is not micro-batch {} x accumulate {} x {} devices", m_request.globalBatch,
                            m_request.microBatch > 0 ? std::to_string(m_request.microBatch) : "auto",
                            m_request.accumulate > 0 ? std::to_string(m_request.accumulate) : "auto", devices));
        return {};
    }
    const std::int64_t accumulate = std::max<std::int64_t>(1, m_request.accumulate);
    if (m_request.microBatch > 0) {
        if (m_request.microBatch > (1 << 20))
            return contract::usageError(fmt::format("batch {} is larger than {}", m_request.microBatch, 1 << 20));
        m_batches.push_back({m_request.microBatch, accumulate});
        return {};
    }
    // On CPU cores larger micro-batches gain nothing and only make steps longer.
    constexpr std::int64_t kCpuTokens = 4096;
    const std::int64_t sequence = std::max<std::int64_t>(1, m_request.graph->sequence);
    const bool capped = m_request.cluster.isCpu && m_request.mode == CostMode::Full;
    const std::int64_t largest = capped ? std::max<std::int64_t>(1, kCpuTokens / sequence) : 65536;
    for (std::int64_t samples = 1; samples <= largest;) {
        m_batches.push_back({samples, accumulate});
        std::int64_t step = 1;
        while (samples >= 64 * step)
            step *= 2;
        samples += step;
    }
    return {};
}

contract::Result<void> DecisionSpace::resolveRecompute() {
    const auto& operators = m_request.graph->operators;
    m_recompute.assign(operators.size(), {true, false});
    std::vector<bool> used(m_request.recomputePins.size(), false);
    for (std::size_t i = 0; i < operators.size(); ++i) {
        if (operators[i].block < 0)
            continue;
        m_recompute[i] = {m_request.recompute != RecomputePolicy::On, m_request.recompute != RecomputePolicy::Off};
        for (std::size_t p = 0; p < used.size(); ++p) {
            const RecomputePin& pin = m_request.recomputePins[p];
            if (!globMatches(pin.pattern, operators[i].blockName))
                continue;
            used[p] = true;
            m_recompute[i] = {!pin.recompute, pin.recompute};
        }
    }
    for (std::size_t p = 0; p < used.size(); ++p) {
        if (!used[p])
            return contract::usageError(fmt::format("recompute pin \"{}\" matches no block of {}",
                                                    m_request.recomputePins[p].pattern, m_request.graph->name));
    }
    return {};
}

std::string DecisionSpace::classKey(std::int32_t index) const {
    const Operator& op = m_request.graph->operators[static_cast<std::size_t>(index)];
    const bool rolesDiffer = m_request.cluster.kernels || op.role == contract::OperatorRole::Head;
    std::string key =
        fmt::format("{}/{}/{}/{}/{}/{}/{}/", static_cast<int>(op.kind), rolesDiffer ? static_cast<int>(op.role) : 0,
                    op.flopsForward, op.sharedStorage, op.tiedTo, op.liveActivationElements, op.liveWideElements);
    for (const contract::TensorSpec& tensor : op.tensors)
        key += fmt::format("{}x{},", tensor.rows, tensor.columns);
    for (const contract::ActivationSpec& spec : op.kept)
        key += fmt::format("{}{}{},", spec.elementsPerSample,
                           spec.isByte      ? 'm'
                           : spec.isFloat32 ? 'f'
                                            : 'c',
                           spec.blockInput ? 'b' : 'i');
    return key;
}

/// A placement is of no use when another one needs no more of anything, at any batch; of equals the first stays.
std::vector<std::int32_t> DecisionSpace::usefulPlacements(const OperatorClass& entry) const {
    const auto needs = [&](std::size_t p) {
        const PlacementFacts& facts = entry.facts[p];
        return std::array<double, 9>{static_cast<double>(facts.bytes.state.total()),
                                     static_cast<double>(facts.bytes.slot.total()),
                                     facts.exchange.gather,
                                     facts.exchange.reduce,
                                     facts.exchange.gatherOnce,
                                     facts.exchange.reduceOnce,
                                     facts.optimizerSeconds,
                                     facts.headAgain ? 1.0 : 0.0,
                                     entry.placements[p].held ? 1.0 : 0.0};
    };
    // Those tied to a shared storage pay for its placement as well, so there the owner's needs decide nothing.
    const Operator& op = m_request.graph->operators[static_cast<std::size_t>(entry.op)];
    std::vector<std::array<double, 9>> all;
    for (std::size_t p = 0; p < entry.placements.size(); ++p)
        all.push_back(needs(p));
    std::vector<std::int32_t> useful;
    for (std::size_t p = 0; p < all.size(); ++p) {
        bool beaten = false;
        for (std::size_t q = 0; q < all.size() && !beaten && !op.sharedStorage && !op.isTied(); ++q) {
            bool noMore = q != p;
            for (std::size_t i = 0; i < all[p].size() && noMore; ++i)
                noMore = all[q][i] <= all[p][i];
            beaten = noMore && (all[q] != all[p] || q < p);
        }
        if (!beaten)
            useful.push_back(static_cast<std::int32_t>(p));
    }
    std::stable_sort(useful.begin(), useful.end(), [&](std::int32_t a, std::int32_t b) {
        return all[static_cast<std::size_t>(a)][0] < all[static_cast<std::size_t>(b)][0];
    });
    return useful;
}

void DecisionSpace::buildClasses() {
    const auto& operators = m_request.graph->operators;
    const auto count = static_cast<std::int32_t>(operators.size());
    for (std::int32_t i = 0; i < count; ++i)
        m_ownKeys.push_back(classKey(i));
    const std::vector<std::string>& own = m_ownKeys;
    std::unordered_map<std::string, std::int32_t> known;
    for (std::int32_t i = 0; i < count; ++i) {
        const auto at = static_cast<std::size_t>(i);
        const bool endsBlock =
            operators[at].block >= 0 && (i + 1 == count || operators[at + 1].block != operators[at].block);
        std::string key = own[at] + "|" + (i > 0 ? own[at - 1] : "") + "|" + (i + 1 < count ? own[at + 1] : "") +
                          fmt::format("|{}{}{}|", endsBlock, m_recompute[at][0], m_recompute[at][1]);
        for (const Placement& placement : m_placements[at])
            key += contract::formatPlacement(placement) + ",";
        const auto [entry, isNew] = known.emplace(std::move(key), static_cast<std::int32_t>(m_classes.size()));
        m_operatorClass.push_back(entry->second);
        if (!isNew)
            continue;
        OperatorClass fresh{i, i - 1, i + 1 < count ? i + 1 : -1, endsBlock, m_placements[at], {}, {}};
        for (const Placement& placement : fresh.placements)
            fresh.facts.push_back(m_pricer.facts(operators[at], placement));
        fresh.useful = usefulPlacements(fresh);
        m_classes.push_back(std::move(fresh));
    }
}

void DecisionSpace::buildSample() {
    const auto& operators = m_request.graph->operators;
    std::unordered_map<std::string, bool> known;
    std::int32_t blocks = 0;
    for (std::size_t begin = 0; begin < operators.size();) {
        std::size_t end = begin + 1;
        while (end < operators.size() && operators[begin].block >= 0 && operators[end].block == operators[begin].block)
            ++end;
        std::string key;
        for (std::size_t i = begin; i < end; ++i)
            key += std::to_string(m_operatorClass[i]) + ",";
        if (operators[begin].block < 0 || known.emplace(key, true).second) {
            for (std::size_t i = begin; i < end; ++i) {
                m_sample.push_back(operators[i]);
                if (operators[i].block >= 0)
                    m_sample.back().block = blocks;
            }
            if (operators[begin].block >= 0) {
                ++blocks;
                m_sampleRecompute.push_back(m_recompute[begin]);
            }
        }
        begin = end;
    }
}

} // namespace shardscope::planner
