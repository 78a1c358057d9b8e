// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "runtime/contract/Cluster.h"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace shardscope::planner {

/// A GPU of this machine as the driver's management library reports it.
struct Gpu {
    std::string name; ///< "NVIDIA H200"
    std::int64_t memoryBytes = 0;
    std::int64_t usedBytes = 0; ///< by other processes, and the driver itself
    int computeMajor = 0;       ///< bf16 from 8 on
    int computeMinor = 0;
    std::int64_t cores = 0;     ///< CUDA cores; 0: not reported
    double clockHertz = 0;      ///< highest of the multiprocessors
    double memoryBandwidth = 0; ///< bus width x highest memory clock; 0: not reported
    int pcieGeneration = 0;
    int pcieWidth = 0;
    int nvlinks = 0; ///< active ones
    int nvlinkVersion = 0;
};

/// Loads NVML (libnvidia-ml.so.1) at run time; empty where there is none or it reports no device.
std::vector<Gpu> detectGpus();

/// This machine's GPUs as a cluster: what the driver reports, with datasheet rates of known cards times an efficiency,
/// or rates from cores and clock for others. Empty without GPUs. Mixed cards count as many of the first kind.
std::optional<contract::Cluster> gpuCluster(const std::vector<Gpu>& gpus);

} // namespace shardscope::planner
