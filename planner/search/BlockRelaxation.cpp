// SPDX-License-Identifier: GPL-3.0-or-later
#include "planner/search/BlockRelaxation.h"

#include <algorithm>

namespace shardscope::planner {

struct BlockRelaxation::Builder {
    struct Edge {
        std::int64_t bytes;
        std::int64_t time; ///< saved
        Way::Move move;
    };

    std::int64_t slot;
    std::vector<Edge> edges;
    std::vector<const UnitOption*> hull;

    /// The lower left hull of a unit's options; false when none fits.
    bool buildHull(const std::vector<UnitOption>& options, bool recompute) {
        hull.clear();
        for (const UnitOption& option : options) { // by rising bytes
            if (option.slot > slot)
                continue;
            if (!hull.empty() && hull.back()->time[recompute] <= option.time[recompute])
                continue;
            if (!hull.empty() && hull.back()->bytes == option.bytes)
                hull.pop_back();
            while (hull.size() >= 2) {
                const UnitOption& a = *hull[hull.size() - 2];
                const UnitOption& b = *hull.back();
                const Slope first{a.time[recompute] - b.time[recompute], b.bytes - a.bytes};
                const Slope second{b.time[recompute] - option.time[recompute], option.bytes - b.bytes};
                if (steeper(first, second))
                    break;
                hull.pop_back();
            }
            hull.push_back(&option);
        }
        return !hull.empty();
    }

    /// `ways`: null where nobody will ask for choices.
    bool addSeparate(const GroupTable& group, bool recompute, std::vector<KnapsackOption>& options,
                     std::vector<Way>* ways) {
        Way way{recompute, BundleChoice::kSeparate, options.size(), {}, {}};
        KnapsackOption sum{group.kept[recompute], 0};
        edges.clear();
        for (std::size_t u = 0; u < group.units.size(); ++u) {
            if (!buildHull(group.units[u], recompute))
                return false;
            if (ways != nullptr)
                way.start.push_back(hull.front()->placement);
            sum.bytes += hull.front()->bytes;
            sum.time += hull.front()->time[recompute];
            for (std::size_t i = 1; i < hull.size(); ++i)
                edges.push_back({hull[i]->bytes - hull[i - 1]->bytes,
                                 hull[i - 1]->time[recompute] - hull[i]->time[recompute],
                                 {static_cast<std::int32_t>(u), hull[i]->placement}});
        }
        std::stable_sort(edges.begin(), edges.end(), [](const Edge& a, const Edge& b) {
            return steeper({a.time, a.bytes}, {b.time, b.bytes});
        });
        options.push_back(sum);
        for (const Edge& edge : edges) {
            sum.bytes += edge.bytes;
            sum.time -= edge.time;
            options.push_back(sum);
            if (ways != nullptr)
                way.moves.push_back(edge.move);
        }
        if (ways != nullptr)
            ways->push_back(std::move(way));
        return true;
    }

    void addWays(const GroupTable& group, bool recompute, std::vector<KnapsackOption>& options,
                 std::vector<Way>* ways) {
        if (group.separateAllowed)
            addSeparate(group, recompute, options, ways);
        for (std::size_t v = 0; v < group.variants.size(); ++v) {
            const VariantOption& variant = group.variants[v];
            if (variant.slot > slot)
                continue;
            if (ways != nullptr)
                ways->push_back({recompute, static_cast<std::int32_t>(v), options.size(), {}, {}});
            options.push_back({group.kept[recompute] + variant.bytes, variant.time[recompute]});
        }
    }

    void addGroup(const GroupTable& group, const std::array<bool, 2>& allowed, std::vector<KnapsackOption>& options,
                  std::vector<Way>* ways) {
        for (const bool recompute : {false, true}) {
            if (allowed[recompute])
                addWays(group, recompute, options, ways);
        }
    }
};

std::shared_ptr<const BlockRelaxation> BlockRelaxation::create(const BatchTable& table, std::int64_t live,
                                                               std::int64_t slot,
                                                               const std::vector<std::size_t>& without) {
    Builder builder{slot, {}, {}};
    std::vector<KnapsackGroup> groups;
    std::vector<std::vector<Way>> ways;
    std::int64_t memory = 0;
    for (std::size_t g = 0; g < table.groups().size(); ++g) {
        if (std::find(without.begin(), without.end(), g) != without.end())
            continue;
        const GroupTable& group = table.groups()[g];
        KnapsackGroup& options = groups.emplace_back(KnapsackGroup{group.count, {}});
        builder.addGroup(group, {group.allowed[0], table.mayRecompute(group, live)}, options.options,
                         &ways.emplace_back());
        if (options.options.empty())
            return nullptr;
        memory += static_cast<std::int64_t>(options.options.size()) * 128;
    }
    auto knapsack = Knapsack::createRelaxation(groups);
    if (!knapsack)
        return nullptr;
    std::shared_ptr<BlockRelaxation> relaxation(new BlockRelaxation(std::move(*knapsack)));
    relaxation->m_ways = std::move(ways);
    relaxation->m_memoryBytes = memory;
    return relaxation;
}

std::shared_ptr<const BlockRelaxation> BlockRelaxation::createSplit(const ThresholdTable& table,
                                                                    const std::vector<std::size_t>& without,
                                                                    const std::vector<std::size_t>& split) {
    const auto among = [](const std::vector<std::size_t>& list, std::size_t g) {
        return std::find(list.begin(), list.end(), g) != list.end();
    };
    Builder builder{table.slot(), {}, {}};
    std::vector<KnapsackGroup> groups;
    std::vector<Part> parts;
    for (std::size_t g = 0; g < table.groups().size(); ++g) {
        if (among(without, g))
            continue;
        const GroupTable& group = table.groups()[g];
        if (!among(split, g)) {
            parts.push_back({g, group.count, false, false});
            builder.addGroup(group, group.allowed, groups.emplace_back(KnapsackGroup{group.count, {}}).options,
                             nullptr);
            continue;
        }
        for (const bool recompute : {false, true}) {
            parts.push_back({g, group.count, true, recompute});
            builder.addWays(group, recompute, groups.emplace_back(KnapsackGroup{group.count, {}}).options, nullptr);
        }
    }
    auto knapsack = Knapsack::createRelaxation(groups);
    if (!knapsack)
        return nullptr;
    std::shared_ptr<BlockRelaxation> relaxation(new BlockRelaxation(std::move(*knapsack)));
    relaxation->m_parts = std::move(parts);
    return relaxation;
}

std::int64_t BlockRelaxation::splitBound(std::int64_t capacity, const std::vector<std::int32_t>& recomputed,
                                         Slope& multiplier) const {
    std::vector<std::int32_t> counts;
    counts.reserve(m_parts.size());
    for (const Part& part : m_parts)
        counts.push_back(!part.isSplit    ? part.count
                         : part.recompute ? recomputed[part.group]
                                          : part.count - recomputed[part.group]);
    return m_knapsack.lowerBound(capacity, counts, multiplier);
}

GroupRuns BlockRelaxation::runs(const KnapsackSolution& solution) const {
    GroupRuns runs(solution.counts.size());
    for (std::size_t g = 0; g < runs.size(); ++g) {
        for (std::size_t option = 0; option < solution.counts[g].size(); ++option) {
            if (solution.counts[g][option] > 0)
                runs[g].push_back({choice(g, option), solution.counts[g][option]});
        }
    }
    return runs;
}

BundleChoice BlockRelaxation::choice(std::size_t group, std::size_t option) const {
    const std::vector<Way>& ways = m_ways[group];
    const auto next = std::upper_bound(ways.begin(), ways.end(), option,
                                       [](std::size_t value, const Way& way) { return value < way.firstOption; });
    const Way& way = *std::prev(next);
    BundleChoice choice{way.recompute, way.variant, way.start};
    for (std::size_t i = 0; i < option - way.firstOption; ++i)
        choice.placements[static_cast<std::size_t>(way.moves[i].unit)] = way.moves[i].placement;
    return choice;
}

} // namespace shardscope::planner
