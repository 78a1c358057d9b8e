// SPDX-License-Identifier: GPL-3.0-or-later
#include "planner/search/Branching.h"

#include "planner/search/BlockRelaxation.h"

#include <algorithm>
#include <optional>

namespace shardscope::planner {

namespace {

/// So many bundles outside blocks are given an option.
constexpr std::size_t kPivots = 2;
/// Beyond so many combinations of the smaller groups' recomputed blocks only the larger groups are split.
constexpr std::int64_t kMaximumCombinations = 256;

class Brancher {
public:
    Brancher(const BatchTable& table, const BranchingLimits& limits,
             const std::function<bool(std::int64_t)>& interesting)
        : m_table(table), m_limits(limits), m_interesting(interesting) {}

    std::vector<Branch> run() {
        choosePivots();
        chooseSplits();
        m_relaxation = BlockRelaxation::createSplit(m_table, m_limits.live, m_limits.slot, m_without, m_split);
        if (!m_relaxation)
            return {};
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
        // With recomputation still open the bounds are weaker, but there are few of them.
        const auto whole = BlockRelaxation::create(m_table, m_limits.live, m_limits.slot, m_without);
        for (const Branch& branch : open) {
            const std::int64_t bound = whole->knapsack().lowerBound(m_limits.capacity - branch.bytes);
            if (bound >= kInfeasibleTime || !m_interesting(branch.bound + bound))
                continue;
            if (m_split.empty()) {
                m_branches.push_back(branch);
                m_branches.back().bound += bound;
                m_branches.back().multiplier = whole->knapsack().multiplier(m_limits.capacity - branch.bytes);
            } else {
                splitRest(branch, 1);
            }
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
                if (option.slot <= m_limits.slot &&
                    (pivot.options.empty() || option.time[0] < pivot.options.back().time[0]))
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
            if (groups[g].allowed[0] && m_table.mayRecompute(groups[g], m_limits.live))
                m_split.push_back(g);
        }
        std::stable_sort(m_split.begin(), m_split.end(),
                         [&](std::size_t a, std::size_t b) { return groups[a].count > groups[b].count; });
        std::int64_t combinations = 1;
        for (std::size_t i = 1; i < m_split.size(); ++i) {
            combinations *= groups[m_split[i]].count + 1;
            if (combinations > kMaximumCombinations) {
                m_split.resize(i);
                break;
            }
        }
    }

    std::optional<Branch> bounded(Branch branch, std::int32_t recomputed) const {
        branch.recomputed[m_split.front()] = recomputed;
        Slope multiplier;
        const std::int64_t bound =
            m_relaxation->splitBound(m_limits.capacity - branch.bytes, branch.recomputed, multiplier);
        if (bound >= kInfeasibleTime)
            return std::nullopt;
        branch.bound += bound;
        branch.multiplier = multiplier;
        return branch;
    }

    /// Gives the numbers of the smaller groups one after the other, then walks over those of the largest.
    void splitRest(const Branch& branch, std::size_t next) {
        if (next < m_split.size()) {
            const std::size_t group = m_split[next];
            for (std::int32_t n = 0; n <= m_table.groups()[group].count; ++n) {
                Branch longer = branch;
                longer.recomputed[group] = n;
                splitRest(longer, next + 1);
            }
            return;
        }
        // The bound is convex in the number, and what fits is an end of the range: more recomputation, fewer bytes.
        const std::int32_t count = m_table.groups()[m_split.front()].count;
        const auto value = [&](std::int32_t n) {
            const std::optional<Branch> at = bounded(branch, n);
            return at ? at->bound : kInfeasibleTime;
        };
        std::int32_t low = 0, high = count;
        while (low < high) {
            const std::int32_t middle = low + (high - low) / 2;
            const std::int64_t here = value(middle);
            // Where nothing fits, more blocks must be recomputed.
            if (here >= kInfeasibleTime || value(middle + 1) < here)
                low = middle + 1;
            else
                high = middle;
        }
        const auto take = [&](std::int32_t n) {
            std::optional<Branch> at = bounded(branch, n);
            // Bounds are rounded up by less than a picosecond, which may hide where they fall: allow for it.
            if (!at || !m_interesting(at->bound - count - 1))
                return false;
            m_branches.push_back(std::move(*at));
            return true;
        };
        if (!take(low))
            return;
        for (std::int32_t n = low + 1; n <= count && take(n); ++n) {
        }
        for (std::int32_t n = low - 1; n >= 0 && take(n); --n) {
        }
    }

    const BatchTable& m_table;
    const BranchingLimits& m_limits;
    const std::function<bool(std::int64_t)>& m_interesting;
    std::vector<Pivot> m_pivots;
    std::vector<std::size_t> m_without;
    std::vector<std::size_t> m_split;
    std::shared_ptr<const BlockRelaxation> m_relaxation;
    std::vector<Branch> m_branches;
};

} // namespace

std::vector<Branch> makeBranches(const BatchTable& table, const BranchingLimits& limits,
                                 const std::function<bool(std::int64_t)>& interesting) {
    return Brancher(table, limits, interesting).run();
}

} // namespace shardscope::planner
