// SPDX-License-Identifier: GPL-3.0-or-later
#include "planner/search/PlanSearch.h"

#include <algorithm>
#include <chrono>
#include <limits>
#include <numeric>

namespace shardscope::planner {

namespace {

constexpr std::size_t index(std::int32_t value) {
    return static_cast<std::size_t>(value);
}

/// a/b compared with c/d for non-negative integers; exact.
int compareRatio(std::int64_t a, std::int64_t b, std::int64_t c, std::int64_t d) {
    const auto left = static_cast<Int128>(a) * d;
    const auto right = static_cast<Int128>(c) * b;
    return left < right ? -1 : left > right ? 1 : 0;
}

} // namespace

struct PlanSearch::Progress {
    SearchBudget budget;
    std::chrono::steady_clock::time_point begin = std::chrono::steady_clock::now();
    SearchOutcome outcome;
    double openBound = 0; ///< best product / picoseconds among what was given up

    bool stopped() const { return !outcome.stoppedBy.empty(); }
    double secondsLeft() const {
        const std::chrono::duration<double> spent = std::chrono::steady_clock::now() - begin;
        return budget.timeLimitSeconds - spent.count();
    }
    /// Looks at the limits; remembers the first that is exceeded.
    void checkLimits() {
        if (stopped())
            return;
        if (budget.stop.stop_requested())
            outcome.stoppedBy = "cancelled";
        else if (budget.workLimit > 0 && outcome.work >= budget.workLimit)
            outcome.stoppedBy = "work-limit";
        else if (budget.timeLimitSeconds > 0 && secondsLeft() <= 0)
            outcome.stoppedBy = "time-limit";
    }
    void giveUp(std::int64_t product, std::int64_t bound) {
        openBound =
            std::max(openBound, static_cast<double>(product) / static_cast<double>(std::max<std::int64_t>(1, bound)));
    }
    /// Whether a step of `time` for `product` samples could be better than the incumbent, or as good.
    bool interesting(std::int64_t product, std::int64_t time) const {
        const Incumbent& best = outcome.best;
        return !best.table || compareRatio(product, time, best.product(), best.time) >= 0;
    }
};

const BatchTable& PlanSearch::table(std::size_t batchIndex) const {
    const std::lock_guard lock(m_mutex);
    auto& entry = m_tables[batchIndex];
    if (!entry)
        entry = std::make_unique<const BatchTable>(m_space, m_space.batches()[batchIndex]);
    return *entry;
}

std::int64_t PlanSearch::smallestFeasibleBytes() const {
    return table(0).smallestPeak();
}

std::vector<PlanSearch::Node> PlanSearch::collectNodes(std::int64_t limitBytes, const std::stop_token& stop) const {
    std::vector<Node> nodes;
    double multiplier = 0;
    for (std::size_t i = 0; i < m_space.batches().size() && !stop.stop_requested(); ++i) {
        const BatchTable& batchTable = table(i);
        if (batchTable.smallestPeak() > limitBytes)
            break; // candidates ascend in samples, and so does what they need
        for (const std::int64_t live : batchTable.liveLevels()) {
            const std::int64_t least = batchTable.slotLevels().front();
            const std::int64_t capacity = limitBytes - batchTable.fixedBytes() - batchTable.transientBytes(live, least);
            const std::int64_t bound =
                batchTable.lowerBound(live, batchTable.slotLevels().back(), capacity, multiplier);
            if (bound < kInfeasibleTime)
                nodes.push_back({&batchTable, live, bound, multiplier});
        }
    }
    std::stable_sort(nodes.begin(), nodes.end(), [](const Node& a, const Node& b) {
        return compareRatio(a.table->batch().product(), a.bound, b.table->batch().product(), b.bound) > 0;
    });
    return nodes;
}

void PlanSearch::solveThreshold(const Node& node, std::int64_t slot, std::int64_t capacity, Progress& progress) const {
    const std::int64_t product = node.table->batch().product();
    const auto problem = node.table->compose(node.live, slot);
    ++progress.outcome.thresholds;
    if (!problem)
        return;
    const std::int64_t bound = problem->knapsack().lowerBound(capacity);
    if (bound >= kInfeasibleTime || !progress.interesting(product, bound))
        return;
    KnapsackCutoff cutoff;
    Incumbent& best = progress.outcome.best;
    if (best.table) {
        // Interesting: product / time > best.product / best.time, or equal with a smaller peak.
        const auto scaled = static_cast<Int128>(best.time) * product;
        const auto quotient = static_cast<std::int64_t>(scaled / best.product());
        const bool exact = scaled % best.product() == 0;
        cutoff.time = exact ? quotient : quotient + 1;
        cutoff.bytes = exact ? best.peak - node.table->fixedBytes() - node.table->transientBytes(node.live, slot) : 0;
    }
    SearchLimits limits;
    limits.tolerance = progress.budget.tolerance;
    limits.stop = progress.budget.stop;
    if (progress.budget.workLimit > 0)
        limits.workLimit = std::max<std::int64_t>(1, progress.budget.workLimit - progress.outcome.work);
    if (progress.budget.timeLimitSeconds > 0)
        limits.timeLimitSeconds = std::max(1e-6, progress.secondsLeft());
    KnapsackSolution solution = problem->knapsack().solve(capacity, limits, cutoff);
    progress.outcome.work += solution.work + 1;
    if (!solution.proven) {
        progress.giveUp(product, solution.lowerBound);
        progress.checkLimits();
        if (!progress.stopped())
            progress.outcome.stoppedBy = solution.cancelled ? "cancelled" : "tolerance";
        // The tolerance ends one threshold, not the search for better ones.
        if (progress.outcome.stoppedBy == "tolerance")
            progress.outcome.stoppedBy.clear();
    }
    if (!solution.feasible)
        return;
    const Decided decided = decide(m_space, *problem, solution);
    const Reached reached = reach(m_space, *node.table, decided);
    const std::int64_t peak =
        node.table->fixedBytes() + solution.bytes + node.table->transientBytes(reached.live.total(), reached.slot);
    const int order = best.table ? compareRatio(product, solution.time, best.product(), best.time) : 1;
    if (order > 0 || (order == 0 && peak < best.peak)) {
        const std::int64_t time = solution.time;
        best = {node.table, problem, std::move(solution), time, peak};
    }
}

void PlanSearch::searchNode(const Node& node, std::int64_t limitBytes, Progress& progress) const {
    struct Threshold {
        std::int64_t slot, capacity, bound;
    };
    const std::int64_t product = node.table->batch().product();
    std::vector<Threshold> thresholds;
    double multiplier = node.multiplier;
    for (const std::int64_t slot : node.table->slotLevels()) {
        const std::int64_t capacity =
            limitBytes - node.table->fixedBytes() - node.table->transientBytes(node.live, slot);
        if (capacity < 0)
            break;
        const std::int64_t bound = node.table->lowerBound(node.live, slot, capacity, multiplier);
        if (bound < kInfeasibleTime && progress.interesting(product, bound))
            thresholds.push_back({slot, capacity, bound});
    }
    std::stable_sort(thresholds.begin(), thresholds.end(),
                     [](const Threshold& a, const Threshold& b) { return a.bound < b.bound; });
    for (const Threshold& threshold : thresholds) {
        if (!progress.interesting(product, threshold.bound))
            break;
        progress.checkLimits();
        if (progress.stopped() && progress.outcome.best.table) {
            progress.giveUp(product, threshold.bound);
            break;
        }
        solveThreshold(node, threshold.slot, threshold.capacity, progress);
    }
}

SearchOutcome PlanSearch::search(std::int64_t limitBytes, const SearchBudget& budget) const {
    Progress progress;
    progress.budget = budget;
    const std::vector<Node> nodes = collectNodes(limitBytes, budget.stop);
    for (const Node& node : nodes) {
        if (budget.stop.stop_requested())
            break;
        if (!progress.interesting(node.table->batch().product(), node.bound))
            break; // sorted: nothing after it is better
        progress.checkLimits();
        if (progress.stopped() && progress.outcome.best.table) {
            progress.giveUp(node.table->batch().product(), node.bound);
            break;
        }
        searchNode(node, limitBytes, progress);
    }
    SearchOutcome& outcome = progress.outcome;
    outcome.cancelled = budget.stop.stop_requested();
    if (outcome.best.table) {
        const double value = static_cast<double>(outcome.best.product()) / static_cast<double>(outcome.best.time);
        outcome.upperBound = std::max(value, progress.openBound);
        outcome.proven = !outcome.cancelled && progress.openBound <= value && outcome.stoppedBy.empty();
        if (!outcome.proven && outcome.stoppedBy.empty() && !outcome.cancelled)
            outcome.stoppedBy = "tolerance";
        if (outcome.cancelled)
            outcome.stoppedBy = "cancelled";
    }
    return std::move(progress.outcome);
}

Decided decide(const DecisionSpace& space, const ComposedProblem& problem, const KnapsackSolution& solution) {
    const std::size_t operators = space.operatorClasses().size();
    Decided decided{std::vector<std::int32_t>(operators, 0), std::vector<bool>(operators, false)};
    for (std::size_t g = 0; g < space.groups().size(); ++g) {
        // Options are composed by rising bytes within each recomputation; order all of them by bytes for contiguous
        // runs.
        const auto& choices = problem.choices()[g];
        std::vector<std::size_t> order(choices.size());
        std::iota(order.begin(), order.end(), std::size_t{0});
        std::stable_sort(order.begin(), order.end(),
                         [&](std::size_t a, std::size_t b) { return choices[a].recompute && !choices[b].recompute; });
        std::size_t member = 0;
        for (const std::size_t option : order) {
            for (std::int32_t n = 0; n < solution.counts[g][option]; ++n) {
                const Bundle& bundle = space.groups()[g].members[member++];
                for (std::size_t u = 0; u < bundle.units.size(); ++u) {
                    for (const std::int32_t op : bundle.units[u].operators) {
                        decided.placements[index(op)] = choices[option].placements[u];
                        decided.recompute[index(op)] =
                            choices[option].recompute && space.request().graph->operators[index(op)].block >= 0;
                    }
                }
            }
        }
    }
    return decided;
}

Reached reach(const DecisionSpace& space, const BatchTable& table, const Decided& decided) {
    Reached reached;
    const auto& operators = space.request().graph->operators;
    for (std::size_t i = 0; i < operators.size(); ++i) {
        const OperatorClass& entry = space.classes()[index(space.operatorClasses()[i])];
        const std::int64_t slot = entry.bytes[index(decided.placements[i])].slot.total();
        if (slot > reached.slot) {
            reached.slot = slot;
            reached.slotOperator = static_cast<std::int32_t>(i);
        }
    }
    std::vector<bool> recomputed(static_cast<std::size_t>(space.request().graph->blockCount()), false);
    bool any = false;
    for (std::size_t i = 0; i < operators.size(); ++i) {
        if (operators[i].block >= 0 && decided.recompute[i]) {
            recomputed[static_cast<std::size_t>(operators[i].block)] = true;
            any = true;
        }
    }
    reached.live =
        any ? contract::sizeLive(operators, space.preset(), table.batch().samples, recomputed) : table.live({});
    return reached;
}

} // namespace shardscope::planner
