// SPDX-License-Identifier: GPL-3.0-or-later
#include "planner/search/AbstractProblem.h"
#include "planner/validate/Tables.h"
#include "runtime/contract/Bytes.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace shardscope::planner {

namespace {

constexpr double kTolerancePercent = 5;
constexpr double kWeightBytes = 4; // the released code trains in fp32
constexpr double kStateBytes = 16; // fp32 weight, gradient and Adam moments

struct Fit {
    double replicateBytesPerSecond = 0;
    double shardBytesPerSecond = 0;
    double stepSeconds = 0; ///< latency of a ring step
    double ranks = 1;

    /// One ring phase over X bytes: (N-1)(a + X/N b).
    double phase(double bytes, double bytesPerSecond) const {
        return (ranks - 1) * (stepSeconds + bytes / ranks / bytesPerSecond);
    }
    double replicateSeconds(double parameters) const {
        return 2 * phase(kWeightBytes * parameters, replicateBytesPerSecond);
    }
    double shardSeconds(double parameters) const { return 3 * phase(kWeightBytes * parameters, shardBytesPerSecond); }
};

struct Run {
    std::int64_t layers = 0;
    double hidden = 0;
    double limitMiB = 0, osdpMiB = 0, fsdpMiB = 0, ratio = 0;

    double attention() const { return 4 * hidden * hidden + 4 * hidden; }
    double feedForward() const { return 8 * hidden * hidden + 5 * hidden; }
};

Run readRun(const contract::JsonCursor& run) {
    return {run.at("layers").integer(1, 1000),  static_cast<double>(run.at("hidden").integer(1, 1 << 20)),
            run.at("limit_mib").number(1, 1e9), run.at("osdp_mib").number(1, 1e9),
            run.at("fsdp_mib").number(1, 1e9),  run.at("throughput_ratio").number()};
}

std::int64_t bytes(double value) {
    return std::llround(value);
}

/// The released code decides two operators per layer, attention and feed-forward. `base` is whatever makes the peak of
/// the all-sharded choice what was measured.
AbstractProblem problemOf(const Run& run, const Fit& fit) {
    AbstractProblem problem;
    problem.limitBytes = bytes(run.limitMiB * static_cast<double>(contract::kMiB));
    double sharded = 0;
    for (std::int64_t layer = 0; layer < run.layers; ++layer) {
        for (const auto& [name, parameters] :
             {std::pair{"attention", run.attention()}, std::pair{"feed_forward", run.feedForward()}}) {
            sharded += kStateBytes * parameters / fit.ranks;
            problem.operators.push_back(
                {fmt::format("{}.{}", layer, name),
                 {{"replicate", bytes(kStateBytes * parameters), 0, bytes(fit.replicateSeconds(parameters) * 1e9)},
                  {"shard", bytes(kStateBytes * parameters / fit.ranks), bytes(kWeightBytes * parameters),
                   bytes(fit.shardSeconds(parameters) * 1e9)}}});
        }
    }
    const double slot = kWeightBytes * run.feedForward();
    problem.baseBytes =
        std::max<std::int64_t>(0, bytes(run.fsdpMiB * static_cast<double>(contract::kMiB) - sharded - slot));
    return problem;
}

} // namespace

contract::Result<ValidationTable> osdpTable(const contract::JsonCursor& published) {
    ValidationTable table{"Released OSDP code", published.at("source").text(), {}};
    const contract::JsonCursor rates = published.at("fit");
    const Fit fit{rates.at("replicate_bytes_per_second").number(1), rates.at("shard_bytes_per_second").number(1),
                  rates.at("seconds_per_ring_step").number(),
                  static_cast<double>(published.at("ranks").integer(2, 1 << 20))};
    const Run gpt = readRun(published.at("gpt"));
    const Run opt = readRun(published.at("opt"));
    const double layerRatio = published.at("sharded_over_replicated_layer").number();
    if (published.failed())
        return table; // the caller asks the cursor

    const double layer = gpt.attention() + gpt.feedForward();
    table.rows.push_back(relativeRow("a sharded layer over a replicated one", "ratio",
                                     fit.shardSeconds(layer) / fit.replicateSeconds(layer), layerRatio,
                                     kTolerancePercent,
                                     "3 ring phases at the fitted sharded rate over 2 at the replicated, no overlap"));

    const auto answer = solveAbstractProblem(problemOf(gpt, fit));
    if (!answer)
        return tl::unexpected(answer.error());
    if (!answer->feasible || !answer->provenOptimal)
        return contract::runFailed("validate: the published OSDP run could not be solved to its optimum");
    const auto replicated = std::count(answer->choice.begin(), answer->choice.end(), "replicate");
    table.rows.push_back(relativeRow(
        fmt::format("GPT, {} layers, hidden {}: peak of the plan under {} MiB", gpt.layers, gpt.hidden, gpt.limitMiB),
        "MiB", static_cast<double>(answer->peakBytes) / static_cast<double>(contract::kMiB), gpt.osdpMiB,
        kTolerancePercent,
        fmt::format("our optimum with the fitted rates, {} of {} operators replicated; base set so that all sharded "
                    "peaks at the {} MiB measured",
                    replicated, answer->choice.size(), gpt.fsdpMiB)));
    const double allSharded =
        static_cast<double>(gpt.layers) * (fit.shardSeconds(gpt.attention()) + fit.shardSeconds(gpt.feedForward()));
    table.notReproduced.push_back(
        {fmt::format("GPT, {} layers: throughput {} of FSDP's", gpt.layers, gpt.ratio),
         fmt::format(
             "the formula gives {:.3f} in communication alone; the published baseline is another implementation "
             "of FSDP, whose own costs the ratio contains",
             allSharded / (static_cast<double>(answer->nanoseconds) * 1e-9))});
    table.notReproduced.push_back(
        {fmt::format("OPT cut to {} layers: {} MiB, throughput {} of FSDP's", opt.layers, opt.osdpMiB, opt.ratio),
         "the two runs compared differ in batch (2 against 1)"});
    return table;
}

} // namespace shardscope::planner
