// SPDX-License-Identifier: GPL-3.0-or-later
#include "planner/cli/Commands.h"
#include "planner/cli/RequestOptions.h"
#include "planner/cluster/Clusters.h"
#include "runtime/contract/Bytes.h"
#include "runtime/contract/Json.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <memory>

namespace shardscope::planner::cli {

namespace {

struct ClusterOptions {
    std::string cluster = "local";
    std::string devices;
    std::string exportTo;
    bool json = false;
};

std::string linkText(const contract::Link& link) {
    return fmt::format("{:.1f} us, {:.1f} GB/s", link.latencySeconds * 1e6, link.bytesPerSecond / 1e9);
}

void printText(const contract::Cluster& cluster) {
    const contract::Device& device = cluster.device;
    fmt::print("{}\n{} node{} of {} device{}\n\n", cluster.title, cluster.nodes, cluster.nodes == 1 ? "" : "s",
               cluster.devicesPerNode, cluster.devicesPerNode == 1 ? "" : "s");
    fmt::print("{:<18} {}\n{:<18} {}\n", "device", device.name, "memory", contract::describeBytes(device.memoryBytes));
    fmt::print("{:<18} {:.2f} TFLOP/s of {:.2f}\n", "fp32", device.flopsFp32 / 1e12, device.peakFlopsFp32 / 1e12);
    if (device.flopsBf16 > 0)
        fmt::print("{:<18} {:.2f} TFLOP/s of {:.2f}\n", "bf16", device.flopsBf16 / 1e12, device.peakFlopsBf16 / 1e12);
    fmt::print("{:<18} {:.0f} GB/s\n", "memory bandwidth", device.memoryBandwidth / 1e9);
    fmt::print("{:<18} {}\n", "link inside", linkText(cluster.inside));
    if (cluster.nodes > 1)
        fmt::print("{:<18} {}\n", "link between", linkText(cluster.between));
    for (const contract::ReserveLine& line : cluster.reserve)
        fmt::print("{:<18} {}, {}, {}\n", "reserve", line.what, contract::describeBytes(line.bytes), line.source);
    fmt::print("{:<18} {}\n", "source", cluster.source);
}

int show(const ClusterOptions& options) {
    const auto cluster = openCluster(options.cluster, options.devices);
    if (!cluster)
        return report(cluster.error(), options.json);
    warn(cluster->warnings);
    const std::string text =
        contract::toJson(*cluster).dump(2, ' ', false, contract::OrderedJson::error_handler_t::replace);
    if (!options.exportTo.empty()) {
        if (const auto written = contract::writeFileAtomically(options.exportTo, text + "\n"); !written)
            return report(written.error(), options.json);
        complain("wrote " + options.exportTo);
    }
    options.json ? fmt::print("{}\n", text) : printText(*cluster);
    return 0;
}

} // namespace

void addCluster(CLI::App& app, int& exitCode) {
    const auto options = std::make_shared<ClusterOptions>();
    CLI::App* command = app.add_subcommand("cluster", "what is known of a cluster's devices, links and memory");
    command->add_option("CLUSTER", options->cluster, "a *.cluster.json, a bundled name, or local")
        ->capture_default_str();
    command->add_option("--devices", options->devices, "replace the device count: N or NODESxDEVICES");
    command->add_option("--export", options->exportTo, "write the cluster as *.cluster.json");
    command->add_flag("--json", options->json, "one JSON document on standard output");
    command->callback([options, &exitCode] { exitCode = show(*options); });
}

} // namespace shardscope::planner::cli
