// SPDX-License-Identifier: GPL-3.0-or-later
#include "planner/search/Branching.h"

#include "planner/search/BlockRelaxation.h"

#include <algorithm>
#include <optional>

namespace shardscope::planner {

namespace {

/// So many bundles outside blocks are given an option.
constexpr std::size_t kPivots = 2;

class Brancher {
public:
    Brancher(const ThresholdTable& table, std::int64_t capacity, const std::function<bool(std::int64_t)>& interesting)
        : m_table(table), m_capacity(capacity), m_interesting(interesting) {}

    std::vector<Branch> run() {
        choosePivots();
        chooseSplits();
        m_relaxations.resize(m_split.size() + 1);
        Branch root;
        root.recomputed.assign(m_table.groups().size(), Branch::kOpen);
        std::vector<Branch> open{root};
        for (const Pivot& pivot : m_pivots) {
            std::vector<Branch> next;
            for (const Branch& branch : open) {
                for (const UnitOption& option : pivot.options) {
                    Branch& longer = next.emplace_back(branch);
                    longer.fixed.push_back({pivot.group, option});
                    longer.bytes += m_table.groups()[pivot.group].kept[0] + option.bytes;
                    longer.bound += option.time[0];
                }
            }
            open = std::move(next);
        }
        for (const Branch& branch : open) {
            if (std::optional<Branch> at = bounded(branch, 0); at && m_interesting(at->bound))
                m_split.empty() ? m_branches.push_back(std::move(*at)) : split(branch, 0);
        }
        std::stable_sort(m_branches.begin(), m_branches.end(),
                         [](const Branch& a, const Branch& b) { return a.bound < b.bound; });
        return std::move(m_branches);
    }

private:
    /// A bundle of which there is one, outside blocks, with the options that no other beats.
    struct Pivot {
        std::size_t group;
        std::vector<UnitOption> options;
        std::int64_t span() const { return options.back().bytes - options.front().bytes; }
    };

    void choosePivots() {
        const std::vector<GroupTable>& groups = m_table.groups();
        for (std::size_t g = 0; g < groups.size(); ++g) {
            if (groups[g].count != 1 || groups[g].units.size() != 1 || !groups[g].variants.empty() ||
                groups[g].allowed[1])
                continue;
            Pivot pivot{g, {}};
            for (const UnitOption& option : groups[g].units.front()) {
                if (pivot.options.empty() || option.time[0] < pivot.options.back().time[0])
                    pivot.options.push_back(option);
            }
            if (pivot.options.size() > 1)
                m_pivots.push_back(std::move(pivot));
        }
        std::stable_sort(m_pivots.begin(), m_pivots.end(),
                         [](const Pivot& a, const Pivot& b) { return a.span() > b.span(); });
        m_pivots.resize(std::min(m_pivots.size(), kPivots));
        for (const Pivot& pivot : m_pivots)
            m_without.push_back(pivot.group);
    }

    /// Groups whose blocks may be recomputed or not, the largest first.
    void chooseSplits() {
        const std::vector<GroupTable>& groups = m_table.groups();
        for (std::size_t g = 0; g < groups.size(); ++g) {
            if (groups[g].allowed[0] && groups[g].allowed[1])
                m_split.push_back(g);
        }
        std::stable_sort(m_split.begin(), m_split.end(),
                         [&](std::size_t a, std::size_t b) { return groups[a].count > groups[b].count; });
    }

    /// The branch with its bound when the first `depth` groups are given; nothing when it cannot be.
    std::optional<Branch> bounded(Branch branch, std::size_t depth) {
        auto& relaxation = m_relaxations[depth];
        if (!relaxation) {
            const std::vector<std::size_t> apart(m_split.begin(), m_split.begin() + static_cast<std::ptrdiff_t>(depth));
            relaxation = BlockRelaxation::createSplit(m_table, m_without, apart);
        }
        if (!relaxation)
            return std::nullopt;
        Slope multiplier;
        const std::int64_t bound = relaxation->splitBound(m_capacity - branch.bytes, branch.recomputed, multiplier);
        if (bound >= kInfeasibleTime)
            return std::nullopt;
        branch.bound += bound;
        branch.multiplier = multiplier;
        return branch;
    }

    /// Gives the number of recomputed blocks of one group after the other.
    void split(const Branch& branch, std::size_t depth) {
        const std::size_t group = m_split[depth];
        const std::int32_t count = m_table.groups()[group].count;
        const auto with = [&](std::int32_t n) {
            Branch longer = branch;
            longer.recomputed[group] = n;
            return longer;
        };
        const auto value = [&](std::int32_t n) {
            const std::optional<Branch> at = bounded(with(n), depth + 1);
            return at ? at->bound : kInfeasibleTime;
        };
        // The bound is convex in the number; where nothing fits, more blocks must be recomputed.
        std::int32_t low = 0, high = count;
        while (low < high) {
            const std::int32_t middle = low + (high - low) / 2;
            const std::int64_t here = value(middle);
            if (here >= kInfeasibleTime || value(middle + 1) < here)
                low = middle + 1;
            else
                high = middle;
        }
        const auto take = [&](std::int32_t n) {
            std::optional<Branch> at = bounded(with(n), depth + 1);
            // Bounds are rounded up by less than a picosecond, which may hide where they fall: allow for it.
            if (!at || !m_interesting(at->bound - count - 1))
                return false;
            if (depth + 1 == m_split.size())
                m_branches.push_back(std::move(*at));
            else
                split(with(n), depth + 1);
            return true;
        };
        if (!take(low))
            return;
        for (std::int32_t n = low + 1; n <= count && take(n); ++n) {
        }
        for (std::int32_t n = low - 1; n >= 0 && take(n); --n) {
        }
    }

    const ThresholdTable& m_table;
    const std::int64_t m_capacity;
    const std::function<bool(std::int64_t)>& m_interesting;
    std::vector<Pivot> m_pivots;
    std::vector<std::size_t> m_without;
    std::vector<std::size_t> m_split;
    std::vector<std::shared_ptr<const BlockRelaxation>>
        m_relaxations; ///< [groups taken apart, the first of m_split]; made on demand
    std::vector<Branch> m_branches;
};

} // namespace

std::vector<Branch> makeBranches(const ThresholdTable& table, std::int64_t capacity,
                                 const std::function<bool(std::int64_t)>& interesting) {
    return Brancher(table, capacity, interesting).run();
}

} // namespace shardscope::planner
