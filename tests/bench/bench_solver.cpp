// SPDX-License-Identifier: GPL-3.0-or-later
// Prints how long exact solutions take on instances of the shapes that plans have. Times depend on the machine, values
// not.
#include "planner/search/Knapsack.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <iterator>
#include <random>
#include <string>
#include <vector>

namespace {

using shardscope::planner::Knapsack;
using shardscope::planner::KnapsackGroup;
using shardscope::planner::KnapsackOption;
using shardscope::planner::KnapsackSolution;
using shardscope::planner::SearchLimits;

constexpr double kRanks = 8;
constexpr double kLatencyPicoseconds = 1e7;
constexpr double kPicosecondsPerByte = 100;

/// Replicate, and shard with the first k of s slices for s = 1, 2, 4, 8 (formulas of the paper), rounded as plans are.
std::vector<KnapsackOption> placements(double parameters, int optionCount) {
    const auto roundedBytes = [](double bytes) { return static_cast<std::int64_t>(std::ceil(bytes / 256)) * 256; };
    const auto phases = [&](double count, double starts, double bytes) {
        const double time =
            count * (kRanks - 1) * (kLatencyPicoseconds * starts + bytes / kRanks * kPicosecondsPerByte);
        return static_cast<std::int64_t>(std::llround(time));
    };
    std::vector<KnapsackOption> options{{roundedBytes(16 * parameters), phases(2, 1, 4 * parameters)}};
    for (int slices = 1; static_cast<int>(options.size()) < optionCount; slices *= 2) {
        for (int sharded = slices; sharded >= 1 && static_cast<int>(options.size()) < optionCount; --sharded) {
            const double part = parameters * sharded / slices;
            const double whole = parameters - part;
            std::int64_t time = phases(3, sharded, 4 * part);
            if (sharded < slices)
                time += phases(2, 1, 4 * whole);
            options.push_back({roundedBytes(16 * whole + 16 * part / kRanks), time});
        }
    }
    return options;
}

/// Options that neither cost more bytes nor more time than another one.
std::vector<KnapsackOption> undominated(std::vector<KnapsackOption> options) {
    std::sort(options.begin(), options.end(), [](const KnapsackOption& a, const KnapsackOption& b) {
        return a.bytes != b.bytes ? a.bytes < b.bytes : a.time < b.time;
    });
    std::vector<KnapsackOption> kept;
    for (const KnapsackOption& option : options) {
        if (kept.empty() || option.time < kept.back().time)
            kept.push_back(option);
    }
    return kept;
}

/// A transformer block: every combination of its four matrices' placements, with and without recomputation.
KnapsackGroup block(double hidden, std::int32_t count, int optionsPerOperator) {
    std::vector<KnapsackOption> combined{{0, 0}};
    for (const double width : {3.0, 1.0, 4.0, 4.0}) {
        std::vector<KnapsackOption> next;
        for (const KnapsackOption& sum : combined) {
            for (const KnapsackOption& option :
                 placements(width * hidden * hidden + width * hidden, optionsPerOperator))
                next.push_back({sum.bytes + option.bytes, sum.time + option.time});
        }
        combined = undominated(next);
    }
    const auto activations = static_cast<std::int64_t>(34 * 1024 * hidden);
    const auto recomputation = static_cast<std::int64_t>(hidden * hidden * 0.3 * 1000);
    std::vector<KnapsackOption> both;
    for (const KnapsackOption& option : combined) {
        both.push_back({option.bytes + activations, option.time});
        both.push_back({option.bytes, option.time + recomputation});
    }
    return {count, undominated(both)};
}

void report(const std::string& name, const std::vector<KnapsackGroup>& groups, double timeLimit,
            std::int64_t workLimit = 0) {
    const auto seconds = [](auto from) {
        return std::chrono::duration<double>(std::chrono::steady_clock::now() - from).count();
    };
    const auto built = std::chrono::steady_clock::now();
    const auto knapsack = Knapsack::create(groups);
    if (!knapsack) {
        std::printf("%s: %s\n", name.c_str(), knapsack.error().message.c_str());
        return;
    }
    const double buildSeconds = seconds(built);
    SearchLimits limits;
    limits.timeLimitSeconds = timeLimit;
    limits.workLimit = workLimit;
    constexpr int kBudgets = 19;
    std::vector<double> times;
    double largestGap = 0;
    double largestStartGap = 0;
    int proven = 0;
    for (int i = 1; i <= kBudgets; ++i) {
        const std::int64_t range = knapsack->fastestBytes() - knapsack->minimumBytes();
        const std::int64_t capacity = knapsack->minimumBytes() + range / (kBudgets + 1) * i;
        const KnapsackSolution first = knapsack->incumbent(capacity);
        const auto from = std::chrono::steady_clock::now();
        const KnapsackSolution solution = knapsack->solve(capacity, limits);
        times.push_back(seconds(from));
        proven += solution.proven ? 1 : 0;
        const auto gap = [](const KnapsackSolution& s) {
            return static_cast<double>(s.time - s.lowerBound) / static_cast<double>(s.time);
        };
        largestGap = std::max(largestGap, gap(solution));
        largestStartGap = std::max(largestStartGap, gap(first));
    }
    std::sort(times.begin(), times.end());
    std::printf("%-44s %8.3f %9.3f %9.3f %4d/%d  %8.1e  %8.1e\n", name.c_str(), buildSeconds * 1e3,
                times[kBudgets / 2] * 1e3, times.back() * 1e3, proven, kBudgets, largestStartGap, largestGap);
}

} // namespace

int main(int argc, char** argv) {
    const double timeLimit = argc > 1 ? std::atof(argv[1]) : 2;
    std::printf("%-44s %8s %9s %9s %7s  %8s  %8s\n", "instance", "build ms", "median ms", "worst ms", "proven",
                "first gap", "last gap");
    std::mt19937_64 random(20240817);
    const auto between = [&](double low, double high) {
        return low + (high - low) * static_cast<double>(random() >> 11) / 9007199254740992.0;
    };

    std::vector<KnapsackGroup> groups;
    for (const auto& [count, parameters] : {std::pair{2, 50257.0 * 1600},
                                            {96, 3 * 1600.0 * 1600},
                                            {96, 1600.0 * 1600},
                                            {96, 4 * 1600.0 * 1600 + 1600},
                                            {96, 4 * 1600.0 * 1600 + 6400}})
        groups.push_back({count, placements(parameters, 8)});
    report("386 operators in 5 groups x 8", groups, timeLimit);

    groups.clear();
    for (int g = 0; g < 32; ++g)
        groups.push_back({60, placements(std::floor(between(1e5, 3e7)), 8)});
    report("1,920 operators in 32 groups x 8", groups, timeLimit);

    groups = {block(12288, 96, 6), {1, placements(50257.0 * 12288, 8)}, {1, placements(2048.0 * 12288, 8)}};
    report("96 equal blocks and 2 single ones", groups, timeLimit);
    for (std::size_t g = 0; g < groups.size(); ++g)
        std::printf("    group %zu: %d x %zu options\n", g, groups[g].count, groups[g].options.size());
    groups = {block(16384, 126, 8), {1, placements(128256.0 * 16384, 8)}, {1, placements(128256.0 * 16384, 8)}};
    report("126 equal blocks and 2 single ones", groups, timeLimit);
    groups = {
        block(4096, 40, 8), block(5120, 24, 8), block(2048, 7, 8), {1, placements(5e8, 8)}, {1, placements(1e7, 8)}};
    report("40 + 24 + 7 blocks and 2 single ones", groups, timeLimit);

    groups.clear();
    for (int g = 0; g < 2000; ++g)
        groups.push_back({1, placements(std::floor(between(1e5, 3e7)), 8)});
    report("2,000 different operators x 8", groups, timeLimit);
    report("  the same, 0.05 s", groups, 0.05);

    groups.clear();
    for (int g = 0; g < 2000; ++g) {
        KnapsackGroup group;
        for (int i = 0; i < 8; ++i)
            group.options.push_back(
                {static_cast<std::int64_t>(between(0, 1e8)), static_cast<std::int64_t>(between(0, 1e9))});
        groups.push_back(group);
    }
    report("2,000 random groups x 8", groups, timeLimit);
    return 0;
}
