// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "planner/search/BatchTable.h"
#include "planner/search/BlockRelaxation.h"
#include "planner/search/Branching.h"
#include "planner/search/DecisionSpace.h"
#include "planner/search/Planner.h"

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <tuple>
#include <vector>

namespace shardscope::planner {

/// The best choice found so far over all batches.
struct Incumbent {
    const BatchTable* table = nullptr; ///< nothing found while null
    GroupRuns runs;
    std::int64_t time = 0; ///< picoseconds of a step
    std::int64_t peak = 0;
    double shadowPrice = 0; ///< picoseconds per byte

    /// samples x accumulate of a step on one device, the numerator of the objective.
    std::int64_t product() const { return table->batch().product(); }
};

struct SearchOutcome {
    Incumbent best;
    bool proven = false;
    bool cancelled = false;
    std::string stoppedBy;
    double upperBound = 0; ///< of product / picoseconds over everything
    std::int64_t thresholds = 0;
    std::int64_t work = 0;
};

/// Finds the plan with the most samples per second under a memory limit, over all batch candidates, live levels and
/// slot thresholds. First linear relaxations give every threshold a bound and good plans without search; then the
/// thresholds whose bound is not beaten are solved exactly, those with the best bound first. Among equals, the smallest
/// peak.
class PlanSearch {
public:
    explicit PlanSearch(DecisionSpace space) : m_space(std::move(space)), m_tables(m_space.batches().size()) {}

    const DecisionSpace& space() const { return m_space; }
    /// `known`: a plan found for another limit; used when it fits.
    SearchOutcome search(std::int64_t limitBytes, const SearchBudget& budget, const Incumbent& known = {}) const;
    /// Whether a step of the smallest batch can be told in exact picoseconds: its parts add up to less than 2^62.
    bool countsExactly() const;
    std::int64_t smallestFeasibleBytes() const { return table(0).smallestPeak(); }
    /// The table of a batch candidate, made on first use.
    const BatchTable& table(std::size_t batchIndex) const;

    /// A budget at which the linear relaxation of a batch is met exactly: nothing but more memory makes it faster.
    struct Supported {
        std::int64_t peak = 0;
        std::int64_t product = 0;
        std::int64_t time = 0; ///< picoseconds
    };
    /// The supported budgets up to `largestBytes` that no other one beats with less memory, ascending.
    std::vector<Supported> supportedBudgets(std::int64_t largestBytes, const std::stop_token& stop) const;

private:
    using RelaxationPointer = std::shared_ptr<const BlockRelaxation>;
    /// A batch and a live level under the widest slots.
    struct Node {
        std::size_t batchIndex;
        const BatchTable* table;
        std::int64_t live;
        std::int64_t bound; ///< picoseconds
        RelaxationPointer relaxation;
    };
    struct Threshold {
        const BatchTable* table;
        std::int64_t live;
        std::int64_t slot;
        std::int64_t capacity;
        std::int64_t bound; ///< picoseconds
        RelaxationPointer relaxation;
    };
    struct Progress;

    RelaxationPointer relaxation(std::size_t batchIndex, std::int64_t live, std::size_t level) const;
    std::vector<Node> collectNodes(std::int64_t limitBytes, const std::stop_token& stop) const;
    void explore(const Node& node, std::int64_t limitBytes, Progress& progress) const;
    void solveThreshold(const Threshold& threshold, Progress& progress) const;
    void solveBranch(const Threshold& threshold, const ThresholdTable& fitting, const Branch& branch,
                     Progress& progress) const;
    /// Takes a solution if it is better; `runs` says what it decides.
    void accept(const Threshold& threshold, const KnapsackSolution& solution, GroupRuns runs, Progress& progress) const;

    DecisionSpace m_space;
    mutable std::mutex m_mutex;
    mutable std::vector<std::unique_ptr<const BatchTable>> m_tables;
    mutable std::map<std::tuple<std::size_t, std::int64_t, std::size_t>, RelaxationPointer> m_relaxations;
    mutable std::int64_t m_relaxationBytes = 0; ///< of those that may be forgotten
};

/// What a choice decides for every operator, in the order of the graph.
struct Decided {
    std::vector<std::int32_t> placements; ///< per operator, index into its class's placements
    std::vector<bool> recompute;
    std::vector<bool> coalesced;
    struct CoalescedBlock {
        std::size_t group;
        std::size_t member;
        std::int32_t variant;
    };
    std::vector<CoalescedBlock> blocks;
};
PlacementCounts countPlacements(const DecisionSpace& space, const GroupRuns& runs);
Decided decide(const DecisionSpace& space, const GroupRuns& runs);

/// State and transient bytes that a choice really reaches; at most those of its thresholds.
struct Reached {
    contract::SlotSize slot; ///< of one slot
    std::int32_t slotOperator = -1;
    contract::LiveRegions live;
    std::int64_t stateAndKept = 0;
};
Reached reach(const DecisionSpace& space, const BatchTable& table, const Decided& decided);

} // namespace shardscope::planner
