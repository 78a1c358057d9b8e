// SPDX-License-Identifier: GPL-3.0-or-later
#include "runtime/launch/Measure.h"

#include "runtime/collective/Lane.h"
#include "runtime/contract/Bytes.h"
#include "runtime/contract/Cluster.h"
#include "runtime/contract/Json.h"
#include "runtime/device/HostMemory.h"
#include "runtime/launch/MeasureDevice.h"
#include "runtime/launch/MeasureKernels.h"
#include "runtime/launch/MeasureRing.h"
#include "runtime/launch/TelemetryWriter.h"
#include "runtime/ops/Linear.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>

namespace shardscope::engine {

namespace {

double median(const std::vector<double>& values) {
    return quantile(values, 0.5);
}

struct MatmulShape {
    std::int64_t rows, outputs, inputs;
};
constexpr MatmulShape kShapes[] = {{256, 1024, 256}, {512, 768, 768}, {512, 3072, 768}, {1024, 1024, 1024}};

struct ComputeRates {
    std::vector<double> flops; ///< by shape
    double memoryBandwidth = 0;
};

ComputeRates measureCompute(std::int64_t workers) {
    ComputeRates rates;
    for (const MatmulShape& shape : kShapes) {
        std::vector<std::vector<float>> x, w, y;
        for (std::int64_t i = 0; i < workers; ++i) {
            x.emplace_back(static_cast<std::size_t>(shape.rows * shape.inputs), 0.5F);
            w.emplace_back(static_cast<std::size_t>(shape.outputs * shape.inputs), 0.5F);
            y.emplace_back(static_cast<std::size_t>(shape.rows * shape.outputs), 0.0F);
        }
        rates.flops.push_back(slowestRate(workers, 0.4, [&](std::int64_t worker) {
            const auto i = static_cast<std::size_t>(worker);
            linearForward({x[i].data(), shape.rows, shape.inputs, shape.inputs}, w[i].data(), nullptr, {},
                          {y[i].data(), shape.rows, shape.outputs, shape.outputs});
            return 2.0 * static_cast<double>(shape.rows * shape.outputs * shape.inputs);
        }));
    }
    constexpr std::size_t kFloats = 16 << 20; // far beyond any cache
    std::vector<std::vector<float>> from, to;
    for (std::int64_t i = 0; i < workers; ++i) {
        from.emplace_back(kFloats, 1.0F);
        to.emplace_back(kFloats, 0.0F);
    }
    rates.memoryBandwidth = slowestRate(workers, 0.4, [&](std::int64_t worker) {
        const auto i = static_cast<std::size_t>(worker);
        const float* const source = from[i].data();
        float* const target = to[i].data();
        for (std::size_t e = 0; e < kFloats; ++e)
            target[e] += source[e];
        return 3.0 * kFloats * sizeof(float); // two reads, one write
    });
    return rates;
}

/// What handing a job to the communication thread and waiting for it costs.
double measureHandOver() {
    Lane lane([](const Lane::Job&) -> contract::Result<void> { return {}; });
    constexpr int kJobs = 2000;
    const double begin = monotonicSeconds();
    for (int i = 0; i < kJobs; ++i)
        lane.wait(lane.post({}));
    return (monotonicSeconds() - begin) / kJobs;
}

std::string defaultOutput() {
    const char* const cache = std::getenv("XDG_CACHE_HOME");
    const char* const home = std::getenv("HOME");
    const std::string base =
        cache != nullptr && *cache != '\0' ? cache : std::string(home != nullptr ? home : ".") + "/.cache";
    return base + "/shardscope/local.cluster.json";
}

contract::Result<void> writeCluster(const contract::Cluster& cluster, const MeasureOptions& options,
                                    std::string& output) {
    output = options.output.empty() ? defaultOutput() : options.output;
    std::error_code error;
    if (const auto parent = std::filesystem::path(output).parent_path(); !parent.empty())
        std::filesystem::create_directories(parent, error);
    const std::string text = contract::toJson(cluster).dump(1) + "\n";
    if (auto written = contract::writeFileAtomically(output, text); !written)
        return written;
    if (options.json)
        std::fputs(text.c_str(), stdout);
    return {};
}

contract::Result<void> runMeasureGpus(const MeasureOptions& options) {
    const auto cluster = measureGpus(options.workers);
    if (!cluster)
        return tl::unexpected(cluster.error());
    std::string output;
    if (auto written = writeCluster(*cluster, options, output); !written || options.json)
        return written;
    fmt::print("{}\n{:<28} {:>10.1f} TFLOP/s fp32, {:.1f} bf16\n{:<28} {:>10.1f} GB/s\n{:<28} {:>10}\nwritten to {}\n",
               cluster->title, "matrix products", cluster->device.flopsFp32 / 1e12, cluster->device.flopsBf16 / 1e12,
               "memory bandwidth", cluster->device.memoryBandwidth / 1e9, "memory",
               contract::describeBytes(cluster->device.memoryBytes), output);
    return {};
}

} // namespace

contract::Result<void> runMeasure(const MeasureOptions& options) {
    if (options.device == "cuda")
        return runMeasureGpus(options);
    if (options.device != "cpu")
        return contract::usageError(fmt::format("--device \"{}\": known are cpu, cuda", options.device));
    prepareBlas();
    const std::int64_t workers = options.workers > 0 ? options.workers : processorCount();
    const std::int64_t baseline = residentBytes();
    const std::int64_t available = availableMemoryBytes();
    const ComputeRates rates = measureCompute(workers);
    const MeasuredKernels kernels = measureKernels(workers);
    const std::int64_t ringRanks = std::max<std::int64_t>(2, workers);
    // Where every core computes, messages take their time from computing.
    const bool isCrowded = workers >= processorCount();
    const auto samples = measureRing(ringRanks, isCrowded);
    if (!samples)
        return tl::unexpected(samples.error());
    std::vector<LinkSample> links;
    for (const RingSample& sample : *samples)
        links.push_back(sample.link);
    const LinkFit fit = fitLink(links);

    contract::Cluster cluster;
    cluster.name = "local";
    cluster.title = fmt::format("this machine, {} x {}", workers, processorName());
    cluster.nodes = 1;
    cluster.devicesPerNode = workers;
    cluster.device.name = processorName();
    cluster.device.memoryBytes = available / workers * 9 / 10;
    cluster.device.flopsFp32 = median(rates.flops);
    cluster.device.peakFlopsFp32 = *std::max_element(rates.flops.begin(), rates.flops.end());
    cluster.device.memoryBandwidth = rates.memoryBandwidth;
    cluster.inside = {fit.latencySeconds, fit.bytesPerSecond};
    cluster.between = cluster.inside;
    cluster.hostSecondsPerCollective = measureHandOver();
    cluster.overlapEfficiency = isCrowded ? 0.0 : 1.0;
    cluster.reserve = {{"process", baseline, "measured"}};
    cluster.isCpu = true;
    cluster.source = "measured";
    contract::Json measured;
    for (std::size_t i = 0; i < rates.flops.size(); ++i)
        measured["matmul"].push_back({{"rows", kShapes[i].rows},
                                      {"outputs", kShapes[i].outputs},
                                      {"inputs", kShapes[i].inputs},
                                      {"flops_per_second", rates.flops[i]}});
    for (const RingSample& sample : *samples)
        measured["ring_step"].push_back(
            {{"bytes", sample.link.bytes}, {"seconds", sample.link.seconds}, {"seconds_alone", sample.secondsAlone}});
    measured["ring_fit"] = {{"latency_seconds", fit.latencySeconds},
                            {"bytes_per_second", fit.bytesPerSecond},
                            {"r2", fit.r2},
                            {"ranks", ringRanks}};
    measured["workers"] = workers;
    measured["kernels"] = contract::toJson(kernels.rates);
    measured["kernels"]["product_r2"] = kernels.productR2;
    measured["kernels"]["attention_r2"] = kernels.attentionR2;
    cluster.measured = measured.dump();

    std::string output;
    if (auto written = writeCluster(cluster, options, output); !written || options.json)
        return written;
    fmt::print("{}\n{:<28} {:>10.2f} GFLOP/s per worker, {} workers busy\n", cluster.title, "fp32 matrix products",
               cluster.device.flopsFp32 / 1e9, workers);
    for (std::size_t i = 0; i < rates.flops.size(); ++i)
        fmt::print("  ({:>4}, {:>4}) x ({:>4}, {:>4}) {:>13.2f}\n", kShapes[i].rows, kShapes[i].inputs,
                   kShapes[i].inputs, kShapes[i].outputs, rates.flops[i] / 1e9);
    fmt::print("{:<28} {:>10.2f} GFLOP/s for large ones, R2 {:.4f}\n", "linear, with gradients",
               3e-9 / kernels.rates.productSecondsPerFlop, kernels.productR2);
    fmt::print("{:<28} {:>10.2f} GFLOP/s, R2 {:.4f}\n", "attention, with gradients",
               3e-9 / kernels.rates.attentionSecondsPerFlop, kernels.attentionR2);
    fmt::print("{:<28} {:>10.2f} GB/s per worker\n", "optimizer step", 1e-9 / kernels.rates.updateSecondsPerByte);
    fmt::print("{:<28} {:>10.2f} GB/s per worker\n", "memory bandwidth", rates.memoryBandwidth / 1e9);
    fmt::print("{:<28} {:>10.1f} us + bytes / {:.2f} GB/s, R2 {:.4f}, {} ranks\n", "ring step",
               fit.latencySeconds * 1e6, fit.bytesPerSecond / 1e9, fit.r2, ringRanks);
    fmt::print("{:<28} {:>10} per worker\nwritten to {}\n", "memory",
               contract::describeBytes(cluster.device.memoryBytes), output);
    return {};
}

} // namespace shardscope::engine
