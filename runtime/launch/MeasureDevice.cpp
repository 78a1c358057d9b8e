// SPDX-License-Identifier: GPL-3.0-or-later
#include "runtime/launch/MeasureDevice.h"

#include "runtime/collective/Collectives.h"
#include "runtime/collective/KeyValueServer.h"
#include "runtime/contract/Sizing.h"
#include "runtime/device/cuda/OpenCuda.h"
#include "runtime/launch/MeasureRing.h"
#include "runtime/launch/RankThreads.h"
#include "runtime/launch/TelemetryWriter.h"
#include "runtime/ops/Kernels.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <chrono>

namespace shardscope::engine {

namespace {

/// Device memory of a measurement.
class Room {
public:
    static contract::Result<std::unique_ptr<Room>> create(Device& device, std::int64_t bytes) {
        const auto memory = device.allocate(bytes, "measuring");
        if (!memory)
            return tl::unexpected(memory.error());
        return std::unique_ptr<Room>(new Room(device, *memory, bytes));
    }
    ~Room() { m_device.release(m_memory, m_bytes); }

    /// Numbers that are not all alike: a GPU computes with zeros faster than with anything else.
    void fill(Elements to, std::int64_t count) {
        std::vector<float> values(static_cast<std::size_t>(std::min<std::int64_t>(count, 1 << 20)));
        for (std::size_t i = 0; i < values.size(); ++i)
            values[i] = static_cast<float>(i % 17) / 8.0F - 1.0F;
        for (std::int64_t at = 0; at < count; at += static_cast<std::int64_t>(values.size()))
            m_device.upload(to + at, values.data(), std::min(count - at, static_cast<std::int64_t>(values.size())));
    }
    std::byte* at(std::int64_t offset) const { return m_memory + offset; }

private:
    Room(Device& device, std::byte* memory, std::int64_t bytes) : m_device(device), m_memory(memory), m_bytes(bytes) {}
    Device& m_device;
    std::byte* m_memory;
    std::int64_t m_bytes;
};

/// Times per second that `work` is done; batches grow until one takes long enough to be told apart from its waiting.
contract::Result<double> timesPerSecond(Device& device, double seconds, const std::function<void()>& work) {
    work(); // whatever is chosen or loaded at the first time
    if (auto done = device.synchronize(); !done)
        return tl::unexpected(done.error());
    for (std::int64_t batch = 1;; batch *= 2) {
        const double begin = monotonicSeconds();
        for (std::int64_t i = 0; i < batch; ++i)
            work();
        if (auto done = device.synchronize(); !done)
            return tl::unexpected(done.error());
        if (const double took = monotonicSeconds() - begin; took >= seconds / 2)
            return static_cast<double>(batch) / took;
    }
}

contract::Result<double> measureProduct(Device& device, ProductShape shape, ElementType type, double seconds) {
    const std::int64_t x = shape.rows * shape.inputs;
    const std::int64_t w = shape.outputs * shape.inputs;
    const std::int64_t y = shape.rows * shape.outputs;
    auto room = Room::create(device, (x + w + y) * elementBytes(type));
    if (!room)
        return tl::unexpected(room.error());
    const Elements in{(*room)->at(0), type};
    (*room)->fill(in, x + w);
    const auto rate = timesPerSecond(device, seconds, [&] {
        device.kernels().linearForward({in, shape.rows, shape.inputs, shape.inputs}, in + x, {}, {},
                                       {in + (x + w), shape.rows, shape.outputs, shape.outputs});
    });
    if (!rate)
        return tl::unexpected(rate.error());
    return 2.0 * static_cast<double>(shape.rows * shape.outputs) * static_cast<double>(shape.inputs) * *rate;
}

} // namespace

contract::Result<DeviceRates> measureDevice(Device& device, const std::vector<ProductShape>& shapes, std::int64_t bytes,
                                            double seconds) {
    DeviceRates rates;
    for (const ProductShape& shape : shapes)
        for (const ElementType type : {ElementType::Float32, ElementType::BFloat16}) {
            const auto flops = measureProduct(device, shape, type, seconds);
            if (!flops)
                return tl::unexpected(flops.error());
            (type == ElementType::Float32 ? rates.flopsFp32 : rates.flopsBf16).push_back(*flops);
        }
    auto room = Room::create(device, 3 * bytes);
    if (!room)
        return tl::unexpected(room.error());
    const std::int64_t count = bytes / 4;
    const auto matrix = [&](std::int64_t i) { return Elements{(*room)->at(i * bytes), ElementType::Float32}; };
    (*room)->fill(matrix(0), 2 * count);
    const auto rate = timesPerSecond(device, seconds, [&] { // two reads, one write
        device.kernels().siluGateForward({matrix(0), 1, count, count}, {matrix(1), 1, count, count},
                                         {matrix(2), 1, count, count});
    });
    if (!rate)
        return tl::unexpected(rate.error());
    rates.memoryBandwidth = 3.0 * static_cast<double>(bytes) * *rate;
    return rates;
}

contract::Result<std::vector<LinkSample>> measureDeviceLinks(int ranks, std::int64_t largest, const DeviceOpener& open,
                                                             std::string& how) {
    std::vector<LinkSample> samples;
    if (ranks < 2)
        return samples;
    auto server = KeyValueServer::listen("127.0.0.1", 0);
    if (!server)
        return tl::unexpected(server.error());
    const auto runRank = [&](int rank) -> contract::Result<void> {
        GroupAddress address;
        address.rank = rank;
        address.size = ranks;
        address.port = (*server)->port();
        address.timeout = std::chrono::seconds(30);
        auto group = Group::connect(address);
        if (!group)
            return tl::unexpected(group.error());
        auto device = open(rank);
        if (!device)
            return tl::unexpected(device.error());
        std::vector<std::byte> host(
            static_cast<std::size_t>(StagedCollectives::kStagingBytes + contract::kCollectiveScratchBytes));
        const MemoryRegion staging{host.data(), StagedCollectives::kStagingBytes};
        auto ring = Ring::create(**group, RingMembers::everybody(**group), {staging},
                                 {host.data() + staging.bytes, contract::kCollectiveScratchBytes});
        if (!ring)
            return tl::unexpected(ring.error());
        std::string why;
        auto own = (*device)->connect(**group, RingMembers::everybody(**group), why);
        if (!own)
            return tl::unexpected(own.error());
        std::unique_ptr<Collectives> collectives = std::move(*own);
        if (!collectives)
            collectives = std::make_unique<StagedCollectives>(**device, **ring, staging);
        auto room = Room::create(**device, largest * ranks);
        if (!room)
            return tl::unexpected(room.error());
        if (rank == 0)
            how = collectives->name();
        Device::Job job = 0;
        for (std::int64_t bytes = 4096; bytes <= largest; bytes *= 4) {
            const CollectiveTensor tensor{{(*room)->at(0), ElementType::Float32}, {bytes / 4 * ranks, bytes / 4}};
            std::vector<double> times;
            constexpr int kRepeats = 12;
            for (int repeat = 0; repeat < kRepeats; ++repeat) {
                const double begin = monotonicSeconds();
                (*device)->jobFollowsCompute(++job);
                (*device)->jobBegins(job);
                const auto done = collectives->allGather({&tensor, 1});
                (*device)->jobEnds(job);
                (*device)->computeFollowsJob(job);
                if (!done)
                    return done;
                if (auto waited = (*device)->synchronize(); !waited)
                    return waited;
                if (repeat >= 2) // the first ones connect
                    times.push_back((monotonicSeconds() - begin) / static_cast<double>(ranks - 1));
            }
            std::sort(times.begin(), times.end());
            if (rank == 0) // other programs only ever make a message slower
                samples.push_back({static_cast<double>(bytes), times[times.size() / 4]});
        }
        return {};
    };
    if (auto done = runOnEveryRank(ranks, runRank); !done)
        return tl::unexpected(done.error());
    return samples;
}

contract::Result<contract::Cluster> measureGpus(std::int64_t workers) {
    constexpr double kTimeoutSeconds = 30;
    const std::vector<ProductShape> shapes{
        {4096, 768, 768}, {4096, 3072, 768}, {8192, 4096, 4096}, {8192, 14336, 4096}};
    CudaProbe probe = probeCuda(0, ProbeDepth::Usable);
    if (auto judged = judgeCuda(probe); !judged)
        return tl::unexpected(judged.error());
    const auto ranks = static_cast<int>(std::min<std::int64_t>(workers > 0 ? workers : probe.devices, probe.devices));
    auto device = openCuda(0, kTimeoutSeconds);
    if (!device)
        return tl::unexpected(device.error());
    const auto rates = measureDevice(**device, shapes, std::int64_t{256} << 20, 0.4);
    if (!rates)
        return tl::unexpected(rates.error());
    std::string how = "one GPU";
    const std::int64_t context = (*device)->contextBytes();
    device->reset();
    const auto open = [](int rank) { return openCuda(rank, kTimeoutSeconds); };
    const auto samples = measureDeviceLinks(ranks, std::int64_t{64} << 20, open, how);
    if (!samples)
        return tl::unexpected(samples.error());

    contract::Cluster cluster;
    cluster.name = "local";
    cluster.title = fmt::format("this machine, {} x {}", ranks, probe.name);
    cluster.devicesPerNode = ranks;
    cluster.device.name = probe.name;
    cluster.device.memoryBytes = probe.freeBytes + context; // the context is a line of the reserve
    const auto median = [](std::vector<double> values) {
        std::sort(values.begin(), values.end());
        return values[values.size() / 2];
    };
    cluster.device.flopsFp32 = median(rates->flopsFp32);
    cluster.device.flopsBf16 = median(rates->flopsBf16);
    cluster.device.peakFlopsFp32 = *std::max_element(rates->flopsFp32.begin(), rates->flopsFp32.end());
    cluster.device.peakFlopsBf16 = *std::max_element(rates->flopsBf16.begin(), rates->flopsBf16.end());
    cluster.device.memoryBandwidth = rates->memoryBandwidth;
    const LinkFit fit = fitLink(*samples);
    // One GPU has no link; a plan for it uses none, and the file wants a rate.
    cluster.inside = samples->empty() ? contract::Link{0, rates->memoryBandwidth}
                                      : contract::Link{fit.latencySeconds, fit.bytesPerSecond};
    cluster.between = cluster.inside;
    cluster.reserve = {{"context", context, "measured"}};
    cluster.source = "measured";
    contract::Json measured;
    for (std::size_t i = 0; i < shapes.size(); ++i)
        measured["matmul"].push_back({{"rows", shapes[i].rows},
                                      {"outputs", shapes[i].outputs},
                                      {"inputs", shapes[i].inputs},
                                      {"fp32_flops_per_second", rates->flopsFp32[i]},
                                      {"bf16_flops_per_second", rates->flopsBf16[i]}});
    for (const LinkSample& sample : *samples)
        measured["ring_step"].push_back({{"bytes", sample.bytes}, {"seconds", sample.seconds}});
    if (!samples->empty())
        measured["ring_fit"] = {{"latency_seconds", fit.latencySeconds},
                                {"bytes_per_second", fit.bytesPerSecond},
                                {"r2", fit.r2},
                                {"ranks", ranks}};
    measured["collectives"] = how;
    measured["workers"] = ranks;
    cluster.measured = measured.dump();
    return cluster;
}

} // namespace shardscope::engine
