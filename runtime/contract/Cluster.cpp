// SPDX-License-Identifier: GPL-3.0-or-later
#include "runtime/contract/Cluster.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace shardscope::contract {

namespace {

constexpr std::int64_t kMaximumDevices = 1 << 20;
constexpr std::int64_t kMaximumBytes = std::int64_t{1} << 50;
constexpr double kMaximumRate = 1e24;

OrderedJson toJson(const Link& link) {
    return {{"latency_seconds", link.latencySeconds}, {"bytes_per_second", link.bytesPerSecond}};
}

Link readLink(const JsonCursor& cursor) {
    Link link;
    cursor.expectOnly({"latency_seconds", "bytes_per_second"});
    link.latencySeconds = cursor.at("latency_seconds").number(0, 1e3);
    link.bytesPerSecond = cursor.at("bytes_per_second").number(1, kMaximumRate);
    return link;
}

Device readDevice(const JsonCursor& cursor) {
    Device device;
    cursor.expectOnly({"name", "kind", "memory_bytes", "flops", "peak_flops", "memory_bandwidth"});
    device.name = cursor.at("name").text(256);
    device.memoryBytes = cursor.at("memory_bytes").integer(1, kMaximumBytes);
    const JsonCursor flops = cursor.at("flops");
    flops.expectOnly({"fp32", "bf16"});
    device.flopsFp32 = flops.at("fp32").number(1, kMaximumRate);
    if (const auto bf16 = flops.find("bf16"))
        device.flopsBf16 = bf16->number(0, kMaximumRate);
    device.peakFlopsFp32 = device.flopsFp32;
    device.peakFlopsBf16 = device.flopsBf16;
    if (const auto peak = cursor.find("peak_flops")) {
        peak->expectOnly({"fp32", "bf16"});
        device.peakFlopsFp32 = peak->at("fp32").number(0, kMaximumRate);
        if (const auto bf16 = peak->find("bf16"))
            device.peakFlopsBf16 = bf16->number(0, kMaximumRate);
    }
    const auto checkPeak = [&](double rate, double peak, const char* type) {
        if (!cursor.failed() && peak > 0 && peak < rate)
            cursor.at("peak_flops").fail(fmt::format("is below flops for {}, which cannot be", type));
    };
    checkPeak(device.flopsFp32, device.peakFlopsFp32, "fp32");
    checkPeak(device.flopsBf16, device.peakFlopsBf16, "bf16");
    device.memoryBandwidth = cursor.at("memory_bandwidth").number(1, kMaximumRate);
    return device;
}

bool hasRate(const std::optional<JsonCursor>& link) {
    if (!link)
        return false;
    const auto rate = link->find("bytes_per_second");
    return !rate || !rate->isNumber() || rate->raw() != 0;
}

} // namespace

std::int64_t Cluster::reserveBytes() const {
    std::int64_t bytes = 0;
    for (const ReserveLine& line : reserve)
        bytes += line.bytes;
    return bytes;
}

OrderedJson toJson(const Cluster& cluster) {
    OrderedJson reserve = OrderedJson::array();
    for (const ReserveLine& line : cluster.reserve)
        reserve.push_back({{"what", line.what}, {"bytes", line.bytes}, {"source", line.source}});
    const Device& device = cluster.device;
    return {{"format", "shardscope-cluster"},
            {"version", 1},
            {"name", cluster.name},
            {"title", cluster.title},
            {"nodes", cluster.nodes},
            {"devices_per_node", cluster.devicesPerNode},
            {"device",
             {{"name", device.name},
              {"kind", cluster.isCpu ? "cpu" : "gpu"},
              {"memory_bytes", device.memoryBytes},
              {"flops", {{"fp32", device.flopsFp32}, {"bf16", device.flopsBf16}}},
              {"peak_flops", {{"fp32", device.peakFlopsFp32}, {"bf16", device.peakFlopsBf16}}},
              {"memory_bandwidth", device.memoryBandwidth}}},
            {"links", {{"inside", toJson(cluster.inside)}, {"between", toJson(cluster.between)}}},
            {"host_seconds_per_collective", cluster.hostSecondsPerCollective},
            {"overlap_efficiency", cluster.overlapEfficiency},
            {"reserve", reserve},
            {"source", cluster.source},
            {"measured", cluster.measured.empty() ? OrderedJson(nullptr) : OrderedJson::parse(cluster.measured)}};
}

Cluster readCluster(const JsonCursor& cursor) {
    Cluster cluster;
    // "measured" is not looked into: it is whatever a measurement found.
    cursor.expectOnly({"format", "version", "name", "title", "nodes", "devices_per_node", "device", "links",
                       "host_seconds_per_collective", "overlap_efficiency", "reserve", "source", "measured"});
    cursor.at("format").choice<int>({{"shardscope-cluster", 0}});
    cursor.at("version").integer(1, 1);
    cluster.name = cursor.at("name").text(256);
    if (const auto title = cursor.find("title"))
        cluster.title = title->text(256);
    else
        cluster.title = cluster.name;
    cluster.nodes = cursor.at("nodes").integer(1, kMaximumDevices);
    cluster.devicesPerNode = cursor.at("devices_per_node").integer(1, kMaximumDevices);
    if (!cursor.failed() && cluster.devices() > kMaximumDevices)
        cursor.at("nodes").fail(fmt::format("times devices_per_node is more than {} devices", kMaximumDevices));
    const JsonCursor device = cursor.at("device");
    cluster.device = readDevice(device);
    if (const auto kind = device.find("kind"))
        cluster.isCpu = kind->choice<bool>({{"gpu", false}, {"cpu", true}});
    const JsonCursor links = cursor.at("links");
    links.expectOnly({"inside", "between"});
    cluster.inside = readLink(links.at("inside"));
    // One node needs no link between nodes; without one the cluster cannot be spread over several.
    if (cluster.nodes > 1 || hasRate(links.find("between")))
        cluster.between = readLink(links.at("between"));
    cluster.hostSecondsPerCollective = cursor.at("host_seconds_per_collective").number(0, 1e3);
    if (const auto overlap = cursor.find("overlap_efficiency"))
        cluster.overlapEfficiency = overlap->number(0, 1);
    const JsonCursor reserve = cursor.at("reserve");
    const std::size_t lines = reserve.arraySize(64);
    for (std::size_t i = 0; i < lines && !cursor.failed(); ++i) {
        const JsonCursor line = reserve.element(i);
        line.expectOnly({"what", "bytes", "source"});
        cluster.reserve.push_back(
            {line.at("what").text(256), line.at("bytes").integer(0, kMaximumBytes),
             line.at("source").choice<std::string>({{"measured", "measured"}, {"assumed", "assumed"}})});
    }
    if (const auto source = cursor.find("source"))
        cluster.source = source->text(256);
    if (const auto measured = cursor.find("measured")) {
        cluster.measured = measured->raw().dump();
        if (const auto kernels = measured->isObject() ? measured->find("kernels") : std::nullopt)
            cluster.kernels = readKernelRates(*kernels);
    }
    return cluster;
}

Result<Cluster> readClusterFile(const std::string& path) {
    const auto document = readJsonFile(path, 1 << 20);
    if (!document)
        return tl::unexpected(document.error());
    const JsonCursor cursor(*document, path);
    Cluster cluster = readCluster(cursor);
    if (cursor.failed())
        return cursor.error();
    cluster.warnings = cursor.unknownKeys();
    return cluster;
}

} // namespace shardscope::contract
