// SPDX-License-Identifier: GPL-3.0-or-later
#include "planner/search/PlanSearch.h"

#include "planner/search/BlockCore.h"

#include <algorithm>
#include <chrono>

namespace shardscope::planner {

namespace {

/// Relaxations under narrow slots are many; beyond this they are forgotten and made again.
constexpr std::int64_t kMaximumRelaxationBytes = 96 << 20;

/// a/b compared with c/d for non-negative integers; exact.
int compareRatio(std::int64_t a, std::int64_t b, std::int64_t c, std::int64_t d) {
    const auto left = static_cast<Int128>(a) * d;
    const auto right = static_cast<Int128>(c) * b;
    return left < right ? -1 : left > right ? 1 : 0;
}

double ratio(std::int64_t product, std::int64_t time) {
    return static_cast<double>(product) / static_cast<double>(std::max<std::int64_t>(1, time));
}

} // namespace

struct PlanSearch::Progress {
    SearchBudget budget;
    std::chrono::steady_clock::time_point begin = std::chrono::steady_clock::now();
    SearchOutcome outcome;
    std::vector<Threshold> open;
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
    void giveUp(std::int64_t product, std::int64_t bound) { openBound = std::max(openBound, ratio(product, bound)); }
    /// Whether a step of `time` for `product` samples could be better than the incumbent, or as good.
    bool interesting(std::int64_t product, std::int64_t time) const {
        const Incumbent& best = outcome.best;
        return !best.table || compareRatio(product, time, best.product(), best.time) >= 0;
    }
    /// Whether nothing at this bound could be better by more than the tolerance.
    bool withinTolerance(std::int64_t product, std::int64_t bound) const {
        const Incumbent& best = outcome.best;
        return best.table && budget.tolerance > 0 &&
               ratio(best.product(), best.time) >= (1 - budget.tolerance) * ratio(product, bound);
    }
};

const BatchTable& PlanSearch::table(std::size_t batchIndex) const {
    const std::lock_guard lock(m_mutex);
    auto& entry = m_tables[batchIndex];
    if (!entry)
        entry = std::make_unique<const BatchTable>(m_space, m_space.batches()[batchIndex]);
    return *entry;
}

PlanSearch::RelaxationPointer PlanSearch::relaxation(std::size_t batchIndex, std::int64_t live,
                                                     std::size_t level) const {
    const std::tuple key{batchIndex, live, level};
    {
        const std::lock_guard lock(m_mutex);
        if (const auto found = m_relaxations.find(key); found != m_relaxations.end())
            return found->second;
    }
    RelaxationPointer made = BlockRelaxation::create(table(batchIndex), live, m_space.slotLevels()[level].slot);
    const std::lock_guard lock(m_mutex);
    if (m_relaxationBytes > kMaximumRelaxationBytes) {
        // Whoever still uses one holds its own reference; those of the widest slots serve every limit.
        std::erase_if(m_relaxations,
                      [&](const auto& entry) { return std::get<2>(entry.first) + 1 < m_space.slotLevels().size(); });
        m_relaxationBytes = 0;
    }
    if (made && level + 1 < m_space.slotLevels().size())
        m_relaxationBytes += made->memoryBytes();
    return m_relaxations.emplace(key, std::move(made)).first->second;
}

bool PlanSearch::countsExactly() const {
    const std::vector<std::int64_t>& levels = table(0).liveLevels();
    return m_space.slotLevels().empty() || std::any_of(levels.begin(), levels.end(), [this](std::int64_t live) {
               return relaxation(0, live, m_space.slotLevels().size() - 1) != nullptr;
           });
}

std::vector<PlanSearch::Node> PlanSearch::collectNodes(std::int64_t limitBytes, const std::stop_token& stop) const {
    std::vector<Node> nodes;
    if (m_space.slotLevels().empty())
        return nodes;
    const std::int64_t leastSlot = m_space.slotLevels().front().slot;
    for (std::size_t i = 0; i < m_space.batches().size() && !stop.stop_requested(); ++i) {
        const BatchTable& batchTable = table(i);
        if (batchTable.smallestPeak() > limitBytes)
            break; // candidates ascend in samples, and so does what they need
        for (const std::int64_t live : batchTable.liveLevels()) {
            const RelaxationPointer widest = relaxation(i, live, m_space.slotLevels().size() - 1);
            if (!widest)
                continue;
            const std::int64_t bound = widest->knapsack().lowerBound(limitBytes - batchTable.fixedBytes() -
                                                                     batchTable.transientBytes(live, leastSlot));
            if (bound < kInfeasibleTime)
                nodes.push_back({i, &batchTable, live, bound, widest});
        }
    }
    std::stable_sort(nodes.begin(), nodes.end(), [](const Node& a, const Node& b) {
        return compareRatio(a.table->batch().product(), a.bound, b.table->batch().product(), b.bound) > 0;
    });
    return nodes;
}

void PlanSearch::accept(const Threshold& threshold, const KnapsackSolution& solution, GroupRuns runs,
                        Progress& progress) const {
    const std::int64_t product = threshold.table->batch().product();
    Incumbent& best = progress.outcome.best;
    const int order = best.table ? compareRatio(product, solution.time, best.product(), best.time) : 1;
    if (order < 0)
        return;
    Incumbent found{threshold.table, std::move(runs), solution.time, 0, solution.shadowPrice};
    for (std::vector<ChosenRun>& group : found.runs) {
        // Kept blocks last; beyond that any order that does not depend on how the choice was found.
        std::sort(group.begin(), group.end(), [](const ChosenRun& a, const ChosenRun& b) {
            if (a.choice.recompute != b.choice.recompute)
                return a.choice.recompute;
            return a.choice < b.choice;
        });
    }
    const Reached reached = reach(m_space, *threshold.table, decide(m_space, found.runs));
    found.peak = threshold.table->fixedBytes() + reached.stateAndKept +
                 threshold.table->transientBytes(reached.live.total(), reached.slot.total());
    if (order > 0 || found.peak < best.peak)
        best = std::move(found);
}

/// Bounds every threshold of a node, tries the relaxations' own solutions, and leaves open what they do not settle.
void PlanSearch::explore(const Node& node, std::int64_t limitBytes, Progress& progress) const {
    const std::int64_t product = node.table->batch().product();
    const std::int64_t kept = node.table->minimumKept(node.live);
    std::vector<Threshold> thresholds;
    // From wide slots to narrow ones: a wider slot allows all that a narrower one does, so the last relaxation made
    // bounds the next ones and often spares making them.
    RelaxationPointer wider = node.relaxation;
    for (std::size_t level = m_space.slotLevels().size(); level-- > 0;) {
        const auto [slot, leastState] = m_space.slotLevels()[level];
        const std::int64_t capacity =
            limitBytes - node.table->fixedBytes() - node.table->transientBytes(node.live, slot);
        if (capacity < kept + leastState || !progress.interesting(product, wider->knapsack().lowerBound(capacity)))
            continue;
        RelaxationPointer narrow = relaxation(node.batchIndex, node.live, level);
        if (!narrow)
            continue;
        wider = narrow;
        const std::int64_t bound = narrow->knapsack().lowerBound(capacity);
        if (bound >= kInfeasibleTime || !progress.interesting(product, bound))
            continue;
        thresholds.push_back({node.table, node.live, slot, capacity, bound, std::move(narrow)});
        if (!progress.outcome.best.table) {
            const KnapsackSolution first = wider->knapsack().incumbent(capacity);
            accept(thresholds.back(), first, wider->runs(first), progress);
        }
    }
    std::stable_sort(thresholds.begin(), thresholds.end(),
                     [](const Threshold& a, const Threshold& b) { return a.bound < b.bound; });
    for (Threshold& threshold : thresholds) {
        if (!progress.interesting(product, threshold.bound))
            break;
        ++progress.outcome.thresholds;
        ++progress.outcome.work;
        if (!progress.withinTolerance(product, threshold.bound)) {
            const KnapsackSolution solution = threshold.relaxation->knapsack().incumbent(threshold.capacity);
            accept(threshold, solution, threshold.relaxation->runs(solution), progress);
        }
        progress.open.push_back(std::move(threshold));
    }
}

void PlanSearch::solveThreshold(const Threshold& threshold, Progress& progress) const {
    const std::int64_t product = threshold.table->batch().product();
    const auto interesting = [&](std::int64_t bound) { return progress.interesting(product, bound); };
    const ThresholdTable fitting(*threshold.table, threshold.live, threshold.slot);
    for (const Branch& branch : makeBranches(fitting, threshold.capacity, interesting)) {
        if (!progress.interesting(product, branch.bound))
            break;
        progress.checkLimits();
        if (progress.stopped() || progress.withinTolerance(product, branch.bound)) {
            progress.giveUp(product, branch.bound);
            break;
        }
        solveBranch(threshold, fitting, branch, progress);
    }
}

void PlanSearch::solveBranch(const Threshold& threshold, const ThresholdTable& fitting, const Branch& branch,
                             Progress& progress) const {
    const std::int64_t product = threshold.table->batch().product();
    const Incumbent& best = progress.outcome.best;
    // Interesting: product / time > best.product / best.time, or equal with a smaller peak.
    const auto scaled = static_cast<Int128>(best.time) * product;
    const auto quotient = static_cast<std::int64_t>(scaled / best.product());
    const bool exact = scaled % best.product() == 0;
    KnapsackCutoff cutoff;
    cutoff.time = exact ? quotient : quotient + 1;
    cutoff.bytes = exact ? best.peak - threshold.table->fixedBytes() -
                               threshold.table->transientBytes(threshold.live, threshold.slot)
                         : 0;
    cutoff.lowerBound = branch.bound;
    const std::int64_t workLeft = progress.budget.workLimit > 0
                                      ? std::max<std::int64_t>(1, progress.budget.workLimit - progress.outcome.work)
                                      : 0;
    BlockCore core(fitting, {threshold.capacity, quotient, &branch, workLeft, progress.budget.stop});
    const BlockCore::Outcome built = core.build();
    progress.outcome.work += core.work() + 1;
    if (built == BlockCore::Outcome::NothingBetter)
        return;
    if (built == BlockCore::Outcome::Stopped) {
        progress.giveUp(product, branch.bound);
        progress.checkLimits();
        return;
    }
    SearchLimits limits;
    limits.tolerance = progress.budget.tolerance;
    limits.stop = progress.budget.stop;
    if (progress.budget.workLimit > 0)
        limits.workLimit = std::max<std::int64_t>(1, progress.budget.workLimit - progress.outcome.work);
    if (progress.budget.timeLimitSeconds > 0)
        limits.timeLimitSeconds = std::max(1e-6, progress.secondsLeft());
    KnapsackSolution solution = core.knapsack().solve(threshold.capacity, limits, cutoff);
    progress.outcome.work += solution.work + 1;
    if (!solution.proven) {
        progress.giveUp(product, std::max(branch.bound, solution.lowerBound));
        progress.checkLimits();
    }
    if (!solution.feasible)
        return;
    solution.shadowPrice = branch.multiplier.value();
    accept(threshold, solution, fitting.expand(core.runs(solution)), progress);
}

SearchOutcome PlanSearch::search(std::int64_t limitBytes, const SearchBudget& budget, const Incumbent& known) const {
    Progress progress;
    progress.budget = budget;
    if (known.table && known.peak <= limitBytes)
        progress.outcome.best = known;
    const std::vector<Node> nodes = collectNodes(limitBytes, budget.stop);
    for (const Node& node : nodes) {
        const std::int64_t product = node.table->batch().product();
        if (!progress.interesting(product, node.bound))
            break; // sorted: nothing after it is better
        progress.checkLimits();
        if ((progress.stopped() && progress.outcome.best.table) || budget.stop.stop_requested() ||
            progress.withinTolerance(product, node.bound)) {
            progress.giveUp(product, node.bound);
            break;
        }
        explore(node, limitBytes, progress);
    }
    std::stable_sort(progress.open.begin(), progress.open.end(), [](const Threshold& a, const Threshold& b) {
        return compareRatio(a.table->batch().product(), a.bound, b.table->batch().product(), b.bound) > 0;
    });
    for (const Threshold& threshold : progress.open) {
        const std::int64_t product = threshold.table->batch().product();
        if (!progress.interesting(product, threshold.bound))
            break;
        progress.checkLimits();
        if (progress.stopped() || progress.withinTolerance(product, threshold.bound)) {
            progress.giveUp(product, threshold.bound);
            break;
        }
        solveThreshold(threshold, progress);
    }
    SearchOutcome& outcome = progress.outcome;
    outcome.cancelled = budget.stop.stop_requested();
    if (outcome.best.table) {
        const double value = ratio(outcome.best.product(), outcome.best.time);
        outcome.upperBound = std::max(value, progress.openBound);
        // Where nothing that was given up could be faster, the search ended early but lacks nothing.
        outcome.proven = !outcome.cancelled && progress.openBound <= value;
        if (outcome.proven)
            outcome.stoppedBy.clear();
        if (outcome.cancelled)
            outcome.stoppedBy = "cancelled";
        else if (!outcome.proven && outcome.stoppedBy.empty())
            outcome.stoppedBy = budget.tolerance > 0 ? "tolerance" : "memory";
    }
    return std::move(progress.outcome);
}

std::vector<PlanSearch::Supported> PlanSearch::supportedBudgets(std::int64_t largestBytes,
                                                                const std::stop_token& stop) const {
    std::vector<Supported> all;
    for (std::size_t i = 0; i < m_space.batches().size() && !stop.stop_requested(); ++i) {
        const BatchTable& batchTable = table(i);
        if (batchTable.smallestPeak() > largestBytes)
            break;
        for (const std::int64_t live : batchTable.liveLevels()) {
            const std::size_t level = m_space.slotLevels().size() - 1;
            const RelaxationPointer widest = relaxation(i, live, level);
            if (!widest)
                continue;
            const std::int64_t transient =
                batchTable.fixedBytes() + batchTable.transientBytes(live, m_space.slotLevels()[level].slot);
            for (const SupportedPoint& point : widest->knapsack().breakpoints()) {
                if (transient + point.bytes <= largestBytes)
                    all.push_back({transient + point.bytes, batchTable.batch().product(), point.time});
            }
        }
    }
    std::sort(all.begin(), all.end(), [](const Supported& a, const Supported& b) {
        return std::tie(a.peak, a.product, a.time) < std::tie(b.peak, b.product, b.time);
    });
    std::vector<Supported> best;
    for (const Supported& point : all) {
        if (best.empty() || compareRatio(point.product, point.time, best.back().product, best.back().time) > 0) {
            if (!best.empty() && best.back().peak == point.peak)
                best.pop_back();
            best.push_back(point);
        }
    }
    return best;
}

} // namespace shardscope::planner
