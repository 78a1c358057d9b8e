// SPDX-License-Identifier: GPL-3.0-or-later
#include "planner/search/PlanSearch.h"

namespace shardscope::planner {

namespace {

constexpr std::size_t index(std::int32_t value) {
    return static_cast<std::size_t>(value);
}

} // namespace

PlacementCounts countPlacements(const DecisionSpace& space, const GroupRuns& runs) {
    PlacementCounts counts;
    for (std::size_t g = 0; g < runs.size(); ++g) {
        const Bundle& front = space.groups()[g].front();
        for (const ChosenRun& run : runs[g]) {
            const bool whole = run.choice.variant != BundleChoice::kSeparate;
            const BlockVariant* variant = whole ? &front.variants[index(run.choice.variant)] : nullptr;
            for (std::size_t u = 0; u < front.units.size(); ++u) {
                const Unit& unit = front.units[u];
                const std::int32_t p = whole ? variant->placements[u] : run.choice.placements[u];
                const contract::Placement& placement =
                    space.classes()[index(unit.classes.front())].placements[index(p)];
                const std::int64_t operators = run.count * static_cast<std::int64_t>(unit.operators.size());
                switch (placement.kind) {
                case contract::PlacementKind::Replicate:
                    counts.replicate += operators;
                    break;
                case contract::PlacementKind::Keep:
                    counts.keep += operators;
                    break;
                case contract::PlacementKind::Shard:
                    counts.shard += operators;
                    counts.split += placement.isSplit() ? operators : 0;
                    break;
                }
                counts.coalesced += whole && variant->members[u] ? operators : 0;
            }
        }
    }
    return counts;
}

Decided decide(const DecisionSpace& space, const GroupRuns& runs) {
    const auto& operators = space.request().graph->operators;
    Decided decided{std::vector<std::int32_t>(operators.size(), 0),
                    std::vector<bool>(operators.size(), false),
                    std::vector<bool>(operators.size(), false),
                    {}};
    for (std::size_t g = 0; g < runs.size(); ++g) {
        const BundleGroup& group = space.groups()[g];
        std::size_t member = 0;
        for (const ChosenRun& run : runs[g]) {
            const bool whole = run.choice.variant != BundleChoice::kSeparate;
            const BlockVariant* variant = whole ? &group.front().variants[index(run.choice.variant)] : nullptr;
            for (std::int32_t n = 0; n < run.count; ++n, ++member) {
                const Bundle& bundle = group.members[member];
                if (whole && variant->isCoalesced())
                    decided.blocks.push_back({g, member, run.choice.variant});
                for (std::size_t u = 0; u < bundle.units.size(); ++u) {
                    for (const std::int32_t op : bundle.units[u].operators) {
                        decided.placements[index(op)] = whole ? variant->placements[u] : run.choice.placements[u];
                        decided.recompute[index(op)] = run.choice.recompute && operators[index(op)].block >= 0;
                        decided.coalesced[index(op)] = whole && variant->members[u];
                    }
                }
            }
        }
    }
    return decided;
}

Reached reach(const DecisionSpace& space, const BatchTable& table, const Decided& decided) {
    Reached reached;
    const auto& operators = space.request().graph->operators;
    const auto enlarge = [&](const contract::SlotSize& slot, std::size_t op) {
        if (slot.total() <= reached.slot.total())
            return;
        reached.slot = slot;
        reached.slotOperator = static_cast<std::int32_t>(op);
    };
    std::vector<bool> recomputed(static_cast<std::size_t>(space.request().graph->blockCount()), false);
    bool any = false;
    contract::SlotSize block; // of the coalesced operators of a block, which share a slot
    for (std::size_t i = 0; i < operators.size(); ++i) {
        const std::int32_t c = space.operatorClasses()[i];
        const PlacementBytes& bytes = space.classes()[index(c)].facts[index(decided.placements[i])].bytes;
        reached.stateAndKept += bytes.state.total() + table.keptBytes(c, decided.recompute[i]);
        if (i == 0 || operators[i].block != operators[i - 1].block)
            block = {};
        if (decided.coalesced[i]) {
            block = {block.gatheredBytes + bytes.slot.gatheredBytes, block.unreducedBytes + bytes.slot.unreducedBytes};
            enlarge(block, i);
        } else {
            enlarge(bytes.slot, i);
        }
        if (operators[i].block >= 0 && decided.recompute[i]) {
            recomputed[index(operators[i].block)] = true;
            any = true;
        }
    }
    reached.live =
        any ? contract::sizeLive(operators, space.preset(), table.batch().samples, recomputed) : table.live({});
    return reached;
}

} // namespace shardscope::planner
