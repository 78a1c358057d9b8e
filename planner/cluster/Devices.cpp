// SPDX-License-Identifier: GPL-3.0-or-later
#include "planner/cluster/Clusters.h"
#include "runtime/contract/Bytes.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <optional>
#include <string_view>

namespace shardscope::planner {

using contract::Cluster;
using contract::Result;
using contract::usageError;

namespace {

constexpr std::int64_t kMaximumDevices = 1 << 20;
constexpr std::string_view kCollective = "collective";
constexpr std::int64_t kCollectiveReserveBytes = 429'496'730; // 0.4 GiB

struct Counts {
    std::int64_t nodes = 1;
    std::int64_t devicesPerNode = 1;
};

/// Plain digits of a number from 1 to kMaximumDevices.
std::optional<std::int64_t> parseCount(std::string_view text) {
    std::int64_t value = 0;
    const char* end = text.data() + text.size();
    const auto [stop, error] = std::from_chars(text.data(), end, value);
    if (text.empty() || error != std::errc() || stop != end || value < 1 || value > kMaximumDevices)
        return std::nullopt;
    return value;
}

Result<Counts> parseDevices(const Cluster& cluster, std::string_view text) {
    const auto refuse = [&] {
        return usageError(
            fmt::format("--devices {}: must be a number of devices or NODESxDEVICES, for example 8 or 2x8, of at "
                        "most {} devices",
                        text, kMaximumDevices));
    };
    if (const auto cross = text.find('x'); cross != std::string_view::npos) {
        const auto nodes = parseCount(text.substr(0, cross));
        const auto devices = parseCount(text.substr(cross + 1));
        if (!nodes || !devices || *nodes * *devices > kMaximumDevices)
            return refuse();
        return Counts{*nodes, *devices};
    }
    const auto devices = parseCount(text);
    if (!devices)
        return refuse();
    if (cluster.nodes == 1 || *devices <= cluster.devicesPerNode)
        return Counts{1, *devices};
    if (*devices % cluster.devicesPerNode != 0)
        return usageError(fmt::format("--devices {}: does not fill nodes of {} devices; say NODESxDEVICES", text,
                                      cluster.devicesPerNode));
    return Counts{*devices / cluster.devicesPerNode, cluster.devicesPerNode};
}

/// The devices of a processor share its memory, and its cores where there are more devices than before.
void shareProcessor(Cluster& cluster, std::int64_t devicesPerNode) {
    const std::int64_t before = cluster.devicesPerNode;
    contract::Device& device = cluster.device;
    const auto total = contract::checkedMultiply(device.memoryBytes, before).value_or(device.memoryBytes);
    device.memoryBytes = std::max<std::int64_t>(total / devicesPerNode, 1);
    if (devicesPerNode <= before)
        return;
    const double share = static_cast<double>(before) / static_cast<double>(devicesPerNode);
    for (double* rate :
         {&device.flopsFp32, &device.flopsBf16, &device.peakFlopsFp32, &device.peakFlopsBf16, &device.memoryBandwidth})
        *rate *= share;
}

/// A single device needs no collective buffers; several do.
void adjustCollectiveReserve(Cluster& cluster) {
    const auto isAssumedCollective = [](const contract::ReserveLine& line) {
        return line.what == kCollective && line.source == "assumed";
    };
    const auto isCollective = [](const contract::ReserveLine& line) { return line.what == kCollective; };
    if (cluster.devices() == 1)
        std::erase_if(cluster.reserve, isAssumedCollective);
    else if (!cluster.isCpu && std::none_of(cluster.reserve.begin(), cluster.reserve.end(), isCollective))
        cluster.reserve.push_back({std::string(kCollective), kCollectiveReserveBytes, "assumed"});
}

std::string describeCounts(const Cluster& cluster) {
    return cluster.nodes == 1 ? fmt::format("{}", cluster.devicesPerNode)
                              : fmt::format("{} x {}", cluster.nodes, cluster.devicesPerNode);
}

} // namespace

Result<Cluster> withDevices(Cluster cluster, const std::string& devices) {
    if (devices.empty())
        return cluster;
    const auto counts = parseDevices(cluster, devices);
    if (!counts)
        return tl::unexpected(counts.error());
    if (counts->nodes == cluster.nodes && counts->devicesPerNode == cluster.devicesPerNode)
        return cluster;
    if (counts->nodes > 1 && cluster.between.bytesPerSecond <= 0)
        return contract::usageError(
            fmt::format("--devices {}: the cluster {} has no links.between, so it cannot be spread over nodes", devices,
                        cluster.name));
    if (cluster.isCpu)
        shareProcessor(cluster, counts->devicesPerNode);
    cluster.nodes = counts->nodes;
    cluster.devicesPerNode = counts->devicesPerNode;
    adjustCollectiveReserve(cluster);
    cluster.title += fmt::format(" (as {} device{})", describeCounts(cluster), cluster.devices() == 1 ? "" : "s");
    return cluster;
}

} // namespace shardscope::planner
