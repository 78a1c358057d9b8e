// SPDX-License-Identifier: GPL-3.0-or-later
#include "planner/search/Reasons.h"

#include "runtime/contract/Bytes.h"

#include <algorithm>
#include <cmath>

namespace shardscope::planner {

using contract::Placement;

namespace {

constexpr std::size_t index(std::int32_t value) {
    return static_cast<std::size_t>(value);
}

/// Bytes of state and picoseconds of a unit (an owner and those tied to it) under one placement.
struct UnitPrice {
    std::int64_t bytes = 0;
    std::int64_t picoseconds = 0;
};

struct Flip {
    std::int64_t bytes = 0;
    Placement placement;
};

/// Walks budgets upwards by growing steps until the placement differs, then bisects to a MiB. Small operators fill what
/// others leave and may change several times; the first change that the walk meets is reported.
std::optional<Flip> findFlip(const Planner& planner, const PlanResult& plan, std::int32_t op,
                             std::int64_t largestBudget, const SearchBudget& budget) {
    constexpr std::int64_t kFirstStep = 16 * contract::kMiB;
    constexpr double kStepGrowth = 1.35;
    const Placement chosen = plan.operators[index(op)].placement;
    const auto placementAt = [&](std::int64_t limit) -> std::optional<Placement> {
        const PlanResultPointer other = planner.solve(limit, budget);
        if (!other->feasible || other->cancelled)
            return std::nullopt;
        return other->operators[index(op)].placement;
    };
    std::int64_t low = plan.limitBytes;
    std::optional<Flip> flip;
    for (double step = kFirstStep; !flip && low < largestBudget; step *= kStepGrowth) {
        const std::int64_t high = std::min(largestBudget, low + static_cast<std::int64_t>(step));
        const auto placement = placementAt(high);
        if (!placement)
            return std::nullopt;
        if (*placement != chosen)
            flip = Flip{high, *placement};
        else
            low = high;
    }
    while (flip && flip->bytes - low > contract::kMiB) {
        const std::int64_t middle = low + (flip->bytes - low) / 2;
        const auto placement = placementAt(middle);
        if (!placement)
            return std::nullopt;
        if (*placement != chosen)
            flip = Flip{middle, *placement};
        else
            low = middle;
    }
    return flip;
}

/// Seconds that a coalesced block's communication takes less without one of its operators.
double leavingSaves(const DecisionSpace& space, const BatchTable& table, const PlanResult& plan, std::int32_t op) {
    const auto& operators = space.request().graph->operators;
    std::vector<OperatorPricer::Member> with, without;
    for (std::size_t i = 0; i < operators.size(); ++i) {
        if (operators[i].block != operators[index(op)].block || !plan.operators[i].coalesced)
            continue;
        with.push_back({operators[i], plan.operators[i].placement});
        if (static_cast<std::int32_t>(i) != op)
            without.push_back({operators[i], plan.operators[i].placement});
    }
    for (const BundleGroup& group : space.groups()) {
        for (const Bundle& bundle : group.members) {
            if (bundle.units.front().operators.front() > op || bundle.units.back().operators.back() < op ||
                group.front().variants.empty())
                continue;
            const auto seconds = [&](const std::vector<OperatorPricer::Member>& members) {
                return table.coalescedCost(group.front(), space.pricer().coalesce(members)).exposedSeconds();
            };
            return seconds(with) - seconds(without);
        }
    }
    return 0;
}

/// The other ways to place a block that is placed alike.
std::vector<Reason> blockReasons(const DecisionSpace& space, const BatchTable& table, const PlanResult& plan,
                                 std::int32_t owner) {
    std::vector<Reason> reasons;
    for (std::size_t g = 0; g < space.groups().size(); ++g) {
        const BundleGroup& group = space.groups()[g];
        for (const Bundle& bundle : group.members) {
            const auto unit = std::find_if(bundle.units.begin(), bundle.units.end(),
                                           [&](const Unit& u) { return u.operators.front() == owner; });
            if (unit == bundle.units.end())
                continue;
            const auto placementOf = [&](const BlockVariant& variant, std::size_t u) {
                return space.classes()[index(bundle.units[u].classes.front())].placements[index(variant.placements[u])];
            };
            const auto isChosen = [&](const BlockVariant& variant) {
                for (std::size_t u = 0; u < bundle.units.size(); ++u) {
                    const PlannedOperator& planned = plan.operators[index(bundle.units[u].operators.front())];
                    if (placementOf(variant, u) != planned.placement || variant.members[u] != planned.coalesced)
                        return false;
                }
                return true;
            };
            const auto& variants = group.front().variants;
            const auto chosen = std::find_if(variants.begin(), variants.end(), isChosen);
            if (chosen == variants.end())
                return {};
            const bool recompute = plan.operators[index(owner)].recompute;
            const auto& options = table.groups()[g].variants;
            const VariantOption& now = options[static_cast<std::size_t>(chosen - variants.begin())];
            for (std::size_t v = 0; v < variants.size(); ++v) {
                const Placement other = placementOf(variants[v], static_cast<std::size_t>(unit - bundle.units.begin()));
                if (!options[v].isPossible() || other == plan.operators[index(owner)].placement)
                    continue;
                reasons.push_back({other, options[v].bytes - now.bytes,
                                   static_cast<double>(options[v].time[recompute] - now.time[recompute]) * 1e-12, true,
                                   std::nullopt, std::nullopt});
            }
            return reasons;
        }
    }
    return reasons;
}

} // namespace

std::vector<Reason> explainOperator(const Planner& planner, const PlanSearch& search, const PlanResult& plan,
                                    std::int32_t op, std::int64_t largestBudget, const SearchBudget& budget) {
    const DecisionSpace& space = search.space();
    if (!plan.feasible || op < 0 || index(op) >= plan.operators.size())
        return {};
    const auto& operators = space.request().graph->operators;
    const std::vector<std::int32_t> owners = contract::storageOwners(operators);
    const std::int32_t owner = owners[index(op)];
    std::size_t batchIndex = 0;
    while (batchIndex < space.batches().size() && (space.batches()[batchIndex].samples != plan.training.microBatch ||
                                                   space.batches()[batchIndex].accumulate != plan.training.accumulate))
        ++batchIndex;
    if (batchIndex == space.batches().size())
        return {};
    const BatchTable& table = search.table(batchIndex);
    const std::vector<Placement>& placements = space.classes()[index(space.operatorClasses()[index(owner)])].placements;
    const Placement chosen = plan.operators[index(owner)].placement;
    const auto at = std::find(placements.begin(), placements.end(), chosen);
    if (at == placements.end())
        return {};
    const bool coalesced = plan.operators[index(owner)].coalesced;
    // A coalesced operator that leaves its collective makes that one shorter; what needs a slot cannot leave.
    const double saved = coalesced ? leavingSaves(space, table, plan, owner) : 0;
    const auto price = [&](std::size_t placement) {
        UnitPrice total;
        for (std::size_t i = 0; i < operators.size(); ++i) {
            if (owners[i] != owner)
                continue;
            const std::int32_t c = space.operatorClasses()[i];
            total.bytes += space.classes()[index(c)].facts[placement].bytes.state.total();
            const auto seconds = space.pricer().stepSeconds(space.classes()[index(c)].facts[placement],
                                                            table.forwardSeconds(static_cast<std::int32_t>(i)),
                                                            table.situation(c, plan.operators[i].recompute));
            total.picoseconds += std::llround(seconds * 1e12);
        }
        return total;
    };
    std::vector<Reason> reasons;
    // One of each kind, the quickest.
    const auto add = [&](const Reason& reason) {
        if (reason.alternative.kind == chosen.kind && chosen.kind == contract::PlacementKind::Shard)
            return;
        const auto same = std::find_if(reasons.begin(), reasons.end(), [&](const Reason& known) {
            return known.alternative.kind == reason.alternative.kind;
        });
        if (same == reasons.end())
            reasons.push_back(reason);
        else if (reason.stepDeltaSeconds < same->stepDeltaSeconds)
            *same = reason;
    };
    const bool isByBlock = space.request().granularity == Granularity::Block && operators[index(owner)].block >= 0;
    for (const Reason& reason : isByBlock ? blockReasons(space, table, plan, owner) : std::vector<Reason>())
        add(reason);
    UnitPrice now = price(static_cast<std::size_t>(at - placements.begin()));
    if (coalesced) {
        OperatorCost cost = plan.operators[index(owner)].cost;
        cost.exposedGatherSeconds = cost.exposedReduceSeconds = 0;
        now.picoseconds = std::llround((cost.stepSeconds() + saved) * 1e12);
    }

    for (std::size_t p = 0; p < placements.size() && !isByBlock; ++p) {
        if (placements[p] == chosen)
            continue;
        if (placements[p].held && plan.training.accumulate == 1)
            continue;
        if (coalesced && space.classes()[index(space.operatorClasses()[index(owner)])].facts[p].bytes.slot.total() > 0)
            continue;
        const UnitPrice other = price(p);
        add({placements[p], other.bytes - now.bytes, static_cast<double>(other.picoseconds - now.picoseconds) * 1e-12,
             false, std::nullopt, std::nullopt});
    }
    std::stable_sort(reasons.begin(), reasons.end(),
                     [](const Reason& a, const Reason& b) { return a.stepDeltaSeconds < b.stepDeltaSeconds; });
    if (!reasons.empty()) {
        if (const auto flip = findFlip(planner, plan, op, largestBudget, budget)) {
            reasons.front().flipBytes = flip->bytes;
            reasons.front().flipPlacement = flip->placement;
        }
    }
    return reasons;
}

} // namespace shardscope::planner
