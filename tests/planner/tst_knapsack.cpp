// SPDX-License-Identifier: GPL-3.0-or-later
#include "planner/search/Knapsack.h"

#include <QTest>

#include <algorithm>
#include <chrono>
#include <limits>
#include <random>
#include <string>
#include <thread>
#include <utility>
#include <vector>

using namespace std::chrono_literals;
using shardscope::planner::Knapsack;
using shardscope::planner::KnapsackCutoff;
using shardscope::planner::KnapsackGroup;
using shardscope::planner::KnapsackSolution;
using shardscope::planner::SearchLimits;

namespace {

using Outcome = std::pair<std::int64_t, std::int64_t>; // bytes, time

class Random {
public:
    explicit Random(std::uint64_t seed) : m_engine(seed) {}
    std::int64_t between(std::int64_t low, std::int64_t high) {
        return low + static_cast<std::int64_t>(m_engine() % static_cast<std::uint64_t>(high - low + 1));
    }

private:
    std::mt19937_64 m_engine;
};

std::vector<KnapsackGroup> randomGroups(Random& random, int maximumGroups, int maximumCount, int maximumOptions) {
    const std::int64_t ranges[] = {0, 4, 100, std::int64_t{1} << 53};
    const std::int64_t largestBytes = ranges[random.between(0, 3)];
    const std::int64_t largestTime = ranges[random.between(0, 3)];
    const std::int64_t unit = random.between(0, 2) == 0 ? 256 : 1;
    std::vector<KnapsackGroup> groups(random.between(1, maximumGroups));
    for (KnapsackGroup& group : groups) {
        group.count = static_cast<std::int32_t>(random.between(1, maximumCount));
        for (std::int64_t option = random.between(1, maximumOptions); option > 0; --option)
            group.options.push_back({random.between(0, largestBytes / unit) * unit, random.between(0, largestTime)});
    }
    return groups;
}

/// All undominated outcomes by rising bytes, found without any of the solver's ideas.
std::vector<Outcome> frontierOf(const std::vector<KnapsackGroup>& groups) {
    std::vector<Outcome> frontier{{0, 0}};
    for (const KnapsackGroup& group : groups) {
        for (std::int32_t item = 0; item < group.count; ++item) {
            std::vector<Outcome> sums;
            for (const auto& [bytes, time] : frontier) {
                for (const auto& option : group.options)
                    sums.emplace_back(bytes + option.bytes, time + option.time);
            }
            std::sort(sums.begin(), sums.end());
            frontier.clear();
            for (const Outcome& sum : sums) {
                if (frontier.empty() || sum.second < frontier.back().second)
                    frontier.push_back(sum);
            }
        }
    }
    return frontier;
}

Outcome priceOf(const std::vector<KnapsackGroup>& groups, const KnapsackSolution& solution) {
    Outcome price{0, 0};
    for (std::size_t g = 0; g < groups.size(); ++g) {
        std::int32_t items = 0;
        for (std::size_t o = 0; o < groups[g].options.size(); ++o) {
            const std::int32_t count = solution.counts[g][o];
            if (count < 0)
                return {-1, -1};
            items += count;
            price.first += count * groups[g].options[o].bytes;
            price.second += count * groups[g].options[o].time;
        }
        if (items != groups[g].count)
            return {-1, -1};
    }
    return price;
}

std::vector<std::int64_t> capacitiesFor(Random& random, const std::vector<Outcome>& frontier) {
    const std::int64_t low = frontier.front().first;
    const std::int64_t high = frontier.back().first;
    return {low - 1, low, high, high + 7, random.between(low, high), random.between(low, high)};
}

/// Many different items of proportional sizes: close to the hardest instances for branch and bound.
std::vector<KnapsackGroup> hardGroups(int count) {
    Random random(5);
    std::vector<KnapsackGroup> groups;
    for (int g = 0; g < count; ++g) {
        const std::int64_t parameters = random.between(100'000, 30'000'000);
        groups.push_back({1,
                          {{2 * parameters, 210'000'000 + 1050 * parameters / 10},
                           {16 * parameters, 140'000'000 + 70 * parameters}}});
    }
    return groups;
}

} // namespace

class tst_knapsack : public QObject {
    Q_OBJECT

private slots:
    void equalsEnumeration() {
        Random random(1);
        for (int instance = 0; instance < 4000; ++instance) {
            const auto groups = randomGroups(random, 6, 4, 6);
            const auto frontier = frontierOf(groups);
            const auto knapsack = Knapsack::create(groups);
            QVERIFY(knapsack.has_value());
            QCOMPARE(knapsack->minimumBytes(), frontier.front().first);
            QCOMPARE(knapsack->minimumTime(), frontier.back().second);
            QCOMPARE(knapsack->fastestBytes(), frontier.back().first);
            for (const std::int64_t capacity : capacitiesFor(random, frontier)) {
                const KnapsackSolution solution = knapsack->solve(capacity);
                QVERIFY(solution.proven);
                QCOMPARE(solution.feasible, capacity >= frontier.front().first);
                if (!solution.feasible)
                    continue;
                const Outcome best = *std::prev(std::upper_bound(
                    frontier.begin(), frontier.end(), Outcome(capacity, std::numeric_limits<std::int64_t>::max())));
                QCOMPARE(Outcome(solution.bytes, solution.time), best);
                QCOMPARE(priceOf(groups, solution), best);
                QCOMPARE(solution.lowerBound, best.second);
                QVERIFY(knapsack->lowerBound(capacity) <= best.second);
                const KnapsackSolution greedy = knapsack->incumbent(capacity);
                QVERIFY(greedy.feasible);
                QVERIFY(greedy.bytes <= capacity);
                QVERIFY(greedy.time >= best.second);
                QCOMPARE(priceOf(groups, greedy), Outcome(greedy.bytes, greedy.time));
            }
        }
    }

    void groupsEqualSingleItems() {
        Random random(2);
        for (int instance = 0; instance < 500; ++instance) {
            const auto groups = randomGroups(random, 3, 12, 5);
            std::vector<KnapsackGroup> singles;
            for (const KnapsackGroup& group : groups)
                singles.insert(singles.end(), group.count, {1, group.options});
            const auto grouped = Knapsack::create(groups);
            const auto single = Knapsack::create(singles);
            QVERIFY(grouped && single);
            const std::int64_t capacity = random.between(grouped->minimumBytes(), grouped->fastestBytes());
            const KnapsackSolution a = grouped->solve(capacity);
            const KnapsackSolution b = single->solve(capacity);
            QVERIFY(a.proven && b.proven);
            QCOMPARE(Outcome(a.bytes, a.time), Outcome(b.bytes, b.time));
        }
    }

    void cutoffAsksForBetterSolutionsOnly() {
        Random random(3);
        for (int instance = 0; instance < 2000; ++instance) {
            const auto groups = randomGroups(random, 5, 3, 5);
            const auto knapsack = Knapsack::create(groups);
            const std::int64_t capacity = random.between(knapsack->minimumBytes(), knapsack->fastestBytes());
            const KnapsackSolution best = knapsack->solve(capacity);
            const KnapsackCutoff cutoff{best.time + random.between(-1, 1), best.bytes + random.between(-1, 1)};
            const KnapsackSolution solution = knapsack->solve(capacity, {}, cutoff);
            QVERIFY(solution.proven);
            QCOMPARE(solution.feasible, std::pair(best.time, best.bytes) < std::pair(cutoff.time, cutoff.bytes));
            QVERIFY(solution.lowerBound <= best.time);
            if (solution.feasible)
                QCOMPARE(Outcome(solution.bytes, solution.time), Outcome(best.bytes, best.time));
        }
    }

    void breakpointsAreTheConvexEnvelope() {
        Random random(4);
        for (int instance = 0; instance < 500; ++instance) {
            const auto groups = randomGroups(random, 4, 3, 6);
            const auto frontier = frontierOf(groups);
            std::vector<Outcome> hull;
            for (const Outcome& point : frontier) {
                const auto isAbove = [&](const Outcome& a, const Outcome& b) {
                    return static_cast<shardscope::planner::Int128>(b.second - a.second) * (point.first - a.first) >=
                           static_cast<shardscope::planner::Int128>(point.second - a.second) * (b.first - a.first);
                };
                while (hull.size() >= 2 && isAbove(hull[hull.size() - 2], hull.back()))
                    hull.pop_back();
                hull.push_back(point);
            }
            const auto knapsack = Knapsack::create(groups);
            std::vector<Outcome> breakpoints;
            for (const auto& point : knapsack->breakpoints())
                breakpoints.emplace_back(point.bytes, point.time);
            QCOMPARE(breakpoints, hull);
            for (const auto& point : knapsack->supportedPoints())
                QVERIFY(std::binary_search(frontier.begin(), frontier.end(), Outcome(point.bytes, point.time)));
        }
    }

    void workLimitIsDeterministicAndHonest() {
        Random random(6);
        for (int instance = 0; instance < 1000; ++instance) {
            const auto groups = randomGroups(random, 6, 4, 6);
            const auto knapsack = Knapsack::create(groups);
            const std::int64_t capacity = random.between(knapsack->minimumBytes(), knapsack->fastestBytes());
            const KnapsackSolution best = knapsack->solve(capacity);
            SearchLimits limits;
            limits.workLimit = random.between(1, 100);
            const KnapsackSolution a = knapsack->solve(capacity, limits);
            const KnapsackSolution b = knapsack->solve(capacity, limits);
            QVERIFY(a.feasible);
            QVERIFY(a.time >= best.time);
            QVERIFY(a.lowerBound <= best.time);
            QVERIFY(!a.proven || a.time == best.time);
            QCOMPARE(priceOf(groups, a), Outcome(a.bytes, a.time));
            QCOMPARE(a.counts, b.counts);
            QCOMPARE(a.lowerBound, b.lowerBound);
            QCOMPARE(a.work, b.work);
        }
    }

    void workLimitLeavesHardInstancesUnproven() {
        const auto knapsack = Knapsack::create(hardGroups(2000));
        SearchLimits limits;
        limits.workLimit = 1;
        const std::int64_t capacity = (knapsack->minimumBytes() + knapsack->fastestBytes()) / 2;
        const KnapsackSolution solution = knapsack->solve(capacity, limits);
        QVERIFY(solution.feasible);
        QVERIFY(!solution.proven);
        QVERIFY(solution.lowerBound < solution.time);
        QVERIFY(static_cast<double>(solution.time - solution.lowerBound) < 1e-3 * static_cast<double>(solution.time));
    }

    void toleranceStopsEarly() {
        const auto knapsack = Knapsack::create(hardGroups(2000));
        SearchLimits limits;
        limits.tolerance = 1e-4;
        const std::int64_t capacity = (knapsack->minimumBytes() + knapsack->fastestBytes()) / 2;
        const KnapsackSolution solution = knapsack->solve(capacity, limits);
        QVERIFY(solution.feasible);
        QVERIFY(static_cast<double>(solution.time - solution.lowerBound) <= 1e-4 * static_cast<double>(solution.time));
    }

    void cancelEndsTheSearch() {
        // How soon is measured by bench_different; here, that the search ends at all, from another thread and unasked
        // for more than it has, and that it looks at next to nothing once the request is there.
        const auto knapsack = Knapsack::create(hardGroups(20'000));
        const std::int64_t capacity = (knapsack->minimumBytes() + knapsack->fastestBytes()) / 2;
        std::stop_source source;
        SearchLimits limits;
        limits.stop = source.get_token();
        KnapsackSolution solution;
        std::thread solver([&] { solution = knapsack->solve(capacity, limits); });
        std::this_thread::sleep_for(100ms);
        source.request_stop();
        solver.join();
        // A solution found before the request is as good.
        QVERIFY(solution.cancelled || solution.proven);
        QVERIFY(solution.feasible);

        const KnapsackSolution again = knapsack->solve(capacity, limits);
        QVERIFY(again.cancelled && again.feasible && !again.proven);
        QVERIFY2(again.work < 10'000, std::to_string(again.work).c_str());
        QVERIFY(again.lowerBound <= solution.time);
    }

    void refusesImpossibleInput() {
        QVERIFY(!Knapsack::create({{1, {}}}));
        QVERIFY(!Knapsack::create({{0, {{1, 1}}}}));
        QVERIFY(!Knapsack::create({{1, {{-1, 1}}}}));
        QVERIFY(!Knapsack::create({{1, {{1, -1}}}}));
        QVERIFY(!Knapsack::create({{4, {{std::int64_t{1} << 60, 1}}}}));
        QVERIFY(!Knapsack::create({{4, {{1, std::int64_t{1} << 60}}}}));
        QVERIFY(Knapsack::create({{3, {{std::int64_t{1} << 60, std::int64_t{1} << 60}}}}).has_value());
    }

    void nothingToChoose() {
        const auto knapsack = Knapsack::create({});
        QVERIFY(knapsack.has_value());
        QVERIFY(knapsack->solve(0).feasible);
        QVERIFY(!knapsack->solve(-1).feasible);
        QCOMPARE(knapsack->solve(0).time, 0);
    }
};

QTEST_APPLESS_MAIN(tst_knapsack)
#include "tst_knapsack.moc"
