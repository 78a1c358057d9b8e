// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "runtime/contract/Cluster.h"

#include <string>

namespace shardscope::planner {

/// How long one device's streams were busy in a measured step, over what was predicted for the same step.
struct BusyRatio {
    double compute = 1;
    double communication = 1;
};

/// The cluster as that step found it: computing takes `compute` times as long (FLOP rates, memory bandwidth, measured
/// kernels), collectives `communication` times (latencies, bandwidths, host time). `why` is kept as the source: at most
/// 256 bytes. Datasheet peaks, memory and reserve stay. Errors: BadInput for a ratio that is not between 1/1000 and
/// 1000.
contract::Result<contract::Cluster> recalibrated(contract::Cluster cluster, const BusyRatio& ratio,
                                                 const std::string& why);

} // namespace shardscope::planner
