// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "planner/search/Knapsack.h"
#include "planner/search/ThresholdTable.h"

#include <cstdint>
#include <memory>
#include <vector>

namespace shardscope::planner {

/// The linear relaxation under bounds on live memory and slots. Of the many ways to combine a block's placements only
/// those on the convex hull matter to it; they come from merging the hulls of the block's units by slope. Bounds are
/// exact, and every solution it holds is one of the whole problem.
class BlockRelaxation {
public:
    /// Nothing when some bundle cannot be placed under the bounds. `without`: groups to leave out.
    static std::shared_ptr<const BlockRelaxation> create(const BatchTable& table, std::int64_t live, std::int64_t slot,
                                                         const std::vector<std::size_t>& without = {});

    /// The same with the blocks of the groups `split` taken apart by whether they are recomputed; see splitBound().
    static std::shared_ptr<const BlockRelaxation> createSplit(const ThresholdTable& table,
                                                              const std::vector<std::size_t>& without,
                                                              const std::vector<std::size_t>& split);
    /// The linear bound when `recomputed[g]` blocks of each split group g are recomputed.
    std::int64_t splitBound(std::int64_t capacity, const std::vector<std::int32_t>& recomputed,
                            Slope& multiplier) const;

    const Knapsack& knapsack() const { return m_knapsack; }
    /// What a solution of the knapsack decides.
    GroupRuns runs(const KnapsackSolution& solution) const;
    /// Roughly what it occupies.
    std::int64_t memoryBytes() const { return m_memoryBytes; }

private:
    /// From the choice with the least bytes, one unit after the other moves to its next hull point.
    struct Way {
        bool recompute = false;
        std::int32_t variant = BundleChoice::kSeparate;
        std::size_t firstOption = 0;
        std::vector<std::int32_t> start; ///< placements with the least bytes, per unit
        struct Move {
            std::int32_t unit;
            std::int32_t placement;
        };
        std::vector<Move> moves;
    };
    struct Builder;
    /// A group of the knapsack: all blocks of a group of the table, or those that are (not) recomputed.
    struct Part {
        std::size_t group;
        std::int32_t count; ///< of the whole group
        bool isSplit;
        bool recompute;
    };

    BundleChoice choice(std::size_t group, std::size_t option) const;
    explicit BlockRelaxation(Knapsack knapsack) : m_knapsack(std::move(knapsack)) {}

    Knapsack m_knapsack;
    std::vector<std::vector<Way>> m_ways; ///< [group]
    std::vector<Part> m_parts;            ///< of a split relaxation
    std::int64_t m_memoryBytes = 0;
};

} // namespace shardscope::planner
