// SPDX-License-Identifier: GPL-3.0-or-later
#include "planner/cluster/Gpus.h"

#include <array>
#include <dlfcn.h>
#include <memory>

namespace shardscope::planner {

namespace {

// The part of nvml.h that is used here; the library keeps these stable.
using NvmlDevice = struct NvmlDeviceOpaque*;
struct NvmlMemory {
    unsigned long long total, free, used;
};
constexpr int kNvmlSuccess = 0;
constexpr int kClockSm = 1;
constexpr int kClockMemory = 2;
constexpr unsigned kMaximumNvlinks = 18;

class Nvml {
public:
    Nvml() : m_library(::dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL)) {
        const auto init = function<int()>("nvmlInit_v2");
        m_ready = init && init() == kNvmlSuccess;
    }
    ~Nvml() {
        if (const auto shutdown = function<int()>("nvmlShutdown"); m_ready && shutdown)
            shutdown();
        if (m_library)
            ::dlclose(m_library);
    }
    Nvml(const Nvml&) = delete;
    Nvml& operator=(const Nvml&) = delete;

    bool ready() const { return m_ready; }
    /// A function of the library, or null where this version of it has none.
    template<typename Signature> Signature* function(const char* name) const {
        return m_library ? reinterpret_cast<Signature*>(::dlsym(m_library, name)) : nullptr;
    }
    /// Calls `name(device, arguments...)`; false where it does not exist or fails.
    template<typename... Arguments> bool ask(const char* name, NvmlDevice device, Arguments... arguments) const {
        const auto call = function<int(NvmlDevice, Arguments...)>(name);
        return call && call(device, arguments...) == kNvmlSuccess;
    }

private:
    void* m_library;
    bool m_ready = false;
};

Gpu describe(const Nvml& nvml, NvmlDevice device) {
    Gpu gpu;
    std::array<char, 96> name{};
    if (nvml.ask("nvmlDeviceGetName", device, name.data(), static_cast<unsigned>(name.size() - 1)))
        gpu.name = name.data();
    NvmlMemory memory{};
    if (nvml.ask("nvmlDeviceGetMemoryInfo", device, &memory)) {
        gpu.memoryBytes = static_cast<std::int64_t>(memory.total);
        gpu.usedBytes = static_cast<std::int64_t>(memory.used);
    }
    nvml.ask("nvmlDeviceGetCudaComputeCapability", device, &gpu.computeMajor, &gpu.computeMinor);
    unsigned value = 0;
    if (nvml.ask("nvmlDeviceGetNumGpuCores", device, &value))
        gpu.cores = value;
    if (nvml.ask("nvmlDeviceGetMaxClockInfo", device, kClockSm, &value))
        gpu.clockHertz = value * 1e6;
    unsigned busBits = 0;
    if (nvml.ask("nvmlDeviceGetMaxClockInfo", device, kClockMemory, &value) &&
        nvml.ask("nvmlDeviceGetMemoryBusWidth", device, &busBits))
        gpu.memoryBandwidth = value * 1e6 * 2 * busBits / 8; // two transfers a clock
    if (nvml.ask("nvmlDeviceGetMaxPcieLinkGeneration", device, &value))
        gpu.pcieGeneration = static_cast<int>(value);
    if (nvml.ask("nvmlDeviceGetMaxPcieLinkWidth", device, &value))
        gpu.pcieWidth = static_cast<int>(value);
    for (unsigned link = 0; link < kMaximumNvlinks; ++link) {
        int active = 0;
        if (!nvml.ask("nvmlDeviceGetNvLinkState", device, link, &active) || active != 1)
            continue;
        ++gpu.nvlinks;
        if (nvml.ask("nvmlDeviceGetNvLinkVersion", device, link, &value))
            gpu.nvlinkVersion = static_cast<int>(value);
    }
    return gpu;
}

} // namespace

std::vector<Gpu> detectGpus() {
    std::vector<Gpu> gpus;
    const Nvml nvml;
    unsigned count = 0;
    const auto countDevices = nvml.function<int(unsigned*)>("nvmlDeviceGetCount_v2");
    const auto open = nvml.function<int(unsigned, NvmlDevice*)>("nvmlDeviceGetHandleByIndex_v2");
    if (!nvml.ready() || !countDevices || !open || countDevices(&count) != kNvmlSuccess)
        return gpus;
    for (unsigned i = 0; i < count; ++i) {
        NvmlDevice device = nullptr;
        if (open(i, &device) != kNvmlSuccess)
            continue;
        Gpu gpu = describe(nvml, device);
        if (gpu.memoryBytes > 0)
            gpus.push_back(std::move(gpu));
    }
    return gpus;
}

} // namespace shardscope::planner
