// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "planner/cost/OperatorPricer.h"
#include "planner/search/Planner.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <string>
#include <vector>

namespace shardscope::planner {

/// Operators that are alike in everything that decides bytes and seconds, neighbours and pins included.
struct OperatorClass {
    std::int32_t op = 0; ///< a representative
    std::int32_t previous = -1;
    std::int32_t next = -1;
    bool endsBlock = false;
    std::vector<contract::Placement> placements; ///< what is allowed; equal for all members
    std::vector<PlacementFacts> facts;           ///< of each placement
    std::vector<std::int32_t> useful;            ///< placements that no other beats in every respect at every batch
};

/// Operators that share one storage and hence one placement: an owner and those tied to it.
struct Unit {
    std::vector<std::int32_t> operators; ///< owner first
    std::vector<std::int32_t> classes;
};

/// A run of operators, by index.
struct Stretch {
    std::int32_t begin = 0;
    std::int32_t end = 0;
};

/// A way to place a whole block: with its gathers and its reductions in one collective each, or all alike with those of
/// every operator on their own.
struct BlockVariant {
    std::vector<std::int32_t> placements; ///< per unit, index into its owner class's placements
    std::vector<bool> members;            ///< per unit: of the collective; beside it only what needs no slot
    Exchange exchange;                    ///< of the members
    contract::SlotSize slot;              ///< of the members together, or the largest of a unit
    bool isCoalesced() const { return std::find(members.begin(), members.end(), true) != members.end(); }
};

/// Units that are decided together: the operators of a block, else a single unit.
struct Bundle {
    std::vector<Unit> units;
    std::array<bool, 2> recomputeAllowed{true, false}; ///< [off, on]
    bool separateAllowed = true; ///< whether its units may be decided one by one; false where only variants are wanted
    std::vector<BlockVariant> variants;
    Stretch before; ///< what hides the coalesced variants' communication: the blocks or operators beside this block
    Stretch after;
};

/// Bundles that are alike.
struct BundleGroup {
    std::vector<Bundle> members; ///< in forward order; all alike but for operator indices; variants in the first only
    const Bundle& front() const { return members.front(); }
};

/// Everything a request leaves open, with what does not depend on the batch worked out once.
class DecisionSpace {
public:
    /// Errors: Usage for contradictory requests, BadInput for clusters that cannot run them.
    static contract::Result<DecisionSpace> create(const PlanRequest& request);

    const PlanRequest& request() const { return m_request; }
    const contract::Preset& preset() const { return m_preset; }
    const OperatorPricer& pricer() const { return m_pricer; }
    const std::vector<OperatorClass>& classes() const { return m_classes; }
    const std::vector<BundleGroup>& groups() const { return m_groups; }
    const std::vector<std::int32_t>& operatorClasses() const { return m_operatorClass; }
    const std::vector<std::string>& notes() const { return m_notes; }
    const std::vector<bool>& pinned() const { return m_pinned; }
    /// One block of each kind, and what lies outside blocks: enough to size live memory.
    const std::vector<contract::Operator>& sample() const { return m_sample; }
    /// For each block of sample(): whether it may and whether it must be recomputed.
    const std::vector<std::array<bool, 2>>& sampleRecompute() const { return m_sampleRecompute; }

    std::int64_t ranks() const { return m_request.cluster.devices(); }
    std::int32_t slotCount() const { return 1 + m_request.prefetchDepth; }

    /// A bound on one slot at which more placements become possible, and what the state then takes at least.
    struct SlotLevel {
        std::int64_t slot = 0;
        std::int64_t leastState = 0; ///< of all bundles
    };
    /// Ascending; at the first everything has some placement.
    const std::vector<SlotLevel>& slotLevels() const { return m_slotLevels; }

    struct Batch {
        std::int64_t samples = 1;
        std::int64_t accumulate = 1;
        std::int64_t product() const { return samples * accumulate; }
    };
    /// Candidates in ascending micro-batch. Automatic batches: every one up to 64, then 32 an octave;
    /// on CPU cores up to 4,096 tokens a device.
    const std::vector<Batch>& batches() const { return m_batches; }

private:
    explicit DecisionSpace(const PlanRequest& request, const contract::Preset& preset);
    contract::Result<void> resolvePlacements();
    contract::Result<void> chooseBatches();
    contract::Result<void> resolveRecompute();
    void buildClasses();
    void buildGroups();
    void addVariants(Bundle& bundle) const;
    void addCoalescedVariants(Bundle& bundle) const;
    void addUniformVariants(Bundle& bundle) const;
    std::int32_t nearestPlacement(const OperatorClass& entry, const contract::Placement& wanted) const;
    std::string stretchKey(Stretch stretch) const;
    bool mayCoalesce() const;
    bool isByBlock() const { return m_request.granularity == Granularity::Block; }
    void buildSample();
    void buildSlotLevels();
    std::int64_t leastState(const Bundle& bundle, std::int64_t slot) const;
    std::vector<contract::Placement> openPlacements(const contract::Operator& op) const;
    contract::Placement legalPlacement(const contract::Operator& op, contract::Placement placement);
    std::string classKey(std::int32_t op) const;
    std::vector<std::int32_t> usefulPlacements(const OperatorClass& entry) const;

    PlanRequest m_request;
    contract::Preset m_preset;
    OperatorPricer m_pricer;
    std::vector<std::int32_t> m_owners;
    std::vector<std::vector<contract::Placement>> m_placements; ///< per operator
    std::vector<bool> m_pinned;
    std::vector<std::array<bool, 2>> m_recompute; ///< per operator [off, on]
    std::vector<std::string> m_ownKeys;           ///< per operator: what decides its own bytes and seconds
    std::vector<std::int32_t> m_operatorClass;
    std::vector<OperatorClass> m_classes;
    std::vector<BundleGroup> m_groups;
    std::vector<contract::Operator> m_sample;
    std::vector<std::array<bool, 2>> m_sampleRecompute;
    std::vector<SlotLevel> m_slotLevels;
    std::vector<Batch> m_batches;
    std::vector<std::string> m_notes;
};

/// '*' matches any run of characters, '?' one.
bool globMatches(std::string_view pattern, std::string_view text);

} // namespace shardscope::planner
