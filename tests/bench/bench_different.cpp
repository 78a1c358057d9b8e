// SPDX-License-Identifier: GPL-3.0-or-later
// Two thousand operators that are all different, as an abstract problem with slot thresholds: the gap after 50 ms and
// after 2 s, how long a cancelled search goes on, and the memory of the process at its largest.
#include "planner/search/AbstractProblem.h"

#include <fmt/format.h>

#include <chrono>
#include <cmath>
#include <random>
#include <sys/resource.h>
#include <thread>

using namespace shardscope;
using Clock = std::chrono::steady_clock;

namespace {

constexpr double kRanks = 8, kLatency = 1e-5, kSecondsPerByte = 1e-10, kWeightBytes = 4, kStateBytes = 16;

double milliseconds(Clock::duration span) {
    return std::chrono::duration<double, std::milli>(span).count();
}

/// Parameters uniform in 1e4..4e7; replicate, and shard with the first k of s slices, by the paper's formulas.
planner::AbstractProblem instance(double share) {
    std::mt19937_64 random(20261130);
    planner::AbstractProblem problem;
    std::int64_t least = 0, most = 0;
    for (int i = 0; i < 2000; ++i) {
        const double parameters = std::floor(std::uniform_real_distribution<double>(1e4, 4e7)(random));
        planner::AbstractOperator op{fmt::format("x{}", i), {}};
        for (const auto& [s, k] : {std::pair{1, 0}, {1, 1}, {2, 1}, {2, 2}, {4, 2}, {4, 4}, {8, 4}, {8, 8}}) {
            const double sharded = parameters * k / s;
            const double whole = parameters - sharded;
            double time = 3 * (kRanks - 1) * (kLatency * k + kWeightBytes * sharded / kRanks * kSecondsPerByte);
            if (k < s)
                time += 2 * (kRanks - 1) * (kLatency + kWeightBytes * whole / kRanks * kSecondsPerByte);
            op.options.push_back({fmt::format("{},{}", s, k),
                                  static_cast<std::int64_t>(std::ceil(kStateBytes * (whole + sharded / kRanks))),
                                  k == 0 ? 0 : static_cast<std::int64_t>(std::ceil(kWeightBytes * parameters / s)),
                                  std::llround(time * 1e9)});
        }
        least += op.options[1].stateBytes;
        most += op.options[0].stateBytes;
        problem.operators.push_back(std::move(op));
    }
    problem.limitBytes = least + static_cast<std::int64_t>(share * static_cast<double>(most - least));
    return problem;
}

} // namespace

int main() {
    fmt::print("{:>8} {:>12} {:>12} {:>10} {:>10} {:>8}\n", "budget", "limit s", "took ms", "gap", "proven", "RSS MiB");
    for (const double share : {0.1, 0.3, 0.5, 0.8}) {
        const planner::AbstractProblem problem = instance(share);
        for (const double limit : {0.05, 2.0}) {
            planner::SearchLimits limits;
            limits.timeLimitSeconds = limit;
            const auto begin = Clock::now();
            const auto answer = planner::solveAbstractProblem(problem, limits);
            const double took = milliseconds(Clock::now() - begin);
            rusage usage{};
            getrusage(RUSAGE_SELF, &usage);
            fmt::print("{:>7.0f}% {:>12} {:>12.1f} {:>10.1e} {:>10} {:>8.0f}\n", share * 100, limit, took, answer->gap,
                       answer->provenOptimal, static_cast<double>(usage.ru_maxrss) / 1024);
        }
    }
    double latest = 0;
    for (int i = 0; i < 10; ++i) {
        const planner::AbstractProblem problem = instance(0.3);
        planner::SearchLimits limits;
        std::stop_source stop;
        limits.stop = stop.get_token();
        Clock::time_point asked;
        std::thread canceller([&] {
            std::this_thread::sleep_for(std::chrono::milliseconds(150 + 60 * i));
            asked = Clock::now();
            stop.request_stop();
        });
        const auto answer = planner::solveAbstractProblem(problem, limits);
        const auto ended = Clock::now();
        canceller.join();
        latest = std::max(latest, milliseconds(ended - asked));
    }
    fmt::print("cancelled at ten moments: returned at the latest {:.2f} ms later\n", latest);
    return 0;
}
