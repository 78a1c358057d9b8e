// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "planner/search/DecisionSpace.h"
#include "planner/search/Knapsack.h"

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

namespace shardscope::planner {

/// One way to decide a bundle: recomputed or not, and an option of each unit.
struct BundleChoice {
    bool recompute = false;
    std::vector<std::int32_t> placements; ///< per unit, index into its owner class's placements
};

/// The knapsack left when the largest slot and the live memory are bounded.
class ComposedProblem {
public:
    ComposedProblem(Knapsack knapsack, std::vector<std::vector<BundleChoice>> choices)
        : m_knapsack(std::move(knapsack)), m_choices(std::move(choices)) {}
    const Knapsack& knapsack() const { return m_knapsack; }
    /// [group][option], as the knapsack numbers them.
    const std::vector<std::vector<BundleChoice>>& choices() const { return m_choices; }

private:
    Knapsack m_knapsack;
    std::vector<std::vector<BundleChoice>> m_choices;
};

/// Bytes and picoseconds of every choice at one micro-batch and accumulation.
///
/// peak = reserve + base + state + kept + slots x max slot + max live. The two max terms are handled by thresholds: for
/// a live level and a slot bound, what remains is a knapsack over bundles.
class BatchTable {
public:
    BatchTable(const DecisionSpace& space, DecisionSpace::Batch batch);

    DecisionSpace::Batch batch() const { return m_batch; }
    /// Reserve and base: what every choice pays.
    std::int64_t fixedBytes() const { return m_fixedBytes; }
    const contract::BaseSize& base() const { return m_base; }

    /// Live bytes reachable, ascending: without recomputation, then with blocks of rising intermediates.
    const std::vector<std::int64_t>& liveLevels() const { return m_liveLevels; }
    /// Slot bytes (of one slot) at which options become available, ascending; the first is the least any choice needs.
    const std::vector<std::int64_t>& slotLevels() const { return m_slotLevels; }
    std::int64_t transientBytes(std::int64_t live, std::int64_t slot) const {
        return live + m_space.slotCount() * slot;
    }

    /// Least bytes of state and kept activations under bounds.
    std::int64_t minimumBytes(std::int64_t live, std::int64_t slot) const;
    /// The least peak of any choice.
    std::int64_t smallestPeak() const;

    /// A lower bound in picoseconds on the step time of every choice under the bounds within `capacity` bytes of state
    /// and kept activations: the Lagrangian dual, maximised by bisection. Infeasible: kInfeasibleTime. `multiplier`
    /// (picoseconds per byte): a first guess in, the best found out.
    std::int64_t lowerBound(std::int64_t live, std::int64_t slot, std::int64_t capacity, double& multiplier) const;

    /// The exact knapsack under the bounds; made on first use and kept. Thread-safe.
    std::shared_ptr<const ComposedProblem> compose(std::int64_t live, std::int64_t slot) const;

    std::int64_t keptBytes(std::int32_t operatorClass, bool recompute) const {
        return m_kept[static_cast<std::size_t>(operatorClass)][recompute];
    }
    std::int64_t picoseconds(std::int32_t operatorClass, std::int32_t placement, bool recompute) const {
        return m_times[static_cast<std::size_t>(operatorClass)][static_cast<std::size_t>(placement)][recompute];
    }
    /// The situation in which an operator of a class is priced.
    OperatorPricer::Situation situation(std::int32_t operatorClass, bool recompute) const;
    /// Live bytes when the blocks flagged are recomputed; flags follow DecisionSpace::sample().
    contract::LiveRegions live(const std::vector<bool>& recomputedSampleBlocks) const;

private:
    /// An option of a unit, its operators added up.
    struct UnitOption {
        std::int64_t bytes = 0;
        std::int64_t slot = 0;
        std::array<std::int64_t, 2> time{}; ///< [recompute]
    };
    /// A group's units with what the bounds filter on.
    struct GroupTable {
        std::int32_t count = 0;
        std::array<bool, 2> allowed{};
        std::array<std::int64_t, 2> kept{};
        std::int64_t recomputeBytes = 0; ///< live intermediates when recomputed
        std::vector<std::vector<UnitOption>> units;
    };
    struct DualValue {
        double value = 0; ///< of sum time + multiplier x bytes
        double bytes = 0;
    };

    bool mayRecompute(const GroupTable& group, std::int64_t live) const;
    bool feasible(std::int64_t live, std::int64_t slot) const;
    DualValue dual(std::int64_t live, std::int64_t slot, double multiplier) const;
    std::vector<BundleChoice> composeGroup(const GroupTable& group, std::int64_t live, std::int64_t slot,
                                           std::vector<KnapsackOption>& options) const;

    const DecisionSpace& m_space;
    DecisionSpace::Batch m_batch;
    contract::BaseSize m_base;
    std::int64_t m_fixedBytes = 0;
    std::int64_t m_liveFloor = 0; ///< live bytes without recomputation
    std::vector<std::array<std::int64_t, 2>> m_kept;
    std::vector<std::vector<std::array<std::int64_t, 2>>> m_times;
    std::vector<GroupTable> m_groups;
    std::vector<std::int64_t> m_liveLevels;
    std::vector<std::int64_t> m_slotLevels;
    mutable std::mutex m_mutex;
    mutable std::map<std::pair<std::int64_t, std::int64_t>, std::shared_ptr<const ComposedProblem>> m_composed;
};

} // namespace shardscope::planner
