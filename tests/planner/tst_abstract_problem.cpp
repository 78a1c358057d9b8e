// SPDX-License-Identifier: GPL-3.0-or-later
#include "planner/search/AbstractProblem.h"

#include <QTest>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <numeric>
#include <optional>
#include <random>
#include <string>
#include <tuple>
#include <vector>

using namespace shardscope::planner;

namespace {

constexpr std::int64_t kMebibyte = 1 << 20;
constexpr double kFemtosecond = 1e-15;

class Random {
public:
    explicit Random(std::uint64_t seed) : m_engine(seed) {}
    std::int64_t between(std::int64_t low, std::int64_t high) {
        return low + static_cast<std::int64_t>(m_engine() % static_cast<std::uint64_t>(high - low + 1));
    }

private:
    std::mt19937_64 m_engine;
};

AbstractProblem randomProblem(Random& random) {
    const std::int64_t ranges[] = {0, 3, 50, std::int64_t{1} << 53};
    const std::int64_t largestState = ranges[random.between(0, 3)];
    const std::int64_t largestTransient = random.between(0, 1) == 0 ? largestState : ranges[random.between(0, 3)];
    const std::int64_t largestTime = ranges[random.between(0, 3)];
    AbstractProblem problem;
    problem.baseBytes = random.between(0, 1) == 0 ? 0 : random.between(0, 1000);
    const std::int64_t operators = random.between(1, 8);
    for (std::int64_t i = 0; i < operators; ++i) {
        AbstractOperator added{std::string("op").append(std::to_string(i)), {}};
        if (i > 0 && random.between(0, 3) == 0) {
            added.options = problem.operators[random.between(0, i - 1)].options;
            std::reverse(added.options.begin(), added.options.end());
        } else {
            for (std::int64_t o = random.between(1, 6); o > 0; --o) {
                added.options.push_back({std::string("o").append(std::to_string(o)), random.between(0, largestState),
                                         random.between(0, largestTransient), random.between(0, largestTime)});
            }
        }
        problem.operators.push_back(std::move(added));
    }
    return problem;
}

struct Price {
    std::int64_t peak = 0;
    std::int64_t time = 0;
};

/// What any choice can cost: undominated (state, transient, time), found by enumerating all choices operator by
/// operator.
std::vector<Price> enumerate(const AbstractProblem& problem) {
    using Sum = std::tuple<std::int64_t, std::int64_t, std::int64_t>;
    std::vector<Sum> sums{{0, 0, 0}};
    for (const AbstractOperator& added : problem.operators) {
        std::vector<Sum> next;
        for (const auto& [state, transient, time] : sums) {
            for (const AbstractOption& option : added.options) {
                next.emplace_back(state + option.stateBytes, std::max(transient, option.transientBytes),
                                  time + option.nanoseconds);
            }
        }
        std::sort(next.begin(), next.end());
        sums.clear();
        for (const Sum& sum : next) {
            const bool dominated = std::any_of(sums.begin(), sums.end(), [&](const Sum& other) {
                return std::get<1>(other) <= std::get<1>(sum) && std::get<2>(other) <= std::get<2>(sum);
            });
            if (!dominated)
                sums.push_back(sum);
        }
    }
    std::vector<Price> prices;
    for (const auto& [state, transient, time] : sums)
        prices.push_back({problem.baseBytes + state + transient, time});
    return prices;
}

std::optional<Price> bestUnder(const std::vector<Price>& prices, std::int64_t limitBytes) {
    std::optional<Price> best;
    for (const Price& price : prices) {
        if (price.peak <= limitBytes && (!best || std::tie(price.time, price.peak) < std::tie(best->time, best->peak)))
            best = price;
    }
    return best;
}

Price priceOf(const AbstractProblem& problem, const std::vector<std::string>& choice) {
    Price price{problem.baseBytes, 0};
    std::int64_t transient = 0;
    for (std::size_t i = 0; i < problem.operators.size(); ++i) {
        const auto& options = problem.operators[i].options;
        const auto option =
            std::find_if(options.begin(), options.end(), [&](const auto& o) { return o.label == choice[i]; });
        if (option == options.end())
            return {-1, -1};
        price.peak += option->stateBytes;
        price.time += option->nanoseconds;
        transient = std::max(transient, option->transientBytes);
    }
    price.peak += transient;
    return price;
}

/// Options by the formulas of the paper for 8 ranks and 4-byte weights, in femtoseconds so that rounding is out of the
/// way.
class PaperOptions {
public:
    explicit PaperOptions(double latencySeconds) : m_latency(latencySeconds) {}

    AbstractOption replicate(double parameters) const {
        return {"replicate", bytes(16 * parameters), 0, femtoseconds(reduceSeconds(parameters))};
    }
    AbstractOption shard(double parameters, int slices, int sharded) const {
        const double part = parameters * sharded / slices;
        double seconds = 3 * (kRanks - 1) * (m_latency * sharded + 4 * part / kRanks * kSecondsPerByte);
        if (sharded < slices)
            seconds += reduceSeconds(parameters - part);
        return {std::string("shard:").append(std::to_string(slices)).append(":").append(std::to_string(sharded)),
                bytes(16 * (parameters - part) + 16 * part / kRanks), bytes(4 * parameters / slices),
                femtoseconds(seconds)};
    }

private:
    static constexpr double kRanks = 8;
    static constexpr double kSecondsPerByte = 1e-10;
    double reduceSeconds(double parameters) const {
        return 2 * (kRanks - 1) * (m_latency + 4 * parameters / kRanks * kSecondsPerByte);
    }
    static std::int64_t bytes(double value) { return static_cast<std::int64_t>(std::ceil(value)); }
    static std::int64_t femtoseconds(double seconds) { return std::llround(seconds / kFemtosecond); }

    double m_latency;
};

using Slicing = std::pair<int, int>;

AbstractProblem paperProblem(double limitMebibytes, const std::vector<double>& sizes,
                             const std::vector<Slicing>& slicings, double latencySeconds = 1e-5) {
    const PaperOptions paper(latencySeconds);
    AbstractProblem problem;
    problem.limitBytes = static_cast<std::int64_t>(limitMebibytes * kMebibyte);
    for (const double size : sizes) {
        AbstractOperator added{std::string("op").append(std::to_string(problem.operators.size())),
                               {paper.replicate(size * kMebibyte)}};
        for (const auto& [slices, sharded] : slicings)
            added.options.push_back(paper.shard(size * kMebibyte, slices, sharded));
        problem.operators.push_back(std::move(added));
    }
    return problem;
}

std::int64_t replicated(const AbstractAnswer& answer) {
    return std::count(answer.choice.begin(), answer.choice.end(), "replicate");
}

} // namespace

#define QCOMPARE_SECONDS(answer, seconds, digits)                                                                      \
    QVERIFY2(std::abs(static_cast<double>((answer).nanoseconds) * kFemtosecond - (seconds)) <                          \
                 0.51 * std::pow(10.0, -(digits)),                                                                     \
             qPrintable(QString::number(static_cast<double>((answer).nanoseconds) * kFemtosecond, 'g', 15)))

class tst_abstract_problem : public QObject {
    Q_OBJECT

private slots:
    void equalsEnumeration() {
        Random random(11);
        int instances = 0;
        for (int i = 0; i < 2500; ++i) {
            AbstractProblem problem = randomProblem(random);
            const std::vector<Price> prices = enumerate(problem);
            const auto byPeak = [](const Price& a, const Price& b) { return a.peak < b.peak; };
            const std::int64_t smallest = std::min_element(prices.begin(), prices.end(), byPeak)->peak;
            const std::int64_t largest = std::max_element(prices.begin(), prices.end(), byPeak)->peak;
            for (const std::int64_t limit :
                 {smallest - 1, smallest, random.between(smallest, largest), random.between(smallest, largest), largest,
                  largest + random.between(0, 9)}) {
                problem.limitBytes = limit;
                const auto answer = solveAbstractProblem(problem);
                QVERIFY(answer.has_value());
                const auto best = bestUnder(prices, limit);
                QCOMPARE(answer->smallestFeasibleBytes, smallest);
                QCOMPARE(answer->feasible, best.has_value());
                ++instances;
                if (!best)
                    continue;
                QVERIFY(answer->provenOptimal);
                QCOMPARE(answer->nanoseconds, best->time);
                QCOMPARE(answer->peakBytes, best->peak);
                QCOMPARE(answer->lowerBoundNanoseconds, best->time);
                QCOMPARE(answer->gap, 0.0);
                const Price price = priceOf(problem, answer->choice);
                QCOMPARE(price.time, best->time);
                QCOMPARE(price.peak, best->peak);
            }
        }
        QVERIFY(instances >= 10'000);
    }

    void orderOfOperatorsDoesNotMatter() {
        Random random(12);
        for (int i = 0; i < 500; ++i) {
            AbstractProblem problem = randomProblem(random);
            const auto smallest = solveAbstractProblem(problem)->smallestFeasibleBytes;
            problem.limitBytes = smallest + random.between(0, smallest / 2 + 1);
            const auto answer = solveAbstractProblem(problem);
            std::rotate(problem.operators.begin(), problem.operators.begin() + problem.operators.size() / 2,
                        problem.operators.end());
            const auto rotated = solveAbstractProblem(problem);
            QCOMPARE(rotated->nanoseconds, answer->nanoseconds);
            QCOMPARE(rotated->peakBytes, answer->peakBytes);
        }
    }

    void groupsEqualSingleItems() {
        Random random(13);
        for (int i = 0; i < 500; ++i) {
            std::vector<PeakGroup> groups(random.between(1, 3));
            std::vector<PeakGroup> singles;
            for (PeakGroup& group : groups) {
                group.count = static_cast<std::int32_t>(random.between(1, 9));
                for (std::int64_t o = random.between(1, 5); o > 0; --o)
                    group.options.push_back({random.between(0, 1000), random.between(0, 500), random.between(0, 1000)});
                singles.insert(singles.end(), group.count, {1, group.options});
            }
            const auto grouped = PeakProblem::create(5, groups);
            const auto single = PeakProblem::create(5, singles);
            QCOMPARE(grouped->smallestFeasibleBytes(), single->smallestFeasibleBytes());
            const std::int64_t limit = grouped->smallestFeasibleBytes() + random.between(-1, 4000);
            const PeakSolution a = grouped->solve(limit);
            const PeakSolution b = single->solve(limit);
            QCOMPARE(a.feasible, b.feasible);
            QVERIFY(a.proven && b.proven);
            QCOMPARE(a.time, b.time);
            QCOMPARE(a.peakBytes, b.peakBytes);
            QVERIFY(grouped->lowerBound(limit) <= (a.feasible ? a.time : kInfeasibleTime));
        }
    }

    void workLimitIsDeterministicAndHonest() {
        Random random(14);
        for (int i = 0; i < 1000; ++i) {
            AbstractProblem problem = randomProblem(random);
            const auto smallest = solveAbstractProblem(problem)->smallestFeasibleBytes;
            problem.limitBytes = smallest + random.between(0, smallest / 2 + 1);
            const auto best = solveAbstractProblem(problem);
            SearchLimits limits;
            limits.workLimit = random.between(1, 40);
            const auto a = solveAbstractProblem(problem, limits);
            const auto b = solveAbstractProblem(problem, limits);
            QVERIFY(a->feasible);
            QVERIFY(a->nanoseconds >= best->nanoseconds);
            QVERIFY(a->lowerBoundNanoseconds <= best->nanoseconds);
            QVERIFY(!a->provenOptimal || a->nanoseconds == best->nanoseconds);
            QCOMPARE(a->provenOptimal, a->lowerBoundNanoseconds == a->nanoseconds);
            QCOMPARE(priceOf(problem, a->choice).peak, a->peakBytes);
            QCOMPARE(a->choice, b->choice);
            QCOMPARE(a->lowerBoundNanoseconds, b->lowerBoundNanoseconds);
        }
    }

    void cutoffSkipsWhatIsNotBetter() {
        Random random(15);
        for (int i = 0; i < 500; ++i) {
            std::vector<PeakGroup> groups(random.between(1, 5));
            for (PeakGroup& group : groups) {
                for (std::int64_t o = random.between(1, 5); o > 0; --o)
                    group.options.push_back({random.between(0, 100), random.between(0, 50), random.between(0, 100)});
            }
            const auto problem = PeakProblem::create(0, groups);
            const std::int64_t limit = problem->smallestFeasibleBytes() + random.between(0, 200);
            const PeakSolution best = problem->solve(limit);
            const std::int64_t cutoff = best.time + random.between(0, 1);
            const PeakSolution solution = problem->solve(limit, {}, cutoff);
            QVERIFY(solution.proven);
            QCOMPARE(solution.feasible, best.time < cutoff);
            if (solution.feasible)
                QCOMPARE(solution.peakBytes, best.peakBytes);
        }
    }

    // Worked example 2.
    void fourOperators() {
        const std::vector<double> sizes(4, 1.0);
        const auto solve = [&](double limit, std::vector<Slicing> slicings) {
            return *solveAbstractProblem(paperProblem(limit, sizes, slicings));
        };
        const AbstractAnswer tooSmall = solve(9, {{1, 1}});
        QVERIFY(!tooSmall.feasible);
        QCOMPARE(tooSmall.smallestFeasibleBytes, 12 * kMebibyte);
        for (const double limit : {48.0, 51.0}) {
            const AbstractAnswer answer = solve(limit, {{1, 1}});
            QCOMPARE(replicated(answer), 2);
            QCOMPARE(answer.peakBytes, 40 * kMebibyte);
            QCOMPARE_SECONDS(answer, 4.370016e-3, 9);
            QCOMPARE(answer.choice, (std::vector<std::string>{"replicate", "replicate", "shard:1:1", "shard:1:1"}));
        }
        const AbstractAnswer exact = solve(54, {{1, 1}});
        QCOMPARE(replicated(exact), 3);
        QCOMPARE(exact.peakBytes, 54 * kMebibyte);
        QCOMPARE_SECONDS(exact, 3.9330144e-3, 10);
        const AbstractAnswer all = solve(64, {{1, 1}});
        QCOMPARE(replicated(all), 4);
        QCOMPARE_SECONDS(all, 3.4960128e-3, 10);
        QCOMPARE_SECONDS(solve(9, {{1, 1}, {4, 4}}), 7.7640192e-3, 10);
        QCOMPARE_SECONDS(solve(8.5, {{1, 1}, {4, 4}, {8, 8}}), 1.11240192e-2, 10);
    }

    // Worked example 3.
    void splittingPaysWhenLatencyIsLow() {
        const AbstractAnswer slow = *solveAbstractProblem(paperProblem(30, {4, 1}, {{1, 1}, {4, 4}}, 1e-5));
        QCOMPARE(slow.choice, (std::vector<std::string>{"shard:1:1", "shard:1:1"}));
        QCOMPARE(slow.peakBytes, 26 * kMebibyte);
        QCOMPARE_SECONDS(slow, 5.925024e-3, 9);
        const AbstractAnswer fast = *solveAbstractProblem(paperProblem(30, {4, 1}, {{1, 1}, {4, 4}}, 2e-6));
        QCOMPARE(fast.choice, (std::vector<std::string>{"shard:4:4", "replicate"}));
        QCOMPARE(fast.peakBytes, 28 * kMebibyte);
        QCOMPARE_SECONDS(fast, 5.3340224e-3, 10);
        QCOMPARE_SECONDS(*solveAbstractProblem(paperProblem(30, {4, 1}, {{1, 1}}, 2e-6)), 5.589024e-3, 9);
    }

    // Worked example 4.
    void greedyTrap() {
        const AbstractAnswer answer = *solveAbstractProblem(paperProblem(190, {1, 1, 8, 2}, {{1, 1}}));
        QCOMPARE(answer.peakBytes, 182 * kMebibyte);
        QCOMPARE_SECONDS(answer, 9.80504e-3, 8);
    }

    // Worked example 5.
    void twentyFourLayers() {
        const std::vector<double> sizes(24, 12.0);
        const AbstractAnswer answer = *solveAbstractProblem(paperProblem(3000, sizes, {{1, 1}}));
        QCOMPARE(replicated(answer), 14);
        QCOMPARE(answer.peakBytes, 2976 * kMebibyte);
        QCOMPARE_SECONDS(answer, 0.2594931136, 10);
        const AbstractAnswer least = *solveAbstractProblem(paperProblem(0, sizes, {{1, 1}}));
        const auto sharded = solveAbstractProblem(
            paperProblem(static_cast<double>(least.smallestFeasibleBytes) / kMebibyte, sizes, {{1, 1}}));
        QCOMPARE(replicated(*sharded), 0);
        QCOMPARE_SECONDS(*sharded, 0.3221293824, 10);
        const AbstractAnswer all = *solveAbstractProblem(paperProblem(4608, sizes, {{1, 1}}));
        QCOMPARE(replicated(all), 24);
        QCOMPARE(all.peakBytes, 4608 * kMebibyte);
        QCOMPARE_SECONDS(all, 0.2147529216, 10);
    }

    // Worked example 8.
    void zeroMemory() {
        AbstractProblem problem;
        problem.operators = {{"a", {{"fast", 0, 0, 1}, {"slow", 0, 0, 5}}},
                             {"b", {{"slow", 0, 0, 10}, {"fast", 0, 0, 2}}}};
        const auto answer = solveAbstractProblem(problem);
        QVERIFY(answer->feasible);
        QCOMPARE(answer->nanoseconds, 3);
        QCOMPARE(answer->choice, (std::vector<std::string>{"fast", "fast"}));
    }

    // Worked example 9: with one rank nothing is communicated, and without parameters every option costs nothing.
    void nothingToDecide() {
        AbstractProblem problem;
        problem.limitBytes = 32;
        problem.operators = {{"one rank", {{"replicate", 16, 0, 0}, {"shard", 16, 4, 0}}},
                             {"no parameters", {{"replicate", 0, 0, 0}, {"shard", 0, 0, 0}}}};
        const auto answer = solveAbstractProblem(problem);
        QCOMPARE(answer->nanoseconds, 0);
        QCOMPARE(answer->peakBytes, 16);
        QCOMPARE(answer->gap, 0.0);
        QCOMPARE(answer->choice, (std::vector<std::string>{"replicate", "replicate"}));
        problem.operators.clear();
        const auto empty = solveAbstractProblem(problem);
        QVERIFY(empty->feasible && empty->provenOptimal);
        QCOMPARE(empty->peakBytes, 0);
    }

    void manyDifferentTransients() {
        Random random(16);
        std::vector<PeakGroup> groups(2000);
        for (PeakGroup& group : groups) {
            const std::int64_t parameters = random.between(100'000, 30'000'000);
            group.options = {{16 * parameters, 0, 140'000'000 + 70 * parameters},
                             {2 * parameters, 4 * parameters, 210'000'000 + 105 * parameters},
                             {2 * parameters, 2 * parameters, 420'000'000 + 105 * parameters}};
        }
        const auto problem = PeakProblem::create(0, groups);
        SearchLimits limits;
        limits.timeLimitSeconds = 0.5;
        const PeakSolution solution = problem->solve(problem->smallestFeasibleBytes() * 3, limits);
        QVERIFY(solution.feasible);
        QVERIFY(solution.peakBytes <= problem->smallestFeasibleBytes() * 3);
        QVERIFY(solution.gap < 1e-3);
    }
};

QTEST_APPLESS_MAIN(tst_abstract_problem)
#include "tst_abstract_problem.moc"
