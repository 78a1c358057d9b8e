// SPDX-License-Identifier: GPL-3.0-or-later
#include "planner/search/ThresholdTable.h"

#include <algorithm>
#include <array>
#include <limits>

namespace shardscope::planner {

namespace {

constexpr std::int64_t kNever = std::numeric_limits<std::int64_t>::max();

/// By rising bytes: an option is of use if it is faster than all before it, with recomputation or without.
std::vector<UnitOption> usefulOptions(const std::vector<UnitOption>& options, std::int64_t slot,
                                      const std::array<bool, 2>& allowed) {
    std::vector<UnitOption> useful;
    std::array<std::int64_t, 2> fastest{kNever, kNever};
    for (const UnitOption& option : options) {
        if (option.slot > slot)
            continue;
        bool faster = false;
        for (const std::size_t recompute : {std::size_t{0}, std::size_t{1}}) {
            if (!allowed[recompute] || option.time[recompute] >= fastest[recompute])
                continue;
            fastest[recompute] = option.time[recompute];
            faster = true;
        }
        if (faster)
            useful.push_back(option);
    }
    return useful;
}

/// Bundles outside blocks are few and may be large: branching tells them apart.
bool mayMerge(const GroupTable& group) {
    return group.count > 1 || group.units.size() > 1 || group.allowed[1] || !group.variants.empty();
}

bool alike(const GroupTable& a, const GroupTable& b) {
    return a.allowed == b.allowed && a.kept == b.kept && a.separateAllowed == b.separateAllowed && a.units == b.units &&
           a.variants == b.variants;
}

} // namespace

ThresholdTable::ThresholdTable(const BatchTable& table, std::int64_t live, std::int64_t slot) : m_slot(slot) {
    for (std::size_t g = 0; g < table.groups().size(); ++g) {
        const GroupTable& original = table.groups()[g];
        GroupTable group;
        group.count = original.count;
        group.allowed = {original.allowed[0], table.mayRecompute(original, live)};
        group.kept = original.kept;
        group.separateAllowed = original.separateAllowed;
        for (const std::vector<UnitOption>& unit : original.units)
            group.units.push_back(usefulOptions(unit, slot, group.allowed));
        // Indices of variants are part of a choice, so those that do not fit keep their places.
        for (const VariantOption& variant : original.variants)
            group.variants.push_back(variant.slot <= slot ? variant : VariantOption{0, VariantOption::kNever, {}});
        while (!group.variants.empty() && group.variants.back().slot > slot)
            group.variants.pop_back();
        std::size_t same = 0;
        while (same < m_groups.size() && !(mayMerge(group) && alike(m_groups[same], group)))
            ++same;
        if (same == m_groups.size()) {
            m_groups.push_back(std::move(group));
            m_originals.emplace_back();
        } else {
            m_groups[same].count += group.count;
        }
        m_originals[same].push_back({g, original.count});
    }
}

GroupRuns ThresholdTable::expand(GroupRuns runs) const {
    std::size_t groups = 0;
    for (const std::vector<Original>& originals : m_originals)
        groups += originals.size();
    GroupRuns expanded(groups);
    for (std::size_t g = 0; g < runs.size(); ++g) {
        // The order in which choices are dealt out must not depend on how they were found.
        std::sort(runs[g].begin(), runs[g].end(),
                  [](const ChosenRun& a, const ChosenRun& b) { return a.choice < b.choice; });
        auto run = runs[g].begin();
        for (const Original& original : m_originals[g]) {
            for (std::int32_t left = original.count; left > 0;) {
                const std::int32_t count = std::min(left, run->count);
                expanded[original.group].push_back({run->choice, count});
                left -= count;
                run->count -= count;
                if (run->count == 0)
                    ++run;
            }
        }
    }
    return expanded;
}

} // namespace shardscope::planner
