// SPDX-License-Identifier: GPL-3.0-or-later
// What is decided together: units that share a storage, the bundles of a block and its coalesced variants, groups of
// equal bundles, and the slot sizes at which more becomes possible.
#include "planner/search/DecisionSpace.h"

#include <algorithm>
#include <limits>
#include <unordered_map>

namespace shardscope::planner {

using contract::Placement;
using contract::PlacementKind;
using contract::ShardGroup;

namespace {
constexpr std::int64_t kNoWay = std::numeric_limits<std::int64_t>::max();
} // namespace

bool DecisionSpace::mayCoalesce() const {
    return m_request.mode == CostMode::Full && ranks() > 1 && m_request.coalescing != Coalescing::Never;
}

std::string DecisionSpace::stretchKey(Stretch stretch) const {
    std::string key;
    for (std::int32_t op = stretch.begin; op < stretch.end; ++op)
        key += m_ownKeys[static_cast<std::size_t>(op)] + "+";
    return key;
}

void DecisionSpace::addVariants(Bundle& bundle) const {
    if (mayCoalesce())
        addCoalescedVariants(bundle);
    bundle.separateAllowed = bundle.variants.empty() || m_request.coalescing != Coalescing::Always;
    if (!isByBlock() || !bundle.separateAllowed)
        return;
    addUniformVariants(bundle);
    bundle.separateAllowed = false;
}

/// The placement of its class that is meant when its whole block is placed as `wanted`: itself, else the same in as
/// many slices as the operator can be cut into, else the same without holding gradients, else whole (or what its pin
/// says).
std::int32_t DecisionSpace::nearestPlacement(const OperatorClass& entry, const Placement& wanted) const {
    std::int32_t nearest = -1;
    int nearestRank = 0;
    for (std::size_t p = 0; p < entry.placements.size(); ++p) {
        const Placement& placement = entry.placements[p];
        const bool isSameKind = placement.kind == wanted.kind && placement.group == wanted.group;
        const bool isWhole = placement.shardedSlices == placement.slices;
        int rank = 1; // anything
        if (placement == wanted)
            rank = 1'000'000;
        else if (isSameKind && isWhole && placement.slices < wanted.slices)
            rank = 1000 + placement.slices;
        else if (isSameKind && !placement.isSharded())
            rank = 100;
        else if (!placement.isSharded())
            rank = placement.kind == PlacementKind::Keep && placement.group == wanted.group && !placement.held ? 3 : 2;
        if (rank > nearestRank) {
            nearest = static_cast<std::int32_t>(p);
            nearestRank = rank;
        }
    }
    return nearest;
}

/// Every way to place a block alike, each operator with collectives of its own.
void DecisionSpace::addUniformVariants(Bundle& bundle) const {
    std::vector<Placement> wanted;
    for (const Unit& unit : bundle.units) {
        for (const Placement& placement : m_classes[static_cast<std::size_t>(unit.classes.front())].placements) {
            const bool isWhole = !placement.isSharded() || placement.shardedSlices == placement.slices;
            if (isWhole && std::find(wanted.begin(), wanted.end(), placement) == wanted.end())
                wanted.push_back(placement);
        }
    }
    const std::size_t coalesced = bundle.variants.size();
    for (const Placement& placement : wanted) {
        BlockVariant variant;
        variant.members.assign(bundle.units.size(), false);
        for (const Unit& unit : bundle.units) {
            const std::int32_t p =
                nearestPlacement(m_classes[static_cast<std::size_t>(unit.classes.front())], placement);
            variant.placements.push_back(p);
            for (const std::int32_t c : unit.classes) {
                const contract::SlotSize& slot =
                    m_classes[static_cast<std::size_t>(c)].facts[static_cast<std::size_t>(p)].bytes.slot;
                if (slot.total() > variant.slot.total())
                    variant.slot = slot;
            }
        }
        const bool isKnown =
            std::any_of(bundle.variants.begin() + static_cast<std::ptrdiff_t>(coalesced), bundle.variants.end(),
                        [&](const BlockVariant& known) { return known.placements == variant.placements; });
        if (!isKnown)
            bundle.variants.push_back(std::move(variant));
    }
}

/// Every way to place the block alike (sharded or kept, over all ranks or inside nodes) around what is pinned, with one
/// gather and one reduction.
void DecisionSpace::addCoalescedVariants(Bundle& bundle) const {
    const auto& operators = m_request.graph->operators;
    const auto memberOf = [&](const Placement& placement, const Placement& wanted) {
        return placement.group == wanted.group && !placement.held && !placement.isSplit() &&
               placement.kind != PlacementKind::Replicate;
    };
    for (const ShardGroup group : {ShardGroup::World, ShardGroup::Node}) {
        for (const PlacementKind kind : {PlacementKind::Shard, PlacementKind::Keep}) {
            const Placement wanted{kind, 1, 1, group};
            BlockVariant variant;
            std::vector<OperatorPricer::Member> members;
            bool possible = true;
            bool asWanted = false;
            for (const Unit& unit : bundle.units) {
                const contract::Operator& op = operators[static_cast<std::size_t>(unit.operators.front())];
                const OperatorClass& entry = m_classes[static_cast<std::size_t>(unit.classes.front())];
                const auto found = std::find(entry.placements.begin(), entry.placements.end(), wanted);
                const std::size_t p =
                    found == entry.placements.end() ? 0 : static_cast<std::size_t>(found - entry.placements.begin());
                possible = possible && unit.operators.size() == 1 && !op.sharedStorage && !op.isTied() &&
                           (found != entry.placements.end() || entry.placements.size() == 1);
                const Placement& placement = entry.placements[p];
                const bool member = memberOf(placement, wanted);
                possible = possible && (member || entry.facts[p].bytes.slot.total() == 0);
                asWanted = asWanted || placement == wanted;
                variant.placements.push_back(static_cast<std::int32_t>(p));
                variant.members.push_back(member);
                if (!member)
                    continue;
                members.push_back({op, placement});
                variant.slot.gatheredBytes += entry.facts[p].bytes.slot.gatheredBytes;
                variant.slot.unreducedBytes += entry.facts[p].bytes.slot.unreducedBytes;
            }
            if (!possible || !asWanted || members.size() < 2)
                continue;
            variant.exchange = m_pricer.coalesce(members);
            bundle.variants.push_back(std::move(variant));
        }
    }
}

void DecisionSpace::buildGroups() {
    const auto& operators = m_request.graph->operators;
    std::vector<Unit> unitOf(operators.size());
    for (std::size_t i = 0; i < operators.size(); ++i) {
        Unit& unit = unitOf[static_cast<std::size_t>(m_owners[i])];
        unit.operators.push_back(static_cast<std::int32_t>(i));
        unit.classes.push_back(m_operatorClass[i]);
    }
    // The operators [begin, end) around `op` that lie in its block, or itself.
    const auto stretchAround = [&](std::size_t op) {
        std::size_t begin = op, end = op + 1;
        while (operators[op].block >= 0 && begin > 0 && operators[begin - 1].block == operators[op].block)
            --begin;
        while (operators[op].block >= 0 && end < operators.size() && operators[end].block == operators[op].block)
            ++end;
        return Stretch{static_cast<std::int32_t>(begin), static_cast<std::int32_t>(end)};
    };
    std::vector<Bundle> bundles;
    std::int32_t openBlock = -1;
    for (std::size_t i = 0; i < operators.size(); ++i) {
        if (unitOf[i].operators.empty())
            continue;
        const bool open =
            operators[i].block >= 0 && ((m_recompute[i][0] && m_recompute[i][1]) || mayCoalesce() || isByBlock());
        if (!open || operators[i].block != openBlock) {
            Bundle bundle;
            bundle.recomputeAllowed = m_recompute[i];
            const Stretch own = stretchAround(i);
            if (own.begin > 0)
                bundle.before = stretchAround(static_cast<std::size_t>(own.begin) - 1);
            if (static_cast<std::size_t>(own.end) < operators.size())
                bundle.after = stretchAround(static_cast<std::size_t>(own.end));
            bundles.push_back(std::move(bundle));
        }
        openBlock = open ? operators[i].block : -1;
        bundles.back().units.push_back(std::move(unitOf[i]));
    }
    std::unordered_map<std::string, std::size_t> known;
    for (Bundle& bundle : bundles) {
        std::string key;
        for (const Unit& unit : bundle.units) {
            for (const std::int32_t index : unit.classes)
                key += std::to_string(index) + ",";
            key += ";";
        }
        const std::int32_t first = bundle.units.front().operators.front();
        const bool isBlock = operators[static_cast<std::size_t>(first)].block >= 0;
        if (mayCoalesce() && isBlock)
            key += "|" + stretchKey(bundle.before) + "|" + stretchKey(bundle.after);
        const auto [entry, isNew] = known.emplace(std::move(key), m_groups.size());
        if (isNew) {
            if (isBlock)
                addVariants(bundle);
            m_groups.emplace_back();
        }
        m_groups[entry->second].members.push_back(std::move(bundle));
    }
}

/// Bytes of state that a bundle needs when no slot may be larger than `slot`; kNoWay when it cannot be placed so.
std::int64_t DecisionSpace::leastState(const Bundle& bundle, std::int64_t slot) const {
    std::int64_t least = bundle.separateAllowed ? 0 : kNoWay;
    for (const Unit& unit : bundle.units) {
        std::int64_t unitLeast = kNoWay;
        for (const std::int32_t p : m_classes[static_cast<std::size_t>(unit.classes.front())].useful) {
            std::int64_t state = 0;
            bool fits = true;
            for (const std::int32_t c : unit.classes) {
                const PlacementBytes& bytes =
                    m_classes[static_cast<std::size_t>(c)].facts[static_cast<std::size_t>(p)].bytes;
                state += bytes.state.total();
                fits = fits && bytes.slot.total() <= slot;
            }
            if (fits)
                unitLeast = std::min(unitLeast, state);
        }
        least = least == kNoWay || unitLeast == kNoWay ? kNoWay : least + unitLeast;
    }
    for (const BlockVariant& variant : bundle.variants) {
        if (variant.slot.total() > slot)
            continue;
        std::int64_t state = 0;
        for (std::size_t u = 0; u < bundle.units.size(); ++u) {
            for (const std::int32_t c : bundle.units[u].classes)
                state += m_classes[static_cast<std::size_t>(c)]
                             .facts[static_cast<std::size_t>(variant.placements[u])]
                             .bytes.state.total();
        }
        least = std::min(least, state);
    }
    return least;
}

void DecisionSpace::buildSlotLevels() {
    std::vector<std::int64_t> slots{0};
    for (const OperatorClass& entry : m_classes) {
        for (const std::int32_t p : entry.useful)
            slots.push_back(entry.facts[static_cast<std::size_t>(p)].bytes.slot.total());
    }
    for (const BundleGroup& group : m_groups) {
        for (const BlockVariant& variant : group.front().variants)
            slots.push_back(variant.slot.total());
    }
    std::sort(slots.begin(), slots.end());
    slots.erase(std::unique(slots.begin(), slots.end()), slots.end());
    for (const std::int64_t slot : slots) {
        std::int64_t sum = 0;
        for (const BundleGroup& group : m_groups) {
            const std::int64_t least = leastState(group.front(), slot);
            sum = least == kNoWay || sum == kNoWay ? kNoWay
                                                   : sum + static_cast<std::int64_t>(group.members.size()) * least;
        }
        if (sum != kNoWay)
            m_slotLevels.push_back({slot, sum});
    }
}

} // namespace shardscope::planner
