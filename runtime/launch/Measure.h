// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "runtime/contract/Result.h"

#include <cstdint>
#include <string>
#include <vector>

namespace shardscope::engine {

struct MeasureOptions {
    std::int64_t workers = 0;   ///< 0: one per core
    std::string device = "cpu"; ///< or "cuda"
    std::string output;         ///< empty: the cache folder's local.cluster.json
    bool json = false;
};

/// Least squares of t = latency + bytes / bytesPerSecond on relative errors, so that small messages count as much as
/// large ones.
struct LinkFit {
    double latencySeconds = 0;
    double bytesPerSecond = 0;
    double r2 = 0;
};
struct LinkSample {
    double bytes = 0;
    double seconds = 0;
};
LinkFit fitLink(const std::vector<LinkSample>& samples);

/// Measures compute rate and memory bandwidth with all workers busy, and the ring between them; writes a cluster file.
contract::Result<void> runMeasure(const MeasureOptions& options);

} // namespace shardscope::engine
