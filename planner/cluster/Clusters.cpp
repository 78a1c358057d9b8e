// SPDX-License-Identifier: GPL-3.0-or-later
#include "planner/cluster/Clusters.h"

#include "planner/cluster/Gpus.h"
#include "planner/cluster/LocalMachine.h"
#include "planner/cluster/Topology.h"
#include "planner/readers/Bundle.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <system_error>
#include <tuple>

namespace shardscope::planner {

using contract::badInput;
using contract::Cluster;
using contract::Result;

namespace {

namespace fs = std::filesystem;

constexpr std::string_view kLocal = "local";
constexpr std::string_view kLocalCpu = "local-cpu"; // the processor cores, whatever else there is
constexpr std::string_view kLocalSource = "detected with default rates";

// One core of a common processor, until `shardscope-train measure` has run here.
constexpr double kCorePeakFlops = 80e9; // 2.5 GHz x 2 fused multiply-adds of 8 floats
constexpr double kCoreFlops = 30e9;
constexpr double kCoreMemoryBandwidth = 8e9;
constexpr contract::Link kLoopback{5e-5, 1e9};
constexpr double kHostSecondsPerCollective = 2e-5;
constexpr double kCpuOverlapEfficiency = 0.25;

Cluster detectDevices() {
    auto gpus = gpuCluster(detectGpus());
    return gpus ? std::move(*gpus) : detectLocalCluster();
}

Cluster openLocal() {
    const std::string cache = localClusterCachePath();
    std::error_code error;
    if (cache.empty() || !fs::exists(cache, error))
        return detectDevices();
    auto measured = contract::readClusterFile(cache);
    if (!measured) {
        Cluster detected = detectDevices();
        detected.source += "; the stored measurement cannot be read";
        return detected;
    }
    measured->name = kLocal;
    if (measured->isCpu) // what other programs hold has changed since
        measured->device.memoryBytes = memoryPerDevice(availableMemoryBytes(), measured->devices());
    return std::move(*measured);
}

Result<Cluster> openClusterFile(const std::string& argument) {
    const std::vector<ZooEntry> bundled = bundledClusters();
    if (const auto entry = findEntry(bundled, argument))
        return contract::readClusterFile(entry->path);
    if (argument.empty())
        return badInput(
            fmt::format("no cluster is named; there are {}, {}, {}", kLocal, kLocalCpu, listNames(bundled)));
    std::error_code error;
    const fs::file_status status = fs::status(argument, error);
    if (status.type() == fs::file_type::not_found)
        return badInput(fmt::format("{}: is neither a file nor a bundled cluster; there are {}, {}, {}", argument,
                                    kLocal, kLocalCpu, listNames(bundled)));
    return contract::readClusterFile(argument);
}

} // namespace

std::vector<ZooEntry> bundledClusters() {
    return readBundleIndex("clusters", ".cluster.json");
}

std::vector<CardMemory> bundledCards() {
    std::vector<CardMemory> cards;
    for (const ZooEntry& entry : bundledClusters()) {
        const auto cluster = contract::readClusterFile(entry.path);
        if (!cluster || cluster->isCpu)
            continue;
        const bool isKnown = std::any_of(cards.begin(), cards.end(),
                                         [&](const CardMemory& card) { return card.name == cluster->device.name; });
        if (!isKnown)
            cards.push_back({cluster->device.name, cluster->device.memoryBytes});
    }
    std::sort(cards.begin(), cards.end(), [](const CardMemory& a, const CardMemory& b) {
        return std::tie(a.bytes, a.name) < std::tie(b.bytes, b.name);
    });
    return cards;
}

Result<Cluster> openCluster(const std::string& argument, const std::string& devices) {
    const auto replaceCounts = [&](Cluster cluster) { return withDevices(std::move(cluster), devices); };
    if (argument == kLocal)
        return replaceCounts(openLocal());
    if (argument == kLocalCpu)
        return replaceCounts(detectLocalCluster());
    return openClusterFile(argument).and_then(replaceCounts);
}

Cluster detectLocalCluster() {
    const std::int64_t cores = usableCores();
    Cluster cluster;
    cluster.name = kLocal;
    cluster.title = fmt::format("This machine, {} CPU core{}", cores, cores == 1 ? "" : "s");
    cluster.devicesPerNode = cores;
    cluster.device.name = "CPU core";
    cluster.device.memoryBytes = memoryPerDevice(availableMemoryBytes(), cores);
    cluster.device.flopsFp32 = kCoreFlops;
    cluster.device.peakFlopsFp32 = kCorePeakFlops;
    cluster.device.memoryBandwidth = kCoreMemoryBandwidth;
    cluster.inside = kLoopback;
    cluster.between = kLoopback;
    cluster.hostSecondsPerCollective = kHostSecondsPerCollective;
    cluster.overlapEfficiency = kCpuOverlapEfficiency;
    cluster.isCpu = true;
    cluster.source = kLocalSource;
    if (const std::string topology = describeTopology(readTopology()); !topology.empty())
        cluster.source += fmt::format(" ({})", topology);
    return cluster;
}

std::string localClusterCachePath() {
    // A relative XDG_CACHE_HOME is to be ignored, says the base directory specification.
    if (const char* cache = std::getenv("XDG_CACHE_HOME"); cache && *cache == '/')
        return (fs::path(cache) / "shardscope" / "local.cluster.json").string();
    if (const char* home = std::getenv("HOME"); home && *home)
        return (fs::path(home) / ".cache" / "shardscope" / "local.cluster.json").string();
    return {};
}

} // namespace shardscope::planner
