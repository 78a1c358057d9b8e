// SPDX-License-Identifier: GPL-3.0-or-later
#include "runtime/device/cuda/CudaDevice.h"

#include "runtime/collective/Collectives.h"
#include "runtime/contract/Bytes.h"
#include "runtime/device/cuda/NcclCollectives.h"
#include "runtime/device/cuda/OpenCuda.h"
#include "runtime/ops/shared/Portable.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <thread>

namespace shardscope::engine::cuda {

namespace {

// What NVIDIA advises for Hopper; smaller GPUs are content with less.
constexpr std::int64_t kWorkspaceBytes = 32 << 20;

std::string pciAddressOf(int ordinal) {
    char text[32] = {};
    return cudaDeviceGetPCIBusId(text, sizeof text, ordinal) == cudaSuccess ? text : "";
}

/// Our streams do not wait for the default one, on which this runs: it is done when the call returns.
cudaError_t clearNow(void* memory, std::int64_t bytes) {
    const cudaError_t status = cudaMemset(memory, 0, static_cast<std::size_t>(bytes));
    return status == cudaSuccess ? cudaDeviceSynchronize() : status;
}

} // namespace

CudaDevice::CudaDevice(int ordinal, std::string name, std::string pciAddress, double timeoutSeconds)
    : m_ordinal(ordinal), m_name(std::move(name)), m_pciAddress(std::move(pciAddress)),
      m_timeoutSeconds(timeoutSeconds), m_nvml(m_pciAddress), m_usedBefore(m_nvml.usedBytes()) {}

contract::Result<std::unique_ptr<Device>> CudaDevice::open(int ordinal, std::string name, double timeoutSeconds) {
    std::unique_ptr<CudaDevice> device(new CudaDevice(ordinal, std::move(name), pciAddressOf(ordinal), timeoutSeconds));
    if (auto started = device->start(); !started)
        return tl::unexpected(started.error());
    return std::unique_ptr<Device>(std::move(device));
}

contract::Result<void> CudaDevice::start() {
    use();
    check(cudaStreamCreateWithFlags(&m_compute, cudaStreamNonBlocking), "the compute stream");
    check(cudaStreamCreateWithFlags(&m_lane, cudaStreamNonBlocking), "the communication stream");
    check(cudaEventCreateWithFlags(&m_reached, cudaEventDisableTiming), "an event");
    m_computed.resize(kEvents);
    m_done.resize(kEvents);
    m_stalls.resize(kEvents);
    for (std::size_t i = 0; i < kEvents; ++i) {
        check(cudaEventCreateWithFlags(&m_computed[i], cudaEventDisableTiming), "an event");
        check(cudaEventCreateWithFlags(&m_done[i], cudaEventDisableTiming), "an event");
        check(cudaEventCreate(&m_stalls[i].begin), "an event");
        check(cudaEventCreate(&m_stalls[i].end), "an event");
    }
    for (Pinned& pinned : m_pinned)
        check(cudaEventCreateWithFlags(&pinned.copied, cudaEventDisableTiming), "an event");
    if (m_failure)
        return tl::unexpected(*m_failure);
    const auto workspace = allocateRaw(kWorkspaceBytes);
    if (!workspace)
        return tl::unexpected(workspace.error());
    auto matmul = Matmul::create(m_compute, *workspace, kWorkspaceBytes);
    if (!matmul)
        return contract::runFailed("--device cuda: " + matmul.error().message);
    m_matmul = std::move(*matmul);
    KernelContext context;
    context.stream = m_compute;
    const auto memory = allocateRaw(kKernelMemoryBytes);
    if (!memory)
        return tl::unexpected(memory.error());
    context.memory = *memory;
    context.wait = [this] { return synchronize(); };
    context.allocate = [this](std::int64_t bytes) { return allocateRaw(bytes); };
    context.fail = [this](const contract::Error& error) { fail(error); };
    m_attention = CudnnAttention::open(m_compute, context.allocate, m_whyNoCudnn);
    m_kernels = makeKernels(std::move(context), *m_matmul, m_attention.get());
    m_kernels->clearSums();
    return synchronize();
}

CudaDevice::~CudaDevice() {
    use();
    m_kernels.reset();
    m_attention.reset();
    m_matmul.reset();
    for (std::byte* const memory : m_own)
        cudaFree(memory);
    for (std::size_t i = 0; i < m_stalls.size(); ++i)
        for (const cudaEvent_t event : {m_computed[i], m_done[i], m_stalls[i].begin, m_stalls[i].end})
            if (event != nullptr)
                cudaEventDestroy(event);
    for (const Pinned& pinned : m_pinned) {
        cudaFreeHost(pinned.memory);
        if (pinned.copied != nullptr)
            cudaEventDestroy(pinned.copied);
    }
    if (m_reached != nullptr)
        cudaEventDestroy(m_reached);
    for (const cudaStream_t stream : {m_compute, m_lane})
        if (stream != nullptr)
            cudaStreamDestroy(stream);
}

void CudaDevice::use() {
    check(cudaSetDevice(m_ordinal), "choosing the GPU");
}

void CudaDevice::fail(const contract::Error& error) {
    const std::lock_guard lock(m_mutex);
    if (!m_failure)
        m_failure = error;
}

bool CudaDevice::check(cudaError_t status, const char* what) {
    if (status == cudaSuccess)
        return true;
    fail({contract::ErrorKind::RunFailed,
          fmt::format("GPU {} ({}): {}: {}", m_ordinal, m_name, what, cudaGetErrorString(status))});
    return false;
}

contract::Result<std::byte*> CudaDevice::allocateRaw(std::int64_t bytes) {
    use();
    void* memory = nullptr;
    if (cudaMalloc(&memory, static_cast<std::size_t>(bytes)) != cudaSuccess)
        return contract::runFailed(fmt::format("GPU {} ({}) has no {} left for what the plan does not count", m_ordinal,
                                               m_name, contract::describeBytes(bytes)));
    m_own.push_back(static_cast<std::byte*>(memory));
    if (const cudaError_t status = clearNow(memory, bytes); status != cudaSuccess)
        return contract::runFailed(fmt::format("GPU {}: {}", m_ordinal, cudaGetErrorString(status)));
    return static_cast<std::byte*>(memory);
}

contract::Result<std::byte*> CudaDevice::allocate(std::int64_t bytes, std::string_view what) {
    use();
    std::size_t free = 0;
    std::size_t total = 0;
    cudaMemGetInfo(&free, &total);
    CudaProbe probe;
    probe.driverVersion = probe.neededVersion = CUDART_VERSION;
    probe.devices = 1;
    probe.ordinal = m_ordinal;
    probe.name = m_name;
    probe.freeBytes = static_cast<std::int64_t>(free);
    probe.neededBytes = bytes;
    if (auto judged = judgeCuda(probe); !judged)
        return tl::unexpected(judged.error());
    void* memory = nullptr;
    cudaError_t status = cudaMalloc(&memory, static_cast<std::size_t>(bytes));
    if (status == cudaSuccess)
        status = clearNow(memory, bytes);
    if (status != cudaSuccess)
        return contract::runFailed(fmt::format("GPU {} ({}): {} for {}: {}", m_ordinal, m_name,
                                               contract::describeBytes(bytes), what, cudaGetErrorString(status)));
    m_arenaBytes += bytes;
    return static_cast<std::byte*>(memory);
}

void CudaDevice::release(std::byte* memory, std::int64_t bytes) {
    use();
    cudaStreamSynchronize(m_compute);
    cudaStreamSynchronize(m_lane);
    check(cudaFree(memory), "giving memory back");
    m_arenaBytes -= bytes;
}

std::int64_t CudaDevice::contextBytes() const {
    if (const auto own = m_nvml.ownBytes())
        return std::max<std::int64_t>(0, *own - m_arenaBytes);
    const auto used = m_nvml.usedBytes();
    if (used && m_usedBefore)
        return std::max<std::int64_t>(0, *used - *m_usedBefore - m_arenaBytes);
    return 0; // not known
}

std::function<contract::DeviceEvent()> CudaDevice::statusReader() const {
    if (!m_nvml.works())
        return {};
    return [nvml = std::make_shared<Nvml>(m_pciAddress)] { return nvml->read(); };
}

void CudaDevice::copyIn(cudaStream_t stream, Elements to, const float* from, std::int64_t count) {
    use();
    std::vector<shared::BFloat16> narrow;
    const void* source = from;
    if (to.type == ElementType::BFloat16) {
        narrow.resize(static_cast<std::size_t>(count));
        std::transform(from, from + count, narrow.begin(), shared::roundToNearest);
        source = narrow.data();
    }
    const auto bytes = static_cast<std::size_t>(count * elementBytes(to.type));
    if (check(cudaMemcpyAsync(to.at, source, bytes, cudaMemcpyHostToDevice, stream), "a copy to the GPU"))
        check(cudaStreamSynchronize(stream), "a copy to the GPU"); // the source may change now
}

void CudaDevice::copyOut(cudaStream_t stream, float* to, ConstElements from, std::int64_t count) {
    use();
    std::vector<shared::BFloat16> narrow(from.type == ElementType::BFloat16 ? static_cast<std::size_t>(count) : 0);
    void* const target = narrow.empty() ? static_cast<void*>(to) : narrow.data();
    const auto bytes = static_cast<std::size_t>(count * elementBytes(from.type));
    if (check(cudaMemcpyAsync(target, from.at, bytes, cudaMemcpyDeviceToHost, stream), "a copy from the GPU"))
        check(cudaStreamSynchronize(stream), "a copy from the GPU");
    for (std::size_t i = 0; i < narrow.size(); ++i)
        to[i] = shared::load(&narrow[i]);
}

void CudaDevice::uploadBytes(void* to, const void* from, std::int64_t bytes) {
    use();
    // A copy from memory that is not pinned would wait for everything before it.
    Pinned& pinned = m_pinned[m_nextPinned++ % m_pinned.size()];
    check(cudaEventSynchronize(pinned.copied), "a copy to the GPU");
    if (pinned.bytes < bytes) {
        check(cudaFreeHost(pinned.memory), "pinned memory");
        pinned = {nullptr, 0, pinned.copied};
        if (!check(cudaMallocHost(&pinned.memory, static_cast<std::size_t>(bytes)), "pinned memory"))
            return;
        pinned.bytes = bytes;
    }
    std::memcpy(pinned.memory, from, static_cast<std::size_t>(bytes));
    check(cudaMemcpyAsync(to, pinned.memory, static_cast<std::size_t>(bytes), cudaMemcpyHostToDevice, m_compute),
          "a copy to the GPU");
    check(cudaEventRecord(pinned.copied, m_compute), "an event");
}

void CudaDevice::clearBytes(std::byte* memory, std::int64_t bytes) {
    use();
    if (bytes > 0)
        check(cudaMemsetAsync(memory, 0, static_cast<std::size_t>(bytes), m_compute), "clearing memory");
}

void CudaDevice::jobFollowsCompute(Job job) {
    check(cudaEventRecord(m_computed[slotOf(job)], m_compute), "an event");
}
void CudaDevice::jobBegins(Job job) {
    use();
    check(cudaStreamWaitEvent(m_lane, m_computed[slotOf(job)], 0), "an event");
}
void CudaDevice::jobEnds(Job job) {
    check(cudaEventRecord(m_done[slotOf(job)], m_lane), "an event");
}

void CudaDevice::computeFollowsJob(Job job) {
    if (job <= m_followed)
        return; // jobs end in order
    m_followed = job;
    const bool measured = m_stallCount < m_stalls.size();
    if (measured)
        check(cudaEventRecord(m_stalls[m_stallCount].begin, m_compute), "an event");
    check(cudaStreamWaitEvent(m_compute, m_done[slotOf(job)], 0), "an event");
    if (measured)
        check(cudaEventRecord(m_stalls[m_stallCount++].end, m_compute), "an event");
}

double CudaDevice::takeStalledSeconds() {
    double seconds = 0;
    for (std::size_t i = 0; i < m_stallCount; ++i) {
        float milliseconds = 0;
        if (cudaEventElapsedTime(&milliseconds, m_stalls[i].begin, m_stalls[i].end) == cudaSuccess)
            seconds += static_cast<double>(milliseconds) * 1e-3;
    }
    m_stallCount = 0;
    return seconds;
}

/// Looks again and again instead of waiting inside the driver, since a collective whose peer is gone never ends:
/// whoever watches it notices, or the watchdog of the run does.
contract::Result<void> CudaDevice::synchronize() {
    use();
    if (check(cudaEventRecord(m_reached, m_compute), "an event")) {
        cudaError_t status = cudaErrorNotReady;
        while ((status = cudaEventQuery(m_reached)) == cudaErrorNotReady) {
            std::vector<CollectiveWatch*> watched;
            {
                const std::lock_guard lock(m_mutex);
                watched = m_watched;
            }
            for (CollectiveWatch* const collectives : watched)
                if (auto fine = collectives->check(); !fine)
                    return fine;
            std::this_thread::sleep_for(std::chrono::microseconds(20));
        }
        check(status, "computing");
        check(cudaGetLastError(), "starting a kernel");
    }
    const std::lock_guard lock(m_mutex);
    if (m_failure)
        return tl::unexpected(*m_failure);
    return {};
}

void CudaDevice::copyOnLane(Elements to, ConstElements from, std::int64_t count) {
    check(cudaMemcpyAsync(to.at, from.at, static_cast<std::size_t>(count * elementBytes(to.type)),
                          cudaMemcpyDeviceToDevice, m_lane),
          "a copy");
}

void CudaDevice::addOnLane(Elements into, ConstElements from, std::int64_t count) {
    addElements(m_lane, into, from, count);
}

void CudaDevice::watch(CollectiveWatch* collectives) {
    const std::lock_guard lock(m_mutex);
    m_watched.push_back(collectives);
}
void CudaDevice::unwatch(CollectiveWatch* collectives) {
    const std::lock_guard lock(m_mutex);
    std::erase(m_watched, collectives);
}

contract::Result<std::unique_ptr<Collectives>> CudaDevice::connect(Group& group, const RingMembers& members,
                                                                   std::string& why) {
    return connectNccl(*this, group, members, m_pciAddress, m_timeoutSeconds, why);
}

} // namespace shardscope::engine::cuda

namespace shardscope::engine {

CudaProbe probeCuda(int localRank, ProbeDepth depth) {
    CudaProbe probe;
    probe.neededVersion = CUDART_VERSION;
    probe.builtFor = SHARDSCOPE_CUDA_BUILT_FOR;
    cudaDriverGetVersion(&probe.driverVersion);
    if (probe.driverVersion == 0 || probe.driverVersion < probe.neededVersion)
        return probe;
    if (const cudaError_t status = cudaGetDeviceCount(&probe.devices); status != cudaSuccess) {
        probe.devices = 0;
        if (status != cudaErrorNoDevice)
            probe.failure = cudaGetErrorString(status);
        return probe;
    }
    if (probe.devices == 0)
        return probe;
    probe.ordinal = localRank % probe.devices;
    cudaDeviceProp properties{};
    cudaError_t status = cudaGetDeviceProperties(&properties, probe.ordinal);
    if (status == cudaSuccess) {
        probe.name = properties.name;
        probe.architecture = properties.major * 10 + properties.minor;
        if (depth == ProbeDepth::Present)
            return probe;
        status = cudaSetDevice(probe.ordinal);
    }
    std::size_t free = 0;
    std::size_t total = 0;
    if (status == cudaSuccess)
        status = cudaMemGetInfo(&free, &total);
    probe.freeBytes = static_cast<std::int64_t>(free);
    if (status != cudaSuccess) {
        probe.failure = cudaGetErrorString(status);
        return probe;
    }
    std::string why;
    probe.hasKernels = cuda::canRunKernels(why);
    return probe;
}

contract::Result<std::unique_ptr<Device>> openCuda(int localRank, double timeoutSeconds) {
    const CudaProbe probe = probeCuda(localRank, ProbeDepth::Usable);
    if (auto judged = judgeCuda(probe); !judged)
        return tl::unexpected(judged.error());
    return cuda::CudaDevice::open(probe.ordinal, probe.name, timeoutSeconds);
}

} // namespace shardscope::engine
