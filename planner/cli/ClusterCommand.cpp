// SPDX-License-Identifier: GPL-3.0-or-later
#include "planner/cli/Commands.h"
#include "planner/cli/Print.h"
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

/// Processor cores do thousandths of what a card does.
std::string rateText(double flops, double peak) {
    return peak < 1e12 ? fmt::format("{:.1f} GFLOP/s of {:.1f}", flops / 1e9, peak / 1e9)
                       : fmt::format("{:.2f} TFLOP/s of {:.2f}", flops / 1e12, peak / 1e12);
}

void printText(const contract::Cluster& cluster) {
    const contract::Device& device = cluster.device;
    print("{}\n{} node{} of {} device{}\n\n", cluster.title, cluster.nodes, cluster.nodes == 1 ? "" : "s",
          cluster.devicesPerNode, cluster.devicesPerNode == 1 ? "" : "s");
    print("{:<18} {}\n{:<18} {}\n", "device", device.name, "memory of each",
          contract::describeBytes(device.memoryBytes));
    print("{:<18} {}\n", "fp32", rateText(device.flopsFp32, device.peakFlopsFp32));
    if (device.flopsBf16 > 0)
        print("{:<18} {}\n", "bf16", rateText(device.flopsBf16, device.peakFlopsBf16));
    print("{:<18} {:.0f} GB/s\n", "memory bandwidth", device.memoryBandwidth / 1e9);
    print("{:<18} {}\n", "link inside", linkText(cluster.inside));
    if (cluster.nodes > 1)
        print("{:<18} {}\n", "link between", linkText(cluster.between));
    for (const contract::ReserveLine& line : cluster.reserve)
        print("{:<18} {}, {}, {}\n", "reserve", line.what, contract::describeBytes(line.bytes), line.source);
    print("{:<18} {}\n", "source", cluster.source);
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
    options.json ? printJson(contract::toJson(*cluster)) : printText(*cluster);
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
