// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "planner/search/DecisionSpace.h"
#include "planner/search/KnapsackMath.h"

#include <array>
#include <cstdint>
#include <limits>
#include <vector>

namespace shardscope::planner {

/// One way to decide a bundle: recomputed or not, and an option of each unit.
struct BundleChoice {
    static constexpr std::int32_t kSeparate = -1;
    bool recompute = false;
    std::int32_t variant = kSeparate;     ///< index into the group's variants
    std::vector<std::int32_t> placements; ///< per unit, index into its owner class's placements
    auto operator<=>(const BundleChoice&) const = default;
};

/// So many consecutive bundles of a group are decided alike.
struct ChosenRun {
    BundleChoice choice;
    std::int32_t count = 0;
};
/// [group], in the order of its members: recomputed ones first.
using GroupRuns = std::vector<std::vector<ChosenRun>>;

/// An option of a unit, its operators added up.
struct UnitOption {
    std::int64_t bytes = 0; ///< of state
    std::int64_t slot = 0;
    std::array<std::int64_t, 2> time{}; ///< picoseconds, [recompute]
    std::int32_t placement = 0;
    bool operator==(const UnitOption&) const = default;
};

/// A variant of a block: everything but what it keeps.
struct VariantOption {
    /// The slot of a variant that this batch does not allow; it keeps its index.
    static constexpr std::int64_t kNever = std::numeric_limits<std::int64_t>::max();
    std::int64_t bytes = 0;
    std::int64_t slot = 0;
    std::array<std::int64_t, 2> time{};
    bool isPossible() const { return slot != kNever; }
    bool operator==(const VariantOption&) const = default;
};

/// The bundles of a group at one batch.
struct GroupTable {
    std::int32_t count = 0;
    std::array<bool, 2> allowed{}; ///< [recompute]
    std::array<std::int64_t, 2> kept{};
    std::int64_t recomputeBytes = 0; ///< live intermediates when recomputed
    bool separateAllowed = true;
    std::vector<std::vector<UnitOption>> units; ///< options by rising bytes, then by placement
    std::vector<VariantOption> variants;
};

/// Bytes and picoseconds of every choice at one micro-batch and accumulation.
///
/// peak = reserve + base + state + kept + slots x max slot + max live. The two max terms are handled by thresholds: for
/// a live level and a slot bound, what remains is a knapsack over bundles.
class BatchTable {
public:
    BatchTable(const DecisionSpace& space, DecisionSpace::Batch batch);

    const DecisionSpace& space() const { return m_space; }
    DecisionSpace::Batch batch() const { return m_batch; }
    const std::vector<GroupTable>& groups() const { return m_groups; }
    /// Reserve and base: what every choice pays.
    std::int64_t fixedBytes() const { return m_fixedBytes; }
    const contract::BaseSize& base() const { return m_base; }

    /// Live bytes reachable, ascending: without recomputation, then with blocks of rising intermediates.
    const std::vector<std::int64_t>& liveLevels() const { return m_liveLevels; }
    bool mayRecompute(const GroupTable& group, std::int64_t live) const {
        return group.allowed[1] && m_liveFloor + group.recomputeBytes <= live;
    }
    std::int64_t transientBytes(std::int64_t live, std::int64_t slot) const {
        return live + m_space.slotCount() * slot;
    }
    /// Least bytes of kept activations of any choice under a bound on live memory.
    std::int64_t minimumKept(std::int64_t live) const;
    /// The least peak of any choice.
    std::int64_t smallestPeak() const { return m_smallestPeak; }
    /// A live level and a slot level at which the least peak is reached.
    struct Smallest {
        std::int64_t live = 0;
        DecisionSpace::SlotLevel level;
    };
    Smallest smallest() const;

    std::int64_t keptBytes(std::int32_t operatorClass, bool recompute) const {
        return m_kept[static_cast<std::size_t>(operatorClass)][recompute];
    }
    /// The situation in which an operator of a class is priced.
    OperatorPricer::Situation situation(std::int32_t operatorClass, bool recompute) const;
    double forwardSeconds(std::int32_t op) const;
    /// Communication of a coalesced block of a group.
    OperatorCost coalescedCost(const Bundle& front, const Exchange& exchange) const;
    /// Live bytes when the blocks flagged are recomputed; flags follow DecisionSpace::sample().
    contract::LiveRegions live(const std::vector<bool>& recomputedSampleBlocks) const;

private:
    void priceClasses();
    GroupTable makeGroup(const BundleGroup& group) const;
    VariantOption priceVariant(const Bundle& front, const BlockVariant& variant) const;
    bool available(const contract::Placement& placement) const { return !placement.held || m_batch.accumulate > 1; }

    const DecisionSpace& m_space;
    DecisionSpace::Batch m_batch;
    contract::BaseSize m_base;
    std::int64_t m_fixedBytes = 0;
    std::int64_t m_liveFloor = 0; ///< live bytes without recomputation
    std::int64_t m_smallestPeak = 0;
    std::vector<double> m_forwardSeconds; ///< per class
    std::vector<std::array<std::int64_t, 2>> m_kept;
    std::vector<std::vector<std::array<std::int64_t, 2>>> m_times;
    std::vector<GroupTable> m_groups;
    std::vector<std::int64_t> m_liveLevels;
};

} // namespace shardscope::planner
