// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "planner/search/BatchTable.h"
#include "planner/search/DecisionSpace.h"
#include "planner/search/Planner.h"

#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

namespace shardscope::planner {

/// The best choice found so far over all batches.
struct Incumbent {
    const BatchTable* table = nullptr; ///< nothing found while null
    std::shared_ptr<const ComposedProblem> problem;
    KnapsackSolution solution;
    std::int64_t time = 0; ///< picoseconds of a step
    std::int64_t peak = 0;

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
/// slot thresholds: those with the best bound first, until no bound beats the incumbent. Among equals, the smallest
/// peak.
class PlanSearch {
public:
    explicit PlanSearch(DecisionSpace space) : m_space(std::move(space)), m_tables(m_space.batches().size()) {}

    const DecisionSpace& space() const { return m_space; }
    SearchOutcome search(std::int64_t limitBytes, const SearchBudget& budget) const;
    std::int64_t smallestFeasibleBytes() const;
    /// The table of a batch candidate, made on first use.
    const BatchTable& table(std::size_t batchIndex) const;

private:
    struct Node {
        const BatchTable* table;
        std::int64_t live;
        std::int64_t bound; ///< picoseconds
        double multiplier;
    };
    struct Progress;

    std::vector<Node> collectNodes(std::int64_t limitBytes, const std::stop_token& stop) const;
    void searchNode(const Node& node, std::int64_t limitBytes, Progress& progress) const;
    void solveThreshold(const Node& node, std::int64_t slot, std::int64_t capacity, Progress& progress) const;

    DecisionSpace m_space;
    mutable std::mutex m_mutex;
    mutable std::vector<std::unique_ptr<const BatchTable>> m_tables;
};

/// What a choice decides for every operator, in the order of the graph. Equal bundles form contiguous runs, those that
/// use the most memory last.
struct Decided {
    std::vector<std::int32_t> placements; ///< per operator, index into its class's placements
    std::vector<bool> recompute;
};
Decided decide(const DecisionSpace& space, const ComposedProblem& problem, const KnapsackSolution& solution);

/// State and transient bytes that a choice really reaches; at most those of its thresholds.
struct Reached {
    std::int64_t slot = 0; ///< bytes of one slot
    std::int32_t slotOperator = -1;
    contract::LiveRegions live;
};
Reached reach(const DecisionSpace& space, const BatchTable& table, const Decided& decided);

} // namespace shardscope::planner
