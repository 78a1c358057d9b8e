// SPDX-License-Identifier: GPL-3.0-or-later
#include "planner/search/BlockCore.h"

#include <algorithm>
#include <tuple>

namespace shardscope::planner {

namespace {

/// A composition this large is not worth its memory: its threshold then keeps its linear bound, unproven.
constexpr std::size_t kMaximumPoints = 1'000'000;

} // namespace

BlockCore::BlockCore(const ThresholdTable& table, Limits limits) : m_table(table), m_limits(std::move(limits)) {}

Int128 BlockCore::weight(std::int64_t bytes, std::int64_t time) const {
    return static_cast<Int128>(m_limits.branch->multiplier.bytes) * time +
           static_cast<Int128>(m_limits.branch->multiplier.time) * bytes;
}

std::optional<Int128> BlockCore::leastWeight(const GroupTable& group, bool recompute) const {
    std::optional<Int128> least;
    if (group.separateAllowed) {
        Int128 sum = weight(group.kept[recompute], 0);
        bool possible = true;
        for (const std::vector<UnitOption>& unit : group.units) {
            std::optional<Int128> unitLeast;
            for (const UnitOption& option : unit) {
                const Int128 w = weight(option.bytes, option.time[recompute]);
                if (!unitLeast || w < *unitLeast)
                    unitLeast = w;
            }
            possible = possible && unitLeast;
            sum += unitLeast.value_or(0);
        }
        if (possible)
            least = sum;
    }
    for (const VariantOption& variant : group.variants) {
        const Int128 w = weight(group.kept[recompute] + variant.bytes, variant.time[recompute]);
        if (variant.slot <= m_table.slot() && (!least || w < *least))
            least = w;
    }
    return least;
}

std::vector<BlockCore::Part> BlockCore::makeParts() const {
    std::vector<Part> parts;
    for (std::size_t g = 0; g < m_table.groups().size(); ++g) {
        const GroupTable& group = m_table.groups()[g];
        const UnitOption* fixed = nullptr;
        for (const Branch::Fixed& given : m_limits.branch->fixed)
            fixed = given.group == g ? &given.option : fixed;
        const std::int32_t recomputed = m_limits.branch->recomputed[g];
        if (recomputed == Branch::kOpen) {
            parts.push_back({g, group.count, {group.allowed[0], group.allowed[1]}, fixed});
            continue;
        }
        if (recomputed < group.count)
            parts.push_back({g, group.count - recomputed, {true, false}, nullptr});
        if (recomputed > 0)
            parts.push_back({g, recomputed, {false, true}, nullptr});
    }
    return parts;
}

std::optional<Int128> BlockCore::leastWeight(const Part& part) const {
    const GroupTable& group = m_table.groups()[part.group];
    if (part.fixed != nullptr)
        return weight(group.kept[0] + part.fixed->bytes, part.fixed->time[0]);
    std::optional<Int128> least;
    for (const bool recompute : {false, true}) {
        if (!part.mayUse[recompute])
            continue;
        const std::optional<Int128> w = leastWeight(group, recompute);
        if (w && (!least || *w < *least))
            least = w;
    }
    return least;
}

BlockCore::Outcome BlockCore::build() {
    m_parts = makeParts();
    std::vector<Int128> least;
    Int128 allowance = weight(m_limits.capacity, m_limits.time);
    for (const Part& part : m_parts) {
        const std::optional<Int128> w = leastWeight(part);
        if (!w)
            return Outcome::NothingBetter;
        least.push_back(*w);
        allowance -= part.count * *w;
    }
    if (allowance < 0)
        return Outcome::NothingBetter;
    std::vector<KnapsackGroup> groups;
    for (std::size_t i = 0; i < m_parts.size(); ++i) {
        if (decomposes(m_parts[i], least[i] + allowance)) {
            addUnits(i, allowance, groups);
            continue;
        }
        KnapsackGroup group{m_parts[i].count, {}};
        Source& source = m_sources.emplace_back(Source{i, Source::kWhole, {}, {}});
        compose(m_parts[i], least[i] + allowance, group.options, source.choices);
        if (m_stopped)
            return Outcome::Stopped;
        groups.push_back(std::move(group));
    }
    auto knapsack = Knapsack::create(groups);
    if (!knapsack)
        return Outcome::Stopped;
    m_knapsack = std::move(*knapsack);
    return Outcome::Built;
}

bool BlockCore::decomposes(const Part& part, Int128 ceiling) const {
    const GroupTable& group = m_table.groups()[part.group];
    if (part.fixed != nullptr || (part.mayUse[0] && part.mayUse[1]) || !group.separateAllowed || group.units.size() < 2)
        return false;
    const bool recompute = part.mayUse[1];
    return std::none_of(group.variants.begin(), group.variants.end(), [&](const VariantOption& variant) {
        return variant.slot <= m_table.slot() &&
               weight(group.kept[recompute] + variant.bytes, variant.time[recompute]) <= ceiling;
    });
}

/// Every unit as a group; the first one's options carry what the blocks keep.
void BlockCore::addUnits(std::size_t index, Int128 allowance, std::vector<KnapsackGroup>& groups) {
    const Part& part = m_parts[index];
    const GroupTable& group = m_table.groups()[part.group];
    const bool recompute = part.mayUse[1];
    for (std::size_t u = 0; u < group.units.size(); ++u) {
        std::optional<Int128> least;
        for (const UnitOption& option : group.units[u]) {
            const Int128 w = weight(option.bytes, option.time[recompute]);
            if (!least || w < *least)
                least = w;
        }
        KnapsackGroup& unit = groups.emplace_back(KnapsackGroup{part.count, {}});
        Source& source = m_sources.emplace_back(Source{index, static_cast<std::int32_t>(u), {}, {}});
        for (const UnitOption& option : group.units[u]) {
            if (weight(option.bytes, option.time[recompute]) > *least + allowance)
                continue;
            unit.options.push_back({option.bytes + (u == 0 ? group.kept[recompute] : 0), option.time[recompute]});
            source.placements.push_back(option.placement);
        }
    }
    m_work += static_cast<std::int64_t>(group.units.size());
}

/// Blocks from how many of them choose each option of each unit: in order, so that runs are long.
std::vector<ChosenRun> BlockCore::pairUnits(std::size_t firstSource, const KnapsackSolution& solution) const {
    const Part& part = m_parts[m_sources[firstSource].part];
    const std::size_t units = m_table.groups()[part.group].units.size();
    std::vector<std::size_t> option(units, 0);
    std::vector<std::int32_t> left(units, 0); // of the option at hand
    std::vector<ChosenRun> runs;
    for (std::int32_t done = 0; done < part.count;) {
        ChosenRun run{{part.mayUse[1], BundleChoice::kSeparate, std::vector<std::int32_t>(units)}, part.count - done};
        for (std::size_t u = 0; u < units; ++u) {
            const auto& counts = solution.counts[firstSource + u];
            if (done == 0)
                left[u] = counts[0];
            while (left[u] == 0)
                left[u] = counts[++option[u]];
            run.choice.placements[u] = m_sources[firstSource + u].placements[option[u]];
            run.count = std::min(run.count, left[u]);
        }
        for (std::int32_t& rest : left)
            rest -= run.count;
        done += run.count;
        runs.push_back(std::move(run));
    }
    return runs;
}

GroupRuns BlockCore::runs(const KnapsackSolution& solution) const {
    GroupRuns runs(m_table.groups().size());
    for (std::size_t g = 0; g < m_sources.size(); ++g) {
        const Source& source = m_sources[g];
        std::vector<ChosenRun>& group = runs[m_parts[source.part].group];
        if (source.unit == 0) {
            const std::vector<ChosenRun> paired = pairUnits(g, solution);
            group.insert(group.end(), paired.begin(), paired.end());
        }
        for (std::size_t option = 0; source.unit == Source::kWhole && option < source.choices.size(); ++option) {
            if (solution.counts[g][option] > 0)
                group.push_back({source.choices[option], solution.counts[g][option]});
        }
    }
    return runs;
}

void BlockCore::compose(const Part& part, Int128 ceiling, std::vector<KnapsackOption>& options,
                        std::vector<BundleChoice>& choices) {
    const GroupTable& group = m_table.groups()[part.group];
    if (part.fixed != nullptr) {
        options.push_back({group.kept[0] + part.fixed->bytes, part.fixed->time[0]});
        choices.push_back({false, BundleChoice::kSeparate, {part.fixed->placement}});
        return;
    }
    for (const bool recompute : {false, true}) {
        if (!part.mayUse[recompute])
            continue;
        if (group.separateAllowed && !composeSeparate(group, recompute, ceiling, options, choices))
            return;
        for (std::size_t v = 0; v < group.variants.size(); ++v) {
            const VariantOption& variant = group.variants[v];
            const std::int64_t bytes = group.kept[recompute] + variant.bytes;
            if (variant.slot > m_table.slot() || weight(bytes, variant.time[recompute]) > ceiling)
                continue;
            options.push_back({bytes, variant.time[recompute]});
            choices.push_back({recompute, static_cast<std::int32_t>(v), {}});
        }
    }
}

bool BlockCore::composeSeparate(const GroupTable& group, bool recompute, Int128 ceiling,
                                std::vector<KnapsackOption>& options, std::vector<BundleChoice>& choices) {
    const auto before = [](const Point& a, const Point& b) {
        return std::tie(a.bytes, a.time) < std::tie(b.bytes, b.time);
    };
    // What the units still to come weigh at least.
    std::vector<Int128> rest(group.units.size() + 1, 0);
    for (std::size_t u = group.units.size(); u-- > 0;) {
        std::optional<Int128> least;
        for (const UnitOption& option : group.units[u]) {
            const Int128 w = weight(option.bytes, option.time[recompute]);
            if (!least || w < *least)
                least = w;
        }
        if (!least)
            return true;
        rest[u] = rest[u + 1] + *least;
    }
    std::vector<std::vector<Point>> layers{{{group.kept[recompute], 0, -1, -1}}};
    std::vector<Point> shifted, merged, both;
    for (std::size_t u = 0; u < group.units.size(); ++u) {
        const std::vector<UnitOption>& unit = group.units[u];
        merged.clear();
        std::int64_t fastest = -1; // of the options so far, which have no more bytes
        for (std::size_t o = 0; o < unit.size(); ++o) {
            const UnitOption& option = unit[o];
            if (fastest >= 0 && fastest <= option.time[recompute])
                continue;
            fastest = option.time[recompute];
            shifted.clear();
            for (std::size_t i = 0; i < layers.back().size(); ++i) {
                const Point& from = layers.back()[i];
                const Point to{from.bytes + option.bytes, from.time + option.time[recompute],
                               static_cast<std::int32_t>(i), static_cast<std::int32_t>(o)};
                if (weight(to.bytes, to.time) + rest[u + 1] <= ceiling)
                    shifted.push_back(to);
            }
            m_work += static_cast<std::int64_t>(layers.back().size());
            both.resize(merged.size() + shifted.size());
            std::merge(merged.begin(), merged.end(), shifted.begin(), shifted.end(), both.begin(), before);
            std::swap(merged, both);
            m_stopped = m_limits.stop.stop_requested() || merged.size() > kMaximumPoints ||
                        (m_limits.workLimit > 0 && m_work > m_limits.workLimit);
            if (m_stopped)
                return false;
        }
        std::vector<Point> pareto;
        for (const Point& point : merged) {
            if (pareto.empty() || point.time < pareto.back().time)
                pareto.push_back(point);
        }
        layers.push_back(std::move(pareto));
    }
    for (const Point& last : layers.back()) {
        options.push_back({last.bytes, last.time});
        BundleChoice choice{recompute, BundleChoice::kSeparate, std::vector<std::int32_t>(group.units.size())};
        const Point* point = &last;
        for (std::size_t u = group.units.size(); u > 0; --u) {
            choice.placements[u - 1] = group.units[u - 1][static_cast<std::size_t>(point->option)].placement;
            point = &layers[u - 1][static_cast<std::size_t>(point->parent)];
        }
        choices.push_back(std::move(choice));
    }
    return true;
}

} // namespace shardscope::planner
