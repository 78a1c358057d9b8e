// SPDX-License-Identifier: GPL-3.0-or-later
#include "planner/search/KnapsackSearch.h"

#include <algorithm>
#include <limits>

namespace shardscope::planner {

namespace {

/// Memory bounds: about 150 MB per list of states and 256 MB of history. Beyond them the search stops unproven.
constexpr std::size_t kMaximumStates = 6'000'000;
constexpr std::size_t kMaximumNodes = 32'000'000;
constexpr std::size_t kNodesBeforeCollection = 4'000'000;
/// Clock and stop token are looked at this often, a fraction of a millisecond apart.
constexpr std::int64_t kWorkBetweenChecks = 8192;
/// The first target is this part of the gap above the bound.
constexpr std::int64_t kFirstTargetPart = 64;
constexpr std::int64_t kNextTargetPart = 16; ///< the same after a beam
constexpr std::int64_t kTargetGrowth = 4;
constexpr std::size_t kFirstWidth = 64;
constexpr std::size_t kWidthGrowth = 4;
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
    std::vector<std::int32_t> counts = m_knapsack.filledCounts(
        m_usable, m_hasCutoff ? kQuickWidth : m_knapsack.thoroughWidth(), greedyBytes, greedyTime);
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
    m_passes.clear();
    for (std::size_t g = 0; g < m_base.size(); ++g) {
        const Knapsack::Point& base = m_knapsack.m_points[m_base[g]];
        const std::size_t first = m_passes.size();
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
            m_passes.push_back({bytes,
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
        for (std::size_t i = first; i < m_passes.size(); ++i)
            m_passes[i].counted = limitBinds || m_knapsack.m_counts[g] == 1;
    }
    orderPasses();
}

void KnapsackSearch::orderPasses() {
    std::vector<double> nearest(m_base.size(), std::numeric_limits<double>::infinity());
    for (const Pass& pass : m_passes)
        nearest[pass.group] = std::min(nearest[pass.group], pass.distance);
    std::sort(m_passes.begin(), m_passes.end(), [&](const Pass& a, const Pass& b) {
        return std::tie(nearest[a.group], a.group, a.distance, a.point) <
               std::tie(nearest[b.group], b.group, b.distance, b.point);
    });
    Rates rates{{0, 1}, {1, 0}, kHeaviest};
    Int128 leastInGroup = kHeaviest;
    for (auto pass = m_passes.rbegin(); pass != m_passes.rend(); ++pass) {
        const bool endsGroup = pass == m_passes.rbegin() || std::prev(pass)->group != pass->group;
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
void KnapsackSearch::raiseLowerBound(const Rates& rates) {
    std::int64_t bound = m_target == m_bestTime ? m_target : m_target + 1;
    for (const State& state : m_states)
        bound = std::min(bound, boundOf(state, rates));
    m_lowerBound = std::max(m_lowerBound, roundUpTo(bound, m_knapsack.minimumTime(), m_knapsack.m_timeStep));
}

/// Looks at the assignments up to the target: at all of them, unless more than `width` states must be kept at once.
KnapsackSearch::Outcome KnapsackSearch::runRound(std::int64_t target, std::size_t width) {
    bool narrowed = false;
    m_target = target;
    makePasses(target);
    m_nodes.assign(1, {0, 0});
    m_states.assign(1, m_baseState);
    consider(m_baseState, 0, 0);
    for (std::size_t i = 0; i < m_passes.size() && !m_states.empty(); ++i) {
        const Pass& pass = m_passes[i];
        m_next.clear();
        m_leastTime.assign(static_cast<std::size_t>(pass.limit) + 2, kInfeasibleTime);
        const bool finished = pass.bytes > 0 ? addSpending(i) : addFreeing(i);
        if (!finished || contentWithGap()) {
            if (!narrowed)
                raiseLowerBound(pass.before);
            return Outcome::Stopped;
        }
        const bool endsGroup = i + 1 == m_passes.size() || m_passes[i + 1].group != pass.group;
        finishPass(pass, endsGroup);
        if (m_states.size() > width) {
            narrow(width, pass.after);
            narrowed = true;
        }
        if (m_nodes.size() > kNodesBeforeCollection && m_nodes.size() > 4 * m_states.size())
            collectNodes();
    }
    return narrowed ? Outcome::Narrowed : Outcome::Complete;
}

/// Keeps the states with the least bounds.
void KnapsackSearch::narrow(std::size_t width, const Rates& rates) {
    m_ranking.clear();
    for (std::size_t i = 0; i < m_states.size(); ++i)
        m_ranking.emplace_back(boundOf(m_states[i], rates), static_cast<std::uint32_t>(i));
    const auto end = m_ranking.begin() + static_cast<std::ptrdiff_t>(width);
    std::nth_element(m_ranking.begin(), end, m_ranking.end());
    std::sort(m_ranking.begin(), end, [](const auto& a, const auto& b) { return a.second < b.second; });
    for (std::size_t i = 0; i < width; ++i)
        m_states[i] = m_states[m_ranking[i].second];
    m_states.resize(width);
}

bool KnapsackSearch::pushUndominated(State state, std::size_t passIndex, bool isNew) {
    const auto used = static_cast<std::size_t>(state.used) + 1;
    for (std::size_t i = used; i > 0; i -= i & (~i + 1)) {
        if (m_leastTime[i] <= state.time)
            return false;
    }
    for (std::size_t i = used; i < m_leastTime.size(); i += i & (~i + 1))
        m_leastTime[i] = std::min(m_leastTime[i], state.time);
    if (isNew) {
        const std::uint32_t parent = state.node;
        state.node = static_cast<std::uint32_t>(m_nodes.size());
        m_nodes.push_back({parent, static_cast<std::uint32_t>(passIndex)});
        consider(state, passIndex, parent);
    }
    m_next.push_back(state);
    return true;
}

/// Deviations that spend bytes: states come out by rising bytes and feed further copies as they come.
bool KnapsackSearch::addSpending(std::size_t passIndex) {
    const Pass& pass = m_passes[passIndex];
    std::size_t old = 0;
    std::size_t source = 0;
    while (true) {
        ++m_work;
        if (mustStop() || m_next.size() >= kMaximumStates || m_nodes.size() >= kMaximumNodes)
            return m_stopped = true, false;
        while (source < m_next.size() && pass.counted && m_next[source].used >= pass.limit)
            ++source;
        const bool hasOld = old < m_states.size();
        const bool hasNew = source < m_next.size();
        if (!hasOld && !hasNew)
            return true;
        State shifted{};
        if (hasNew) {
            const State& from = m_next[source];
            shifted = {from.bytes + pass.bytes, from.time + pass.time, from.node, from.used + (pass.counted ? 1 : 0)};
        }
        const bool takeOld =
            hasOld && (!hasNew || std::tie(m_states[old].bytes, m_states[old].time, m_states[old].used) <=
                                      std::tie(shifted.bytes, shifted.time, shifted.used));
        if (takeOld) {
            pushUndominated(m_states[old++], passIndex, false);
        } else {
            ++source;
            if (promising(shifted.bytes, shifted.time, pass.before))
                pushUndominated(shifted, passIndex, true);
        }
    }
}

/// Copies come by rising bytes, but those of equal bytes in any order of time: runs are short, so insertion does it.
void KnapsackSearch::sortEqualBytes() {
    for (std::size_t i = 1; i < m_shifted.size(); ++i) {
        const State state = m_shifted[i];
        std::size_t to = i;
        for (; to > 0 && m_shifted[to - 1].bytes == state.bytes &&
               std::tie(m_shifted[to - 1].time, m_shifted[to - 1].used) > std::tie(state.time, state.used);
             --to)
            m_shifted[to] = m_shifted[to - 1];
        m_shifted[to] = state;
    }
}

/// Deviations that free bytes: copies are made by falling bytes, then merged by rising bytes.
bool KnapsackSearch::addFreeing(std::size_t passIndex) {
    const Pass& pass = m_passes[passIndex];
    m_shifted.clear();
    std::size_t old = m_states.size();
    std::size_t source = 0;
    while (old > 0 || source < m_shifted.size()) {
        ++m_work;
        if (mustStop() || m_shifted.size() >= kMaximumStates || m_nodes.size() >= kMaximumNodes)
            return m_stopped = true, false;
        const bool fromOld =
            old > 0 && (source == m_shifted.size() || m_states[old - 1].bytes >= m_shifted[source].bytes);
        const State from = fromOld ? m_states[--old] : m_shifted[source++];
        if (pass.counted && from.used >= pass.limit)
            continue;
        State shifted{from.bytes + pass.bytes, from.time + pass.time, from.node, from.used + (pass.counted ? 1 : 0)};
        const bool repeated = !m_shifted.empty() && m_shifted.back().bytes == shifted.bytes &&
                              m_shifted.back().time <= shifted.time && m_shifted.back().used <= shifted.used;
        if (repeated || !promising(shifted.bytes, shifted.time, pass.before))
            continue;
        shifted.node = static_cast<std::uint32_t>(m_nodes.size());
        m_nodes.push_back({from.node, static_cast<std::uint32_t>(passIndex)});
        consider(shifted, passIndex, from.node);
        m_shifted.push_back(shifted);
    }
    std::reverse(m_shifted.begin(), m_shifted.end());
    sortEqualBytes();
    const auto order = [](const State& a, const State& b) {
        return std::tie(a.bytes, a.time, a.used) < std::tie(b.bytes, b.time, b.used);
    };
    std::size_t added = 0;
    for (const State& state : m_states) {
        for (; added < m_shifted.size() && order(m_shifted[added], state); ++added)
            pushUndominated(m_shifted[added], passIndex, false);
        pushUndominated(state, passIndex, false);
    }
    for (; added < m_shifted.size(); ++added)
        pushUndominated(m_shifted[added], passIndex, false);
    if (m_next.size() >= kMaximumStates)
        return m_stopped = true, false;
    return true;
}

/// Drops what the remaining passes cannot save, and what differs only in how much of the group was used where that no
/// longer matters: at the end of the group, and when the target is out of reach before the limit is.
void KnapsackSearch::finishPass(const Pass& pass, bool endsGroup) {
    m_states.clear();
    const Int128 ceiling = weight(m_usable, std::min(m_target, m_bestTime));
    std::int64_t leastTime = kInfeasibleTime; // of the states without a count, which dominate those with one
    for (State state : m_next) {
        if (state.time >= leastTime || !promising(state.bytes, state.time, pass.after))
            continue;
        // The state itself has been considered, so it is only of use if one more deviation stays within the target.
        const Int128 margin = ceiling - weight(state.bytes, state.time);
        if (margin < pass.after.leastLoss)
            continue;
        if (endsGroup || pass.leastLossInGroup > margin / (pass.limit - state.used + 1))
            state.used = 0;
        if (state.used == 0)
            leastTime = state.time;
        m_states.push_back(state);
    }
}

void KnapsackSearch::consider(const State& state, std::size_t passIndex, std::uint32_t parent) {
    if (state.bytes > m_usable || state.time > m_bestTime || (state.time == m_bestTime && state.bytes >= m_bestBytes))
        return;
    m_bestTime = state.time;
    m_bestBytes = state.bytes;
    m_hasSolution = true;
    m_bestIsGreedy = false;
    m_bestDeviations.clear();
    if (state.node == 0)
        return;
    m_bestDeviations.push_back({m_passes[passIndex].group, m_passes[passIndex].point});
    for (std::uint32_t node = parent; node != 0; node = m_nodes[node].parent)
        m_bestDeviations.push_back({m_passes[m_nodes[node].pass].group, m_passes[m_nodes[node].pass].point});
}

/// Forgets histories that no state refers to.
void KnapsackSearch::collectNodes() {
    std::vector<std::uint32_t> moved(m_nodes.size(), 0);
    for (const State& state : m_states)
        moved[state.node] = 1;
    for (std::size_t i = m_nodes.size(); i-- > 1;) {
        if (moved[i])
            moved[m_nodes[i].parent] = 1;
    }
    moved[0] = 0;
    std::uint32_t kept = 1;
    for (std::size_t i = 1; i < m_nodes.size(); ++i) {
        if (!moved[i])
            continue;
        m_nodes[kept] = {moved[m_nodes[i].parent], m_nodes[i].pass};
        moved[i] = kept++;
    }
    m_nodes.resize(kept);
    for (State& state : m_states)
        state.node = moved[state.node];
}

} // namespace shardscope::planner
