// SPDX-License-Identifier: GPL-3.0-or-later
#include "planner/search/AbstractProblem.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <chrono>
#include <map>
#include <numeric>
#include <set>
#include <tuple>
#include <utility>

namespace shardscope::planner {

namespace {

constexpr std::size_t kMaximumOperators = 1'000'000;
constexpr std::size_t kMaximumOptions = 100'000;

using contract::JsonCursor;

AbstractOption readOption(const JsonCursor& cursor) {
    AbstractOption option;
    option.label = cursor.at("label").text();
    option.stateBytes = cursor.at("state_bytes").integer();
    option.transientBytes = cursor.at("transient_bytes").integer();
    option.nanoseconds = cursor.at("nanoseconds").integer();
    return option;
}

AbstractOperator readOperator(const JsonCursor& cursor) {
    AbstractOperator result;
    result.name = cursor.at("name").text();
    const JsonCursor options = cursor.at("options");
    const std::size_t count = options.arraySize(kMaximumOptions);
    if (!cursor.failed() && count == 0)
        options.fail("is empty, must hold at least one option");
    std::set<std::string> labels;
    for (std::size_t i = 0; i < count && !cursor.failed(); ++i) {
        const JsonCursor option = options.element(i);
        result.options.push_back(readOption(option));
        if (!labels.insert(result.options.back().label).second)
            option.at("label").fail("repeats the label of an earlier option, labels must differ");
    }
    return result;
}

/// Operators with the same (state, transient, time) triples, whatever their order and labels.
struct EqualOperators {
    std::vector<std::size_t> operators; ///< rising
    /// [operator in the group][option of the group]: the operator's own option index.
    std::vector<std::vector<std::int32_t>> ownIndices;
};

std::vector<PeakGroup> groupEqualOperators(const AbstractProblem& problem, std::vector<EqualOperators>& members) {
    using Triple = std::tuple<std::int64_t, std::int64_t, std::int64_t>;
    std::map<std::vector<Triple>, EqualOperators> byOptions;
    for (std::size_t i = 0; i < problem.operators.size(); ++i) {
        const std::vector<AbstractOption>& options = problem.operators[i].options;
        const auto triple = [&](std::int32_t o) {
            return Triple(options[o].stateBytes, options[o].transientBytes, options[o].nanoseconds);
        };
        std::vector<std::int32_t> order(options.size());
        std::iota(order.begin(), order.end(), 0);
        std::stable_sort(order.begin(), order.end(), [&](auto a, auto b) { return triple(a) < triple(b); });
        // A repeated triple can be chosen by its first option only.
        order.erase(std::unique(order.begin(), order.end(), [&](auto a, auto b) { return triple(a) == triple(b); }),
                    order.end());
        std::vector<Triple> key;
        for (const std::int32_t o : order)
            key.push_back(triple(o));
        EqualOperators& equal = byOptions[std::move(key)];
        equal.operators.push_back(i);
        equal.ownIndices.push_back(std::move(order));
    }
    // By what they offer and not by where they stand, so that of equally good answers always the same is found.
    std::vector<PeakGroup> groups;
    for (auto& [key, equal] : byOptions) {
        PeakGroup& group = groups.emplace_back(PeakGroup{static_cast<std::int32_t>(equal.operators.size()), {}});
        for (const auto& [state, transient, time] : key)
            group.options.push_back({state, transient, time});
        members.push_back(std::move(equal));
    }
    return groups;
}

/// Earlier operators of a group take the options that come earlier in the group's first operator, in unbroken runs.
void distribute(const std::vector<std::int32_t>& counts, const EqualOperators& equal,
                std::vector<std::int32_t>& chosen) {
    std::vector<std::int32_t> order(counts.size());
    std::iota(order.begin(), order.end(), 0);
    const std::vector<std::int32_t>& first = equal.ownIndices.front();
    std::sort(order.begin(), order.end(), [&](auto a, auto b) { return first[a] < first[b]; });
    std::size_t member = 0;
    for (const std::int32_t option : order) {
        for (std::int32_t copy = 0; copy < counts[option]; ++copy, ++member)
            chosen[equal.operators[member]] = equal.ownIndices[member][option];
    }
}

} // namespace

contract::Result<AbstractProblem> readAbstractProblem(std::string_view text, std::string_view fileName) {
    const auto document = contract::parseJson(text, fileName);
    if (!document)
        return tl::unexpected(document.error());
    const JsonCursor root(*document, fileName);
    AbstractProblem problem;
    root.at("format").choice<int>({{"shardscope-problem", 1}});
    root.at("version").integer(1, 1);
    problem.limitBytes = root.at("limit_bytes").integer();
    problem.baseBytes = root.at("base_bytes").integer();
    const JsonCursor operators = root.at("operators");
    const std::size_t count = operators.arraySize(kMaximumOperators);
    // Sums are over the largest option of each operator: a choice may not overflow, whatever it is.
    Int128 bytes = problem.baseBytes;
    Int128 time = 0;
    std::int64_t largestTransient = 0;
    for (std::size_t i = 0; i < count && !root.failed(); ++i) {
        problem.operators.push_back(readOperator(operators.element(i)));
        std::int64_t largestState = 0;
        std::int64_t longest = 0;
        for (const AbstractOption& option : problem.operators.back().options) {
            largestState = std::max(largestState, option.stateBytes);
            largestTransient = std::max(largestTransient, option.transientBytes);
            longest = std::max(longest, option.nanoseconds);
        }
        bytes += largestState;
        time += longest;
        if (bytes + largestTransient >= kMaximumSum || time >= kMaximumSum)
            operators.element(i).fail("makes the sum of bytes or of nanoseconds reach 2^62");
    }
    if (root.failed())
        return root.error();
    return problem;
}

contract::Result<AbstractAnswer> solveAbstractProblem(const AbstractProblem& problem, const SearchLimits& limits) {
    const auto start = std::chrono::steady_clock::now();
    std::vector<EqualOperators> members;
    const auto peakProblem = PeakProblem::create(problem.baseBytes, groupEqualOperators(problem, members));
    if (!peakProblem)
        return tl::unexpected(peakProblem.error());
    SearchLimits rest = limits;
    if (limits.timeLimitSeconds > 0) {
        // Grouping thousands of different operators takes milliseconds; they are part of the time asked for.
        constexpr double kShortest = 1e-6; // zero would mean no limit
        const std::chrono::duration<double> spent = std::chrono::steady_clock::now() - start;
        rest.timeLimitSeconds = std::max(kShortest, limits.timeLimitSeconds - spent.count());
    }
    const PeakSolution solution = peakProblem->solve(problem.limitBytes, rest);
    AbstractAnswer answer;
    answer.feasible = solution.feasible;
    answer.provenOptimal = solution.proven && solution.feasible;
    answer.cancelled = solution.cancelled;
    answer.smallestFeasibleBytes = peakProblem->smallestFeasibleBytes();
    if (solution.feasible) {
        answer.nanoseconds = solution.time;
        answer.peakBytes = solution.peakBytes;
        answer.lowerBoundNanoseconds = solution.lowerBound;
        answer.gap = solution.gap;
        answer.optionIndices.resize(problem.operators.size());
        for (std::size_t g = 0; g < members.size(); ++g)
            distribute(solution.counts[g], members[g], answer.optionIndices);
        for (std::size_t i = 0; i < problem.operators.size(); ++i)
            answer.choice.push_back(problem.operators[i].options[answer.optionIndices[i]].label);
    }
    const std::chrono::duration<double, std::milli> elapsed = std::chrono::steady_clock::now() - start;
    answer.solveMilliseconds = elapsed.count();
    return answer;
}

contract::OrderedJson toJson(const AbstractAnswer& answer) {
    contract::OrderedJson json;
    json["feasible"] = answer.feasible;
    json["proven_optimal"] = answer.provenOptimal;
    if (answer.feasible) {
        json["nanoseconds"] = answer.nanoseconds;
        json["peak_bytes"] = answer.peakBytes;
        json["lower_bound_nanoseconds"] = answer.lowerBoundNanoseconds;
        json["gap"] = answer.gap;
        json["choice"] = answer.choice;
    }
    json["smallest_feasible_bytes"] = answer.smallestFeasibleBytes;
    json["solve_milliseconds"] = answer.solveMilliseconds;
    return json;
}

} // namespace shardscope::planner
