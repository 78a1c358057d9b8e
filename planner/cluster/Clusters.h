// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "planner/readers/Readers.h"
#include "runtime/contract/Cluster.h"

#include <string>
#include <vector>

namespace shardscope::planner {

/// Opens a CLUSTER argument: a path, a bundled name, or this machine: "local" (cached measurement, else its GPUs,
/// else its cores) or "local-cpu" (its cores).
/// `devices` as given to --devices: "", "8" or "2x8". Errors: BadInput / Usage.
contract::Result<contract::Cluster> openCluster(const std::string& argument, const std::string& devices = "");

/// Replaces node and device counts: "8" or "2x8". Errors: Usage.
contract::Result<contract::Cluster> withDevices(contract::Cluster cluster, const std::string& devices);

std::vector<ZooEntry> bundledClusters();

/// A card that people have, with the memory its driver reports.
struct CardMemory {
    std::string name; ///< "RTX 4090 24 GB"
    std::int64_t bytes = 0;
};
/// Those of the bundled clusters, ascending in memory, each once.
std::vector<CardMemory> bundledCards();

/// This machine's CPU cores as devices: memory = available / devices less 10 %, default rates unless measured.
contract::Cluster detectLocalCluster();
/// Where `shardscope-train measure` leaves its result for "local": $XDG_CACHE_HOME/shardscope/local.cluster.json.
std::string localClusterCachePath();

} // namespace shardscope::planner
