// SPDX-License-Identifier: GPL-3.0-or-later
#include "planner/search/KnapsackSearch.h"

#include <algorithm>
#include <limits>

namespace shardscope::planner {

namespace {

/// Clock and stop token are looked at this often, a fraction of a millisecond apart.
constexpr std::int64_t kWorkBetweenChecks = 8192;
/// The first target is this part of the gap above the bound.
constexpr std::int64_t kFirstTargetPart = 64;
constexpr std::int64_t kNextTargetPart = 16; ///< the same after a beam
constexpr std::int64_t kTargetGrowth = 4;
constexpr std::size_t kFirstWidth = 64;
constexpr std::size_t kWidthGrowth = 4;
/// What two lists may take for every state of the beam that follows them if they do not suffice.
constexpr std::int64_t kWorkPerWidth = 1024;
/// Changes combined for a first solution where one is known elsewhere.
constexpr std::size_t kQuickWidth = 12;
/// Above all sums of weights, and far from overflow.
constexpr Int128 kHeaviest = static_cast<Int128>(1) << 126;

} // namespace

KnapsackSearch::KnapsackSearch(const Knapsack& knapsack, std::int64_t capacity, const SearchLimits& limits,
                               KnapsackCutoff cutoff)
    : m_knapsack(knapsack), m_limits(limits), m_capacity(capacity), m_bestTime(cutoff.time), m_bestBytes(cutoff.bytes),
      m_hasCutoff(cutoff.time < kInfeasibleTime), m_lowerBound(cutoff.lowerBound) {}

KnapsackSolution KnapsackSearch::run() {
    KnapsackSolution solution;
    solution.proven = true;
    solution.lowerBound = kInfeasibleTime;
    if (m_capacity < m_knapsack.minimumBytes())
        return solution;
    m_usable = m_knapsack.usableCapacity(m_capacity);
    m_break = m_knapsack.findBreak(m_usable);
    m_lowerBound = std::max(m_lowerBound, m_knapsack.linearBound(m_break, m_usable));
    const bool constrained = m_break.segment < m_knapsack.m_segments.size();
    m_multiplier = constrained ? m_knapsack.m_segments[m_break.segment].slope() : Slope{0, 1};
    m_work = 1;

    std::int64_t greedyBytes = 0;
    std::int64_t greedyTime = 0;
    std::vector<std::int32_t> counts =
        m_knapsack.filledCounts(m_usable, m_hasCutoff ? kQuickWidth : m_knapsack.thoroughWidth(), greedyBytes,
                                greedyTime, Interrupt(m_limits, m_start));
    if (greedyTime < m_bestTime || (greedyTime == m_bestTime && greedyBytes < m_bestBytes)) {
        m_bestTime = greedyTime;
        m_bestBytes = greedyBytes;
        m_hasSolution = m_bestIsGreedy = true;
    }
    if (constrained && !m_hasCutoff && m_lowerBound < m_bestTime)
        m_lowerBound = std::max(m_lowerBound, m_knapsack.latticeBound(m_capacity));
    // The fastest solution has the fewest bytes among the equally fast: nothing is left to search.
    m_done = !constrained || m_lowerBound > m_bestTime;
    if (!m_done) {
        m_base = m_knapsack.pointsBefore(m_break.segment);
        m_baseState = {m_knapsack.m_prefixBytes[m_break.segment], m_knapsack.m_prefixTime[m_break.segment], 0, 0};
        search();
    }

    solution.feasible = m_hasSolution;
    solution.cancelled = m_cancelled;
    solution.proven = m_done || (m_hasSolution && m_lowerBound >= m_bestTime);
    solution.lowerBound = solution.proven && m_hasSolution ? m_bestTime : std::min(m_lowerBound, m_bestTime);
    solution.work = m_work;
    solution.shadowPrice = m_multiplier.value();
    if (m_hasSolution) {
        solution.time = m_bestTime;
        solution.bytes = m_bestBytes;
        m_knapsack.setCounts(solution, m_bestIsGreedy ? counts : searchedCounts());
    }
    return solution;
}

void KnapsackSearch::search() {
    std::int64_t step = std::max<std::int64_t>((m_bestTime - m_lowerBound) / kFirstTargetPart, 1);
    std::size_t width = kFirstWidth;
    while (!m_done && !contentWithGap()) {
        switch (runRound(targetAt(step), width)) {
        case Outcome::Stopped:
            return;
        case Outcome::Complete:
            m_done = m_target >= m_bestTime;
            if (!m_done)
                m_lowerBound = roundUpTo(m_target + 1, m_knapsack.minimumTime(), m_knapsack.m_timeStep);
            m_done = m_done || m_lowerBound > m_bestTime;
            step = step > kMaximumSum / 2 ? step : 2 * step;
            break;
        case Outcome::Narrowed:
            if (m_bestTime > m_target && !beamUpwards(step, width))
                return;
            step = std::max<std::int64_t>(std::min(step, (m_bestTime - m_lowerBound) / kNextTargetPart), 1);
            width = std::min(width * kWidthGrowth, kMaximumStates);
            break;
        }
    }
}

/// Looks for a better solution with more and more modest targets; false when stopped.
bool KnapsackSearch::beamUpwards(std::int64_t step, std::size_t width) {
    while (step < m_bestTime - m_lowerBound) {
        step = step > kMaximumSum / kTargetGrowth ? kMaximumSum : step * kTargetGrowth;
        if (runRound(targetAt(step), width) == Outcome::Stopped)
            return false;
        if (m_target >= m_bestTime)
            break;
    }
    return true;
}

/// The time `step` above the bound, or that of the best solution when it is not much further.
std::int64_t KnapsackSearch::targetAt(std::int64_t step) const {
    return step < (m_bestTime - m_lowerBound) / 2 ? m_lowerBound + step : m_bestTime;
}

std::vector<std::int32_t> KnapsackSearch::searchedCounts() const {
    std::vector<std::int32_t> counts(m_knapsack.m_points.size(), 0);
    for (std::size_t g = 0; g < m_base.size(); ++g)
        counts[m_base[g]] = m_knapsack.m_counts[g];
    for (const Deviation& deviation : m_bestDeviations) {
        --counts[m_base[deviation.group]];
        ++counts[deviation.point];
    }
    return counts;
}

bool KnapsackSearch::contentWithGap() const {
    if (!m_hasSolution || m_limits.tolerance <= 0)
        return false;
    return static_cast<double>(m_bestTime - m_lowerBound) <= m_limits.tolerance * static_cast<double>(m_bestTime);
}

bool KnapsackSearch::mustStop() {
    if (m_stopped)
        return true;
    if (m_limits.workLimit > 0 && m_work >= m_limits.workLimit)
        return m_stopped = true;
    if (m_work < m_nextClockCheck)
        return false;
    m_nextClockCheck = m_work + kWorkBetweenChecks;
    return interrupted();
}

bool KnapsackSearch::interrupted() {
    if (m_stopped)
        return true;
    m_cancelled = m_limits.stop.stop_requested();
    const std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - m_start;
    const bool late = m_limits.timeLimitSeconds > 0 && elapsed.count() > m_limits.timeLimitSeconds;
    return m_stopped = m_cancelled || late;
}

/// Deviations whose loss against the multiplier alone exceeds the target cannot be part of a solution of interest.
void KnapsackSearch::makePasses(std::int64_t target) {
    const auto q = static_cast<Int128>(m_multiplier.bytes);
    const auto p = static_cast<Int128>(m_multiplier.time);
    // q * (target - Lagrangian bound), where the base assignment attains the bound.
    const Int128 allowance = q * (target - m_baseState.time) + p * (m_usable - m_baseState.bytes);
    std::vector<Pass>& passes = m_near.passes;
    passes.clear();
    for (std::size_t g = 0; g < m_base.size(); ++g) {
        const Knapsack::Point& base = m_knapsack.m_points[m_base[g]];
        const std::size_t first = passes.size();
        Int128 leastLoss = allowance + 1;
        for (std::int32_t i = m_knapsack.m_firstPoint[g]; i < m_knapsack.m_firstPoint[g + 1]; ++i) {
            const Knapsack::Point& point = m_knapsack.m_points[i];
            const std::int64_t bytes = point.bytes - base.bytes;
            const std::int64_t time = point.time - base.time;
            const Int128 loss = q * time + p * bytes;
            if (i == m_base[g] || loss > allowance)
                continue;
            leastLoss = std::min(leastLoss, loss);
            const double distance = static_cast<double>(loss) / static_cast<double>(std::abs(bytes));
            passes.push_back({bytes,
                              time,
                              loss,
                              distance,
                              static_cast<std::int32_t>(g),
                              i,
                              m_knapsack.m_counts[g],
                              kHeaviest,
                              true,
                              {},
                              {}});
        }
        const bool limitBinds = leastLoss < allowance / m_knapsack.m_counts[g] + 1;
        for (std::size_t i = first; i < passes.size(); ++i)
            passes[i].counted = limitBinds || m_knapsack.m_counts[g] == 1;
    }
    orderPasses();
}

void KnapsackSearch::orderPasses() {
    std::vector<Pass>& passes = m_near.passes;
    std::vector<double> nearest(m_base.size(), std::numeric_limits<double>::infinity());
    for (const Pass& pass : passes)
        nearest[pass.group] = std::min(nearest[pass.group], pass.distance);
    std::sort(passes.begin(), passes.end(), [&](const Pass& a, const Pass& b) {
        return std::tie(nearest[a.group], a.group, a.distance, a.point) <
               std::tie(nearest[b.group], b.group, b.distance, b.point);
    });
    rate(passes);
}

void KnapsackSearch::rate(std::vector<Pass>& passes) {
    Rates rates{{0, 1}, {1, 0}, kHeaviest};
    Int128 leastInGroup = kHeaviest;
    for (auto pass = passes.rbegin(); pass != passes.rend(); ++pass) {
        const bool endsGroup = pass == passes.rbegin() || std::prev(pass)->group != pass->group;
        pass->after = rates;
        pass->leastLossInGroup = leastInGroup = endsGroup ? kHeaviest : std::min(leastInGroup, std::prev(pass)->loss);
        if (pass->bytes > 0) {
            const Slope gain{-pass->time, pass->bytes};
            rates.gain = steeper(gain, rates.gain) ? gain : rates.gain;
        } else {
            const Slope loss{pass->time, -pass->bytes};
            rates.loss = steeper(rates.loss, loss) ? loss : rates.loss;
        }
        rates.leastLoss = std::min(rates.leastLoss, pass->loss);
        pass->before = rates;
    }
}

/// Whether passes with these rates can still turn the state into a solution of interest.
bool KnapsackSearch::promising(std::int64_t bytes, std::int64_t time, const Rates& rates) const {
    const auto reachable = [&](std::int64_t capacity, std::int64_t latest) {
        const std::int64_t spare = capacity - bytes;
        const std::int64_t allowed = latest - time;
        if (spare >= 0) {
            return allowed >= 0 ||
                   static_cast<Int128>(-allowed) * rates.gain.bytes <= static_cast<Int128>(rates.gain.time) * spare;
        }
        return allowed > 0 &&
               static_cast<Int128>(rates.loss.time) * -spare <= static_cast<Int128>(allowed) * rates.loss.bytes;
    };
    // A cutoff need not be a time that solutions can take, so only from a solution do we step down a whole step.
    const std::int64_t better = m_bestTime - (m_hasSolution ? std::max<std::int64_t>(m_knapsack.m_timeStep, 1) : 1);
    if (reachable(m_usable, std::min(m_target, better)))
        return true;
    // Equal time is of interest only with fewer bytes.
    return m_target >= m_bestTime && reachable(std::min(m_usable, m_bestBytes - 1), m_bestTime);
}

Int128 KnapsackSearch::weight(std::int64_t bytes, std::int64_t time) const {
    return static_cast<Int128>(m_multiplier.bytes) * time + static_cast<Int128>(m_multiplier.time) * bytes;
}

std::int64_t KnapsackSearch::boundOf(const State& state, const Rates& rates) const {
    const std::int64_t spare = m_usable - state.bytes;
    if (spare >= 0)
        return state.time - multiplyDivideDown(rates.gain.time, spare, rates.gain.bytes);
    if (rates.loss.bytes == 0)
        return kInfeasibleTime;
    const Int128 cost = (static_cast<Int128>(rates.loss.time) * -spare + rates.loss.bytes - 1) / rates.loss.bytes;
    return static_cast<std::int64_t>(std::min<Int128>(cost + state.time, kInfeasibleTime));
}

/// What the states can still become bounds every solution up to the target.
void KnapsackSearch::raiseLowerBound(const std::vector<State>& states, const Rates& rates) {
    std::int64_t bound = m_target == m_bestTime ? m_target : m_target + 1;
    for (const State& state : states)
        bound = std::min(bound, boundOf(state, rates));
    m_lowerBound = std::max(m_lowerBound, roundUpTo(bound, m_knapsack.minimumTime(), m_knapsack.m_timeStep));
}

/// Looks at the assignments up to the target: at all of them, unless more than `width` states must be kept at once.
KnapsackSearch::Outcome KnapsackSearch::runRound(std::int64_t target, std::size_t width) {
    m_target = target;
    makePasses(target);
    const Outcome outcome = runTwoLists(kWorkPerWidth * static_cast<std::int64_t>(width));
    return outcome == Outcome::Narrowed ? runBeam(width) : outcome;
}

/// One list through all groups, of the most promising states.
KnapsackSearch::Outcome KnapsackSearch::runBeam(std::size_t width) {
    bool narrowed = false;
    begin(m_near);
    consider(m_near, m_baseState, 0, 0);
    while (m_near.done < m_near.passes.size() && !m_near.states.empty()) {
        const Pass& pass = m_near.passes[m_near.done];
        if (!addPass(m_near)) {
            if (!narrowed)
                raiseLowerBound(m_near.states, pass.before);
            return Outcome::Stopped;
        }
        if (m_near.states.size() > width) {
            narrow(m_near.states, width, pass.after);
            narrowed = true;
        }
    }
    return narrowed ? Outcome::Narrowed : Outcome::Complete;
}

/// Keeps the states with the least bounds.
void KnapsackSearch::narrow(std::vector<State>& states, std::size_t width, const Rates& rates) {
    m_ranking.clear();
    for (std::size_t i = 0; i < states.size(); ++i)
        m_ranking.emplace_back(boundOf(states[i], rates), static_cast<std::uint32_t>(i));
    const auto end = m_ranking.begin() + static_cast<std::ptrdiff_t>(width);
    std::nth_element(m_ranking.begin(), end, m_ranking.end());
    std::sort(m_ranking.begin(), end, [](const auto& a, const auto& b) { return a.second < b.second; });
    for (std::size_t i = 0; i < width; ++i)
        states[i] = states[m_ranking[i].second];
    states.resize(width);
}

bool KnapsackSearch::improves(std::int64_t bytes, std::int64_t time) {
    if (bytes > m_usable || time > m_bestTime || (time == m_bestTime && bytes >= m_bestBytes))
        return false;
    m_bestTime = time;
    m_bestBytes = bytes;
    m_hasSolution = true;
    m_bestIsGreedy = false;
    m_bestDeviations.clear();
    return true;
}

void KnapsackSearch::consider(const List& list, const State& state, std::size_t passIndex, std::uint32_t parent) {
    if (!improves(state.bytes, state.time) || state.node == 0)
        return;
    m_bestDeviations.push_back({list.passes[passIndex].group, list.passes[passIndex].point});
    addDeviations(list, parent);
}

void KnapsackSearch::addDeviations(const List& list, std::uint32_t node) {
    for (; node != 0; node = list.nodes[node].parent)
        m_bestDeviations.push_back(
            {list.passes[list.nodes[node].pass].group, list.passes[list.nodes[node].pass].point});
}

} // namespace shardscope::planner
