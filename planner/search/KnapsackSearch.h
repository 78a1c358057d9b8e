// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "planner/search/Knapsack.h"

#include <chrono>
#include <cstdint>
#include <vector>

namespace shardscope::planner {

/// One exact search on a Knapsack: a list dynamic programme around the optimum of the linear relaxation.
///
/// Every item starts at its base option, the one the relaxation takes at the multiplier of the capacity. Passes,
/// closest to the multiplier first, then add copies of one deviation (an item of a group moves from base to another
/// option) to every state of the list. A state is a whole assignment, so each one that fits is a solution. States that
/// another state dominates are dropped, and so are states whose bound exceeds the target: the multiplier of the best
/// deviation still to come bounds what a state with spare bytes can gain, and what a state above the capacity must
/// lose.
///
/// A round looks at assignments up to a target between the linear bound and the best solution, and keeps so many
/// states. First it lists the deviations of the groups closest to the multiplier and those of the groups furthest from
/// it apart, the shorter list growing by one group at a time, until they meet; sorted by bytes, one sweep over both
/// finds the best pair (Horowitz and Sahni, J. ACM 1974). If that takes no more than a share of work, the round is
/// complete: it has found the best assignment up to its target, or proven that there is none. Otherwise a single list
/// goes through all groups as a beam, which drops the least promising states and finds good solutions. Targets and
/// widths grow until a complete round reaches the best solution.
class KnapsackSearch {
public:
    KnapsackSearch(const Knapsack& knapsack, std::int64_t capacity, const SearchLimits& limits, KnapsackCutoff cutoff);

    KnapsackSolution run();

private:
    /// Memory bounds: about 150 MB per list of states and 256 MB of history. Beyond them the search stops unproven.
    static constexpr std::size_t kMaximumStates = 6'000'000;
    static constexpr std::size_t kMaximumNodes = 32'000'000;
    enum class Outcome {
        Complete, ///< every assignment up to the target has been looked at
        Narrowed, ///< only the most promising ones
        Stopped,
    };
    /// The bound over deviations that are still to come.
    struct Rates {
        Slope gain{0, 1};     ///< the most time a spare byte can save
        Slope loss{1, 0};     ///< the least time that freeing a byte costs; infinite when none can be freed
        Int128 leastLoss = 0; ///< of any one of them, in weight
    };
    struct Pass {
        std::int64_t bytes; ///< added per copy
        std::int64_t time;
        Int128 loss;     ///< weight added per copy
        double distance; ///< time lost per byte moved, against the multiplier
        std::int32_t group;
        std::int32_t point;
        std::int32_t limit;      ///< deviations the group allows
        Int128 leastLossInGroup; ///< of the group's passes after this one
        bool counted;            ///< the limit can bind, so states carry how many they have used
        Rates before;            ///< of this pass and those to come
        Rates after;
    };
    struct State {
        std::int64_t bytes;
        std::int64_t time;
        std::uint32_t node; ///< how it came about; 0 is the base
        std::int32_t used;  ///< deviations in the group being worked on
    };
    /// States share their history; parents have smaller indices.
    struct Node {
        std::uint32_t parent;
        std::uint32_t pass;
    };

    /// All assignments that differ from the base in the groups of the passes made so far.
    struct List {
        std::vector<Pass> passes; ///< of all groups, in the order in which this list takes them
        std::size_t done = 0;     ///< passes
        std::vector<State> states;
        std::vector<Node> nodes;
    };

    void search();
    Outcome runRound(std::int64_t target, std::size_t width);
    Outcome runBeam(std::size_t width);
    Outcome runTwoLists(std::int64_t work);
    void begin(List& list);
    /// False when stopped.
    bool addPass(List& list);
    Outcome addGroup(List& list, std::int64_t lastWork);
    void joinLists();
    bool beamUpwards(std::int64_t step, std::size_t width);
    std::int64_t targetAt(std::int64_t step) const;
    void raiseLowerBound(const std::vector<State>& states, const Rates& rates);
    void narrow(std::vector<State>& states, std::size_t width, const Rates& rates);
    void makePasses(std::int64_t target);
    void orderPasses();
    static void rate(std::vector<Pass>& passes);
    bool addSpending(List& list, std::size_t passIndex);
    bool addFreeing(List& list, std::size_t passIndex);
    void sortEqualBytes();
    /// Adds `state` to the output unless one there dominates it.
    bool pushUndominated(List& list, State state, std::size_t passIndex, bool isNew);
    void finishPass(List& list, const Pass& pass, bool endsGroup);
    bool promising(std::int64_t bytes, std::int64_t time, const Rates& rates) const;
    /// The Lagrangian at the multiplier, times its denominator: what no deviation makes smaller.
    Int128 weight(std::int64_t bytes, std::int64_t time) const;
    std::int64_t boundOf(const State& state, const Rates& rates) const;
    /// Whether a solution of these sizes is better than the incumbent; it then takes its place.
    bool improves(std::int64_t bytes, std::int64_t time);
    void consider(const List& list, const State& state, std::size_t passIndex, std::uint32_t parent);
    void addDeviations(const List& list, std::uint32_t node);
    static void collectNodes(List& list);
    bool mustStop();
    /// The same without regard to work: for steps that only look at what is there.
    bool interrupted();
    bool contentWithGap() const;
    std::vector<std::int32_t> searchedCounts() const;

    const Knapsack& m_knapsack;
    const SearchLimits& m_limits;
    const std::chrono::steady_clock::time_point m_start = std::chrono::steady_clock::now();
    const std::int64_t m_capacity;
    std::int64_t m_usable = 0;
    Knapsack::Break m_break{};
    Slope m_multiplier;
    std::vector<std::int32_t> m_base; ///< [group]: point
    State m_baseState{};

    // The incumbent: a solution in hand, or the cutoff to beat.
    std::int64_t m_bestTime;
    std::int64_t m_bestBytes;
    const bool m_hasCutoff; ///< someone else has a solution
    std::int64_t m_lowerBound;
    bool m_hasSolution = false;
    bool m_bestIsGreedy = false;
    struct Deviation {
        std::int32_t group;
        std::int32_t point;
    };
    std::vector<Deviation> m_bestDeviations;

    std::int64_t m_target = 0; ///< of the round; times above it are of no interest
    List m_near;               ///< from the groups closest to the multiplier
    List m_far;                ///< from the others
    std::vector<State> m_next;
    std::vector<State> m_shifted;
    std::vector<std::pair<std::int64_t, std::uint32_t>> m_ranking; ///< bound and index of the states, in a beam
    /// A tree of prefix minima (Fenwick): the least time among output states that used at most so many deviations.
    std::vector<std::int64_t> m_leastTime;

    std::int64_t m_work = 0;
    std::int64_t m_nextClockCheck = 0;
    bool m_done = false; ///< nothing better exists
    bool m_stopped = false;
    bool m_cancelled = false;
};

} // namespace shardscope::planner
