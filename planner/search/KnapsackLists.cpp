// SPDX-License-Identifier: GPL-3.0-or-later
// The list dynamic programme of the search: passes that add copies of one deviation to every state.
#include "planner/search/KnapsackSearch.h"

#include <algorithm>
#include <tuple>

namespace shardscope::planner {

namespace {

constexpr std::size_t kNodesBeforeCollection = 4'000'000;

} // namespace

void KnapsackSearch::begin(List& list) {
    list.done = 0;
    list.nodes.assign(1, {0, 0});
    list.states.assign(1, m_baseState);
}

bool KnapsackSearch::addPass(List& list) {
    const std::size_t i = list.done;
    const Pass& pass = list.passes[i];
    m_next.clear();
    m_leastTime.assign(static_cast<std::size_t>(pass.limit) + 2, kInfeasibleTime);
    const bool finished = pass.bytes > 0 ? addSpending(list, i) : addFreeing(list, i);
    if (!finished || contentWithGap() || interrupted())
        return m_stopped = true, false;
    finishPass(list, pass, i + 1 == list.passes.size() || list.passes[i + 1].group != pass.group);
    ++list.done;
    if (list.nodes.size() > kNodesBeforeCollection && list.nodes.size() > 4 * list.states.size())
        collectNodes(list);
    return true;
}

bool KnapsackSearch::pushUndominated(List& list, State state, std::size_t passIndex, bool isNew) {
    const auto used = static_cast<std::size_t>(state.used) + 1;
    for (std::size_t i = used; i > 0; i -= i & (~i + 1)) {
        if (m_leastTime[i] <= state.time)
            return false;
    }
    for (std::size_t i = used; i < m_leastTime.size(); i += i & (~i + 1))
        m_leastTime[i] = std::min(m_leastTime[i], state.time);
    if (isNew) {
        const std::uint32_t parent = state.node;
        state.node = static_cast<std::uint32_t>(list.nodes.size());
        list.nodes.push_back({parent, static_cast<std::uint32_t>(passIndex)});
        consider(list, state, passIndex, parent);
    }
    m_next.push_back(state);
    return true;
}

/// Deviations that spend bytes: states come out by rising bytes and feed further copies as they come.
bool KnapsackSearch::addSpending(List& list, std::size_t passIndex) {
    const Pass& pass = list.passes[passIndex];
    std::size_t old = 0;
    std::size_t source = 0;
    while (true) {
        ++m_work;
        if (mustStop() || m_next.size() >= kMaximumStates || list.nodes.size() >= kMaximumNodes)
            return m_stopped = true, false;
        while (source < m_next.size() && pass.counted && m_next[source].used >= pass.limit)
            ++source;
        const bool hasOld = old < list.states.size();
        const bool hasNew = source < m_next.size();
        if (!hasOld && !hasNew)
            return true;
        State shifted{};
        if (hasNew) {
            const State& from = m_next[source];
            shifted = {from.bytes + pass.bytes, from.time + pass.time, from.node, from.used + (pass.counted ? 1 : 0)};
        }
        const bool takeOld =
            hasOld && (!hasNew || std::tie(list.states[old].bytes, list.states[old].time, list.states[old].used) <=
                                      std::tie(shifted.bytes, shifted.time, shifted.used));
        if (takeOld) {
            pushUndominated(list, list.states[old++], passIndex, false);
        } else {
            ++source;
            if (promising(shifted.bytes, shifted.time, pass.before))
                pushUndominated(list, shifted, passIndex, true);
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
bool KnapsackSearch::addFreeing(List& list, std::size_t passIndex) {
    const Pass& pass = list.passes[passIndex];
    m_shifted.clear();
    std::size_t old = list.states.size();
    std::size_t source = 0;
    while (old > 0 || source < m_shifted.size()) {
        ++m_work;
        if (mustStop() || m_shifted.size() >= kMaximumStates || list.nodes.size() >= kMaximumNodes)
            return m_stopped = true, false;
        const bool fromOld =
            old > 0 && (source == m_shifted.size() || list.states[old - 1].bytes >= m_shifted[source].bytes);
        const State from = fromOld ? list.states[--old] : m_shifted[source++];
        if (pass.counted && from.used >= pass.limit)
            continue;
        State shifted{from.bytes + pass.bytes, from.time + pass.time, from.node, from.used + (pass.counted ? 1 : 0)};
        const bool repeated = !m_shifted.empty() && m_shifted.back().bytes == shifted.bytes &&
                              m_shifted.back().time <= shifted.time && m_shifted.back().used <= shifted.used;
        if (repeated || !promising(shifted.bytes, shifted.time, pass.before))
            continue;
        shifted.node = static_cast<std::uint32_t>(list.nodes.size());
        list.nodes.push_back({from.node, static_cast<std::uint32_t>(passIndex)});
        consider(list, shifted, passIndex, from.node);
        m_shifted.push_back(shifted);
    }
    std::reverse(m_shifted.begin(), m_shifted.end());
    sortEqualBytes();
    const auto order = [](const State& a, const State& b) {
        return std::tie(a.bytes, a.time, a.used) < std::tie(b.bytes, b.time, b.used);
    };
    std::size_t added = 0;
    for (const State& state : list.states) {
        for (; added < m_shifted.size() && order(m_shifted[added], state); ++added)
            pushUndominated(list, m_shifted[added], passIndex, false);
        pushUndominated(list, state, passIndex, false);
    }
    for (; added < m_shifted.size(); ++added)
        pushUndominated(list, m_shifted[added], passIndex, false);
    if (m_next.size() >= kMaximumStates)
        return m_stopped = true, false;
    return true;
}

/// Drops what the remaining passes cannot save, and what differs only in how much of the group was used where that no
/// longer matters: at the end of the group, and when the target is out of reach before the limit is.
void KnapsackSearch::finishPass(List& list, const Pass& pass, bool endsGroup) {
    list.states.clear();
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
        list.states.push_back(state);
    }
}

/// Forgets histories that no state refers to.
void KnapsackSearch::collectNodes(List& list) {
    std::vector<std::uint32_t> moved(list.nodes.size(), 0);
    for (const State& state : list.states)
        moved[state.node] = 1;
    for (std::size_t i = list.nodes.size(); i-- > 1;) {
        if (moved[i])
            moved[list.nodes[i].parent] = 1;
    }
    moved[0] = 0;
    std::uint32_t kept = 1;
    for (std::size_t i = 1; i < list.nodes.size(); ++i) {
        if (!moved[i])
            continue;
        list.nodes[kept] = {moved[list.nodes[i].parent], list.nodes[i].pass};
        moved[i] = kept++;
    }
    list.nodes.resize(kept);
    for (State& state : list.states)
        state.node = moved[state.node];
}

} // namespace shardscope::planner
