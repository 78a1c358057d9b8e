// SPDX-License-Identifier: GPL-3.0-or-later
#include "planner/cluster/Gpus.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string_view>

namespace shardscope::planner {

namespace {

/// Datasheet peaks without sparsity and the efficiency that the bundled clusters assume (models/README.md).
struct Card {
    std::string_view name; ///< part of what the driver says, longer names first
    double fp32, bf16, bandwidth;
    double fp32Efficiency, bf16Efficiency;
};
constexpr std::array kCards{
    Card{"H200", 67e12, 989.4e12, 4.8e12, 0.7, 0.5},
    Card{"H100 PCIe", 51e12, 756e12, 2.0e12, 0.7, 0.5},
    Card{"H100 NVL", 60e12, 835e12, 3.9e12, 0.7, 0.5},
    Card{"H100", 67e12, 989.4e12, 3.35e12, 0.7, 0.5},
    Card{"B200", 75e12, 2250e12, 8.0e12, 0.7, 0.5},
    Card{"A100-SXM4-80GB", 19.5e12, 312e12, 2.039e12, 0.8, 0.6},
    Card{"A100", 19.5e12, 312e12, 1.555e12, 0.8, 0.6},
    Card{"L40S", 91.6e12, 362e12, 0.864e12, 0.7, 0.5},
    Card{"L4", 30.3e12, 121e12, 0.3e12, 0.7, 0.5},
    Card{"A10", 31.2e12, 125e12, 0.6e12, 0.7, 0.6},
    Card{"RTX A6000", 38.7e12, 154.8e12, 0.768e12, 0.7, 0.6},
    Card{"RTX 4090", 82.6e12, 165.2e12, 1.008e12, 0.7, 0.6},
    Card{"RTX 3090", 35.6e12, 71e12, 0.936e12, 0.7, 0.6},
    Card{"V100", 15.7e12, 0, 0.9e12, 0.8, 0},
    Card{"T4", 8.1e12, 0, 0.32e12, 0.7, 0},
    Card{"TITAN RTX", 16.3e12, 0, 0.672e12, 0.8, 0},
};

constexpr std::int64_t kContextBytes = std::int64_t{512} << 20;
constexpr std::int64_t kCollectiveBytes = 429'496'730; // 0.4 GiB

/// "A100" is in "NVIDIA A100-PCIE-40GB" and not in "NVIDIA RTX A1000".
bool isNamed(const std::string& name, std::string_view card) {
    const auto at = name.find(card);
    const std::size_t end = at + card.size();
    return at != std::string::npos && (end == name.size() || name[end] < '0' || name[end] > '9');
}

const Card* findCard(const std::string& name) {
    const auto* found =
        std::find_if(kCards.begin(), kCards.end(), [&](const Card& card) { return isNamed(name, card.name); });
    return found == kCards.end() ? nullptr : found;
}

contract::Device deviceOf(const Gpu& gpu) {
    contract::Device device;
    device.name = gpu.name;
    device.memoryBytes = gpu.memoryBytes;
    if (const Card* card = findCard(gpu.name)) {
        device.peakFlopsFp32 = card->fp32;
        device.peakFlopsBf16 = card->bf16;
        device.flopsFp32 = card->fp32 * card->fp32Efficiency;
        device.flopsBf16 = card->bf16 * card->bf16Efficiency;
        device.memoryBandwidth = card->bandwidth;
        return device;
    }
    constexpr double kLeastFlops = 1e12;
    device.peakFlopsFp32 = std::max(kLeastFlops, 2 * static_cast<double>(gpu.cores) * gpu.clockHertz);
    device.flopsFp32 = 0.7 * device.peakFlopsFp32;
    // Tensor cores at twice the rate of CUDA cores is what the slowest cards with bf16 do.
    device.peakFlopsBf16 = gpu.computeMajor >= 8 ? 2 * device.peakFlopsFp32 : 0;
    device.flopsBf16 = 0.6 * device.peakFlopsBf16;
    device.memoryBandwidth = gpu.memoryBandwidth > 0 ? gpu.memoryBandwidth : 2e11;
    return device;
}

/// Per device and direction: NVLink lanes where they are active, else PCIe through host memory.
contract::Link linkOf(const Gpu& gpu) {
    if (gpu.nvlinks > 0) {
        const double perLink = gpu.nvlinkVersion >= 5 ? 50e9 : 25e9;
        return {2.5e-6, 0.8 * gpu.nvlinks * perLink};
    }
    constexpr double kLane3 = 0.985e9; // bytes per second of one lane of PCIe 3
    const int generation = std::clamp(gpu.pcieGeneration, 1, 6);
    const int width = std::clamp(gpu.pcieWidth, 1, 16);
    const double lane = generation >= 3 ? kLane3 * (1 << (generation - 3)) : kLane3 / (1 << (3 - generation));
    return {1.5e-5, 0.4 * lane * width};
}

} // namespace

std::optional<contract::Cluster> gpuCluster(const std::vector<Gpu>& gpus) {
    if (gpus.empty())
        return std::nullopt;
    const Gpu& first = gpus.front();
    contract::Cluster cluster;
    cluster.name = "local";
    cluster.devicesPerNode =
        std::count_if(gpus.begin(), gpus.end(), [&](const Gpu& gpu) { return gpu.name == first.name; });
    cluster.title = fmt::format("This machine, {} x {}", cluster.devicesPerNode, first.name);
    cluster.device = deviceOf(first);
    // What other processes hold on the fullest of them is gone for every rank, since plans are the same on all.
    std::int64_t used = 0;
    for (const Gpu& gpu : gpus) {
        if (gpu.name != first.name)
            continue;
        cluster.device.memoryBytes = std::min(cluster.device.memoryBytes, gpu.memoryBytes);
        used = std::max(used, gpu.usedBytes);
    }
    cluster.inside = linkOf(first);
    cluster.between = cluster.inside;
    cluster.hostSecondsPerCollective = 2e-5;
    cluster.overlapEfficiency = first.nvlinks > 0 ? 0.9 : 0.8;
    cluster.reserve.push_back({"context", kContextBytes, "assumed"});
    if (cluster.devicesPerNode > 1)
        cluster.reserve.push_back({"collective", kCollectiveBytes, "assumed"});
    if (used > 0)
        cluster.reserve.push_back({"other processes", used, "measured"});
    cluster.source =
        findCard(first.name) ? "detected with datasheet rates" : "detected with rates from cores and clock";
    if (static_cast<std::size_t>(cluster.devicesPerNode) < gpus.size())
        cluster.source += fmt::format("; {} other cards are left out",
                                      gpus.size() - static_cast<std::size_t>(cluster.devicesPerNode));
    return cluster;
}

} // namespace shardscope::planner
