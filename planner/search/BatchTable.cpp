// SPDX-License-Identifier: GPL-3.0-or-later
#include "planner/search/BatchTable.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <tuple>

namespace shardscope::planner {

namespace {

constexpr std::size_t index(std::int32_t value) {
    return static_cast<std::size_t>(value);
}
std::int64_t toPicoseconds(double seconds) {
    return std::llround(seconds * 1e12);
}

} // namespace

BatchTable::BatchTable(const DecisionSpace& space, DecisionSpace::Batch batch) : m_space(space), m_batch(batch) {
    const PlanRequest& request = space.request();
    const auto& operators = request.graph->operators;
    m_base = contract::sizeBase(operators, request.graph->sequence, batch.samples, request.lossChunks, space.ranks(),
                                space.preset());
    if (request.mode == CostMode::Paper)
        m_base = {.logits = m_base.logits}; // the paper counts neither inputs nor communication buffers
    m_fixedBytes = m_base.total() + request.cluster.reserveBytes();
    priceClasses();
    m_liveFloor = live({}).total();
    for (const BundleGroup& group : space.groups())
        m_groups.push_back(makeGroup(group));

    std::int64_t leastLive = m_liveFloor;
    m_liveLevels.push_back(m_liveFloor);
    for (const GroupTable& group : m_groups) {
        if (group.allowed[1])
            m_liveLevels.push_back(m_liveFloor + group.recomputeBytes);
        if (!group.allowed[0])
            leastLive = std::max(leastLive, m_liveFloor + group.recomputeBytes);
    }
    std::sort(m_liveLevels.begin(), m_liveLevels.end());
    m_liveLevels.erase(std::unique(m_liveLevels.begin(), m_liveLevels.end()), m_liveLevels.end());
    m_liveLevels.erase(m_liveLevels.begin(), std::lower_bound(m_liveLevels.begin(), m_liveLevels.end(), leastLive));
    const Smallest least = smallest();
    m_smallestPeak =
        m_fixedBytes + transientBytes(least.live, least.level.slot) + minimumKept(least.live) + least.level.leastState;
}

void BatchTable::priceClasses() {
    const auto& operators = m_space.request().graph->operators;
    for (const OperatorClass& entry : m_space.classes())
        m_forwardSeconds.push_back(m_space.pricer().forwardSeconds(operators[index(entry.op)], m_batch.samples));
    for (std::size_t c = 0; c < m_space.classes().size(); ++c) {
        const OperatorClass& entry = m_space.classes()[c];
        const contract::Operator& op = operators[index(entry.op)];
        m_kept.push_back({m_space.pricer().keptBytes(op, m_batch.samples, false),
                          m_space.pricer().keptBytes(op, m_batch.samples, true)});
        auto& times = m_times.emplace_back(entry.placements.size());
        for (const bool recompute : {false, true}) {
            const OperatorPricer::Situation here = situation(static_cast<std::int32_t>(c), recompute);
            for (const std::int32_t p : entry.useful)
                times[index(p)][recompute] =
                    toPicoseconds(m_space.pricer().stepSeconds(entry.facts[index(p)], m_forwardSeconds[c], here));
        }
    }
}

GroupTable BatchTable::makeGroup(const BundleGroup& group) const {
    const auto& operators = m_space.request().graph->operators;
    const Bundle& front = group.front();
    GroupTable table;
    table.count = static_cast<std::int32_t>(group.members.size());
    table.allowed = front.recomputeAllowed;
    table.separateAllowed = front.separateAllowed;
    std::int32_t block = -1;
    for (const Unit& unit : front.units) {
        const OperatorClass& owner = m_space.classes()[index(unit.classes.front())];
        std::vector<UnitOption> options;
        for (const std::int32_t p : owner.useful) {
            if (!available(owner.placements[index(p)]) && owner.useful.size() > 1)
                continue;
            UnitOption option{0, 0, {}, p};
            for (const std::int32_t c : unit.classes) {
                const PlacementBytes& bytes = m_space.classes()[index(c)].facts[index(p)].bytes;
                option.bytes += bytes.state.total();
                option.slot = std::max(option.slot, bytes.slot.total());
                for (const bool recompute : {false, true})
                    option.time[recompute] += m_times[index(c)][index(p)][recompute];
            }
            options.push_back(option);
        }
        const auto order = [](const UnitOption& a, const UnitOption& b) {
            return std::tie(a.bytes, a.placement) < std::tie(b.bytes, b.placement);
        };
        if (!std::is_sorted(options.begin(), options.end(), order)) // they are, unless storages are shared
            std::sort(options.begin(), options.end(), order);
        table.units.push_back(std::move(options));
        for (const std::int32_t c : unit.classes) {
            for (const bool recompute : {false, true})
                table.kept[recompute] += m_kept[index(c)][recompute];
        }
        block = operators[index(unit.operators.front())].block;
    }
    for (const BlockVariant& variant : front.variants)
        table.variants.push_back(priceVariant(front, variant));
    // A block decided operator by operator still needs the whole block's intermediates.
    if (block >= 0 && table.allowed[1])
        table.recomputeBytes = contract::recomputeBytes(operators, block, m_space.preset(), m_batch.samples);
    return table;
}

VariantOption BatchTable::priceVariant(const Bundle& front, const BlockVariant& variant) const {
    VariantOption option{0, variant.slot.total(), {}};
    if (variant.isCoalesced()) {
        const std::int64_t communication = toPicoseconds(coalescedCost(front, variant.exchange).exposedSeconds());
        option.time = {communication, communication};
    }
    for (std::size_t u = 0; u < front.units.size(); ++u) {
        const std::size_t p = index(variant.placements[u]);
        if (!available(m_space.classes()[index(front.units[u].classes.front())].placements[p]))
            option.slot = VariantOption::kNever;
        for (const std::int32_t c : front.units[u].classes) {
            PlacementFacts facts = m_space.classes()[index(c)].facts[p];
            option.bytes += facts.bytes.state.total();
            if (variant.members[u])
                facts.exchange = {}; // the block's is priced above
            for (const bool recompute : {false, true})
                option.time[recompute] += toPicoseconds(
                    m_space.pricer().stepSeconds(facts, m_forwardSeconds[index(c)], situation(c, recompute)));
        }
    }
    return option;
}

OperatorCost BatchTable::coalescedCost(const Bundle& front, const Exchange& exchange) const {
    OperatorPricer::Neighbours neighbours;
    for (std::int32_t op = front.before.begin; op < front.before.end; ++op)
        neighbours.forwardSeconds += forwardSeconds(op);
    for (std::int32_t op = front.after.begin; op < front.after.end; ++op)
        neighbours.backwardSeconds += 2 * forwardSeconds(op);
    return m_space.pricer().priceCoalesced(exchange, m_batch.accumulate, neighbours);
}

double BatchTable::forwardSeconds(std::int32_t op) const {
    return op < 0 ? 0.0 : m_forwardSeconds[index(m_space.operatorClasses()[index(op)])];
}

OperatorPricer::Situation BatchTable::situation(std::int32_t operatorClass, bool recompute) const {
    const OperatorClass& entry = m_space.classes()[index(operatorClass)];
    OperatorPricer::Situation situation{m_batch.samples, m_batch.accumulate, recompute, entry.endsBlock, {}};
    situation.neighbours = {forwardSeconds(entry.previous), 2 * forwardSeconds(entry.next)};
    return situation;
}

contract::LiveRegions BatchTable::live(const std::vector<bool>& recomputedSampleBlocks) const {
    return contract::sizeLive(m_space.sample(), m_space.preset(), m_batch.samples, recomputedSampleBlocks);
}

std::int64_t BatchTable::minimumKept(std::int64_t live) const {
    std::int64_t total = 0;
    for (const GroupTable& group : m_groups) {
        std::int64_t bytes = std::numeric_limits<std::int64_t>::max();
        for (const bool recompute : {false, true}) {
            if (recompute ? mayRecompute(group, live) : group.allowed[0])
                bytes = std::min(bytes, group.kept[recompute]);
        }
        total += group.count * bytes;
    }
    return total;
}

BatchTable::Smallest BatchTable::smallest() const {
    const auto live = std::min_element(m_liveLevels.begin(), m_liveLevels.end(), [&](std::int64_t a, std::int64_t b) {
        return a + minimumKept(a) < b + minimumKept(b);
    });
    const auto& levels = m_space.slotLevels();
    const auto level = std::min_element(levels.begin(), levels.end(), [&](const auto& a, const auto& b) {
        return m_space.slotCount() * a.slot + a.leastState < m_space.slotCount() * b.slot + b.leastState;
    });
    return {*live, *level};
}

} // namespace shardscope::planner
