// SPDX-License-Identifier: GPL-3.0-or-later
#include "planner/search/PeakProblem.h"

#include "planner/search/PeakProblemSearch.h"

#include <algorithm>
#include <string>
#include <tuple>
#include <utility>

namespace shardscope::planner {

namespace {

/// Options in the knapsacks kept for later calls; a slider asks for the same few knapsacks again and again.
constexpr std::size_t kMaximumCachedOptions = 400'000;

} // namespace

contract::Result<PeakProblem> PeakProblem::create(std::int64_t baseBytes, std::vector<PeakGroup> groups) {
    if (baseBytes < 0)
        return contract::badInput("the base bytes must not be negative");
    Int128 bytesSum = baseBytes;
    Int128 timeSum = 0;
    std::int64_t largestTransient = 0;
    for (std::size_t g = 0; g < groups.size(); ++g) {
        const PeakGroup& group = groups[g];
        const std::string name = "group " + std::to_string(g);
        if (group.count < 1)
            return contract::badInput(name + ": the count is " + std::to_string(group.count) + ", must be at least 1");
        if (group.options.empty())
            return contract::badInput(name + ": has no options, needs at least one");
        std::int64_t bytes = 0;
        std::int64_t time = 0;
        for (const PeakOption& option : group.options) {
            if (option.stateBytes < 0 || option.transientBytes < 0 || option.time < 0)
                return contract::badInput(name + ": bytes and time must not be negative");
            bytes = std::max(bytes, option.stateBytes);
            time = std::max(time, option.time);
            largestTransient = std::max(largestTransient, option.transientBytes);
        }
        bytesSum += static_cast<Int128>(group.count) * bytes;
        timeSum += static_cast<Int128>(group.count) * time;
        if (bytesSum + largestTransient >= kMaximumSum || timeSum >= kMaximumSum)
            return contract::badInput(name + ": the sums of bytes and of time must stay below 2^62");
    }

    PeakProblem problem;
    problem.m_baseBytes = baseBytes;
    problem.m_groups = std::move(groups);
    std::int64_t firstThreshold = 0;
    for (std::size_t g = 0; g < problem.m_groups.size(); ++g) {
        const auto& options = problem.m_groups[g].options;
        std::int64_t least = options.front().transientBytes;
        for (std::size_t o = 0; o < options.size(); ++o) {
            least = std::min(least, options[o].transientBytes);
            problem.m_entries.push_back(
                {options[o].transientBytes, static_cast<std::int32_t>(g), static_cast<std::int32_t>(o)});
        }
        firstThreshold = std::max(firstThreshold, least);
    }
    std::sort(problem.m_entries.begin(), problem.m_entries.end(), [](const Entry& a, const Entry& b) {
        return std::tie(a.transientBytes, a.group, a.option) < std::tie(b.transientBytes, b.group, b.option);
    });
    problem.m_thresholds.push_back(firstThreshold);
    for (const Entry& entry : problem.m_entries) {
        if (entry.transientBytes > problem.m_thresholds.back())
            problem.m_thresholds.push_back(entry.transientBytes);
    }
    problem.m_smallestFeasibleBytes = kMaximumSum;
    for (const Int128 state : problem.leastWeights({1, 0})) {
        const std::size_t t = problem.m_leastState.size();
        problem.m_leastState.push_back(static_cast<std::int64_t>(state));
        problem.m_smallestFeasibleBytes =
            std::min(problem.m_smallestFeasibleBytes, baseBytes + problem.m_leastState[t] + problem.m_thresholds[t]);
    }
    problem.m_minimumTime = static_cast<std::int64_t>(problem.leastWeights({0, 1}).back());
    return problem;
}

std::vector<Int128> PeakProblem::leastWeights(const Slope& multiplier) const {
    std::vector<Int128> best(m_groups.size(), -1);
    std::vector<Int128> sums;
    sums.reserve(m_thresholds.size());
    Int128 sum = 0;
    std::size_t next = 0;
    for (const std::int64_t threshold : m_thresholds) {
        for (; next < m_entries.size() && m_entries[next].transientBytes <= threshold; ++next) {
            const PeakGroup& group = m_groups[m_entries[next].group];
            const PeakOption& option = group.options[m_entries[next].option];
            const Int128 weight = static_cast<Int128>(multiplier.bytes) * option.time +
                                  static_cast<Int128>(multiplier.time) * option.stateBytes;
            Int128& least = best[m_entries[next].group];
            if (least >= 0 && weight >= least)
                continue;
            sum += group.count * (weight - std::max<Int128>(least, 0));
            least = weight;
        }
        sums.push_back(sum);
    }
    return sums;
}

std::shared_ptr<const PeakProblem::Restricted> PeakProblem::restricted(std::size_t threshold) const {
    {
        const std::lock_guard lock(m_cache->mutex);
        if (const auto found = m_cache->byThreshold.find(threshold); found != m_cache->byThreshold.end())
            return found->second;
    }
    std::vector<KnapsackGroup> groups(m_groups.size());
    std::vector<std::vector<std::int32_t>> options(m_groups.size());
    for (std::size_t g = 0; g < m_groups.size(); ++g) {
        groups[g].count = m_groups[g].count;
        for (std::size_t o = 0; o < m_groups[g].options.size(); ++o) {
            const PeakOption& option = m_groups[g].options[o];
            if (option.transientBytes > m_thresholds[threshold])
                continue;
            groups[g].options.push_back({option.stateBytes, option.time});
            options[g].push_back(static_cast<std::int32_t>(o));
        }
    }
    // Sums were checked for the whole problem, and every group keeps an option.
    auto built = std::make_shared<const Restricted>(Restricted{*Knapsack::create(groups), std::move(options)});
    const std::lock_guard lock(m_cache->mutex);
    if (m_cache->byThreshold.size() * m_entries.size() < kMaximumCachedOptions)
        m_cache->byThreshold.emplace(threshold, built);
    return built;
}

std::int64_t PeakProblem::lowerBound(std::int64_t limitBytes) const {
    return PeakSearch(*this, limitBytes).linearBound();
}

PeakSolution PeakProblem::solve(std::int64_t limitBytes, const SearchLimits& limits, std::int64_t cutoffTime) const {
    return PeakSearch(*this, limitBytes).run(limits, cutoffTime);
}

} // namespace shardscope::planner
