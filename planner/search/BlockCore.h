// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "planner/search/Branching.h"
#include "planner/search/Knapsack.h"
#include "planner/search/ThresholdTable.h"

#include <array>
#include <cstdint>
#include <optional>
#include <stop_token>
#include <vector>

namespace shardscope::planner {

/// Every choice of every bundle that a solution of a branch of at most `time` picoseconds within `capacity` bytes of
/// state and kept activations can contain: what exceeds the Lagrangian bound at the branch's multiplier by more than
/// the time leaves is dropped (reduced-cost fixing), and so is what another choice of the same bundle dominates.
class BlockCore {
public:
    struct Limits {
        std::int64_t capacity = 0;
        std::int64_t time = 0; ///< inclusive
        const Branch* branch = nullptr;
        std::int64_t workLimit = 0; ///< 0: none
        std::stop_token stop{};
    };
    enum class Outcome { Built, NothingBetter, Stopped };

    BlockCore(const ThresholdTable& table, Limits limits);

    Outcome build();
    const Knapsack& knapsack() const { return *m_knapsack; }
    /// What a solution of the knapsack decides.
    GroupRuns runs(const KnapsackSolution& solution) const;
    std::int64_t work() const { return m_work; }

private:
    struct Point {
        std::int64_t bytes, time;
        std::int32_t parent, option;
    };

    /// Bundles of a group that are decided under the same conditions.
    struct Part {
        std::size_t group;
        std::int32_t count;
        std::array<bool, 2> mayUse; ///< [recompute]
        const UnitOption* fixed;
    };
    /// What a group of the knapsack stands for: whole bundles of a part, or one of their units.
    struct Source {
        static constexpr std::int32_t kWhole = -1;
        std::size_t part;
        std::int32_t unit;
        std::vector<BundleChoice> choices;    ///< of whole bundles
        std::vector<std::int32_t> placements; ///< of a unit
    };

    std::vector<Part> makeParts() const;
    Int128 weight(std::int64_t bytes, std::int64_t time) const;
    std::optional<Int128> leastWeight(const GroupTable& group, bool recompute) const;
    std::optional<Int128> leastWeight(const Part& part) const;
    bool decomposes(const Part& part, Int128 ceiling) const;
    void addUnits(std::size_t part, Int128 allowance, std::vector<KnapsackGroup>& groups);
    std::vector<ChosenRun> pairUnits(std::size_t firstSource, const KnapsackSolution& solution) const;
    void compose(const Part& part, Int128 ceiling, std::vector<KnapsackOption>& options,
                 std::vector<BundleChoice>& choices);
    bool composeSeparate(const GroupTable& group, bool recompute, Int128 ceiling, std::vector<KnapsackOption>& options,
                         std::vector<BundleChoice>& choices);

    const ThresholdTable& m_table;
    Limits m_limits;
    std::vector<Part> m_parts;
    std::optional<Knapsack> m_knapsack;
    std::vector<Source> m_sources; ///< [group of the knapsack]
    std::int64_t m_work = 0;
    bool m_stopped = false;
};

} // namespace shardscope::planner
