// SPDX-License-Identifier: GPL-3.0-or-later
// Complete rounds of the search: two short lists instead of one long one. Every assignment is a state of the one plus a
// state of the other, so lists of n states each stand for n * n assignments.
#include "planner/search/KnapsackSearch.h"

#include <algorithm>
#include <tuple>

namespace shardscope::planner {

/// Complete when it took no more than `work`; Narrowed, with nothing proven, when it would have.
KnapsackSearch::Outcome KnapsackSearch::runTwoLists(std::int64_t work) {
    const std::int64_t lastWork = m_work + work;
    begin(m_near);
    begin(m_far);
    consider(m_near, m_baseState, 0, 0);
    // The same groups from the other end, passes in a group in the same order.
    m_far.passes.clear();
    for (std::size_t end = m_near.passes.size(); end > 0;) {
        std::size_t first = end - 1;
        while (first > 0 && m_near.passes[first - 1].group == m_near.passes[end - 1].group)
            --first;
        m_far.passes.insert(m_far.passes.end(), m_near.passes.begin() + static_cast<std::ptrdiff_t>(first),
                            m_near.passes.begin() + static_cast<std::ptrdiff_t>(end));
        end = first;
    }
    rate(m_far.passes);
    while (m_near.done + m_far.done < m_near.passes.size()) {
        // A list without states has nothing to add: all it could become has been looked at.
        if (m_near.states.empty() || m_far.states.empty())
            return Outcome::Complete;
        const Outcome outcome = addGroup(m_near.states.size() < m_far.states.size() ? m_near : m_far, lastWork);
        if (outcome != Outcome::Complete)
            return outcome;
    }
    joinLists();
    return Outcome::Complete;
}

KnapsackSearch::Outcome KnapsackSearch::addGroup(List& list, std::int64_t lastWork) {
    const std::int32_t group = list.passes[list.done].group;
    while (list.done < list.passes.size() && list.passes[list.done].group == group) {
        const Rates& before = list.passes[list.done].before;
        if (!addPass(list)) {
            raiseLowerBound(list.states, before);
            return Outcome::Stopped;
        }
        if (m_work > lastWork)
            return Outcome::Narrowed;
    }
    return Outcome::Complete;
}

/// Both lists rise in bytes. With fewer bytes left for the far state, fewer near states fit; the fastest of those that
/// do is its best partner, and the one with fewest bytes among equally fast ones.
void KnapsackSearch::joinLists() {
    const std::vector<State>& near = m_near.states;
    const std::vector<State>& far = m_far.states;
    m_work += static_cast<std::int64_t>(near.size() + far.size());
    std::size_t fitting = 0;
    std::size_t fastest = 0;
    for (std::size_t i = far.size(); i-- > 0;) {
        const std::int64_t spare = m_usable - (far[i].bytes - m_baseState.bytes);
        for (; fitting < near.size() && near[fitting].bytes <= spare; ++fitting) {
            if (std::tie(near[fitting].time, near[fitting].bytes) < std::tie(near[fastest].time, near[fastest].bytes))
                fastest = fitting;
        }
        if (fitting == 0)
            continue;
        const State& partner = near[fastest];
        if (!improves(far[i].bytes + partner.bytes - m_baseState.bytes, far[i].time + partner.time - m_baseState.time))
            continue;
        addDeviations(m_near, partner.node);
        addDeviations(m_far, far[i].node);
    }
}

} // namespace shardscope::planner
