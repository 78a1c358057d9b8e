// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "planner/search/Planner.h"

#include <cstdint>
#include <random>
#include <string>
#include <vector>

namespace shardscope::testing {

inline constexpr std::int64_t kP0 = std::int64_t{1} << 20;
inline constexpr double kDeviceFlops = 1e12;

/// The cluster of the worked examples: N devices, latency a, inverse bandwidth b, no reserve.
contract::Cluster exampleCluster(std::int64_t devices, double latency, double inverseBandwidth);

/// A matrix operator of `parameters` parameters (rows x 1024) without activations.
contract::Operator matrixOperator(const std::string& name, std::int64_t parameters);

/// Operators outside blocks, as the worked examples have them. `keptMiB` and `computeSeconds` are per operator and
/// sample.
planner::GraphPointer matrixGraph(const std::vector<std::int64_t>& parameters, double keptMiB = 0,
                                  double computeSeconds = 0);

/// Paper mode, fp32-adam (16 bytes a parameter), batch 1, no recomputation, the slice counts given.
planner::PlanRequest paperRequest(planner::GraphPointer graph, const contract::Cluster& cluster,
                                  std::vector<std::int32_t> slices);

/// A GPT-2-like architecture of odd sizes.
contract::Architecture smallArchitecture(std::int64_t layers, std::int64_t hidden, std::int64_t heads,
                                         std::int64_t vocabulary, bool tied);
planner::GraphPointer smallGraph(const contract::Architecture& architecture, std::int64_t sequence);

/// A GPT-2-like graph of odd sizes on a cluster of two to five devices with odd rates, full mode.
planner::PlanRequest smallRequest(std::mt19937_64& random, std::int64_t layers);

} // namespace shardscope::testing
