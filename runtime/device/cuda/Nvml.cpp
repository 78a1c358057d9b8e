// SPDX-License-Identifier: GPL-3.0-or-later
#include "runtime/device/cuda/Nvml.h"

#include "runtime/device/cuda/Library.h"

#include <array>
#include <unistd.h>

namespace shardscope::engine::cuda {

namespace {

// As in nvml.h, which comes with no toolkit package: layouts of the versions that the functions are named after.
struct MemoryInfo {
    unsigned long long total, free, used;
};
struct ProcessInfo {
    unsigned pid;
    unsigned long long usedBytes;
    unsigned gpuInstance, computeInstance;
};
constexpr unsigned long long kNotAvailable = ~0ULL;

struct Functions {
    int (*initialize)() = nullptr;
    int (*handleOf)(const char*, void**) = nullptr;
    int (*memoryOf)(void*, MemoryInfo*) = nullptr;
    int (*processesOf)(void*, unsigned*, ProcessInfo*) = nullptr;
    bool works = false;
};

const Functions& functions() {
    static const Functions kFunctions = [] {
        Functions f;
        const auto library = Library::load({"libnvidia-ml.so.1"});
        if (!library)
            return f;
        f.works = library->resolve(f.initialize, "nvmlInit_v2") &&
                  library->resolve(f.handleOf, "nvmlDeviceGetHandleByPciBusId_v2") &&
                  library->resolve(f.memoryOf, "nvmlDeviceGetMemoryInfo") && f.initialize() == 0;
        if (!library->resolve(f.processesOf, "nvmlDeviceGetComputeRunningProcesses_v3"))
            f.processesOf = nullptr;
        return f;
    }();
    return kFunctions;
}

} // namespace

Nvml::Nvml(const std::string& pciAddress) {
    const Functions& f = functions();
    if (f.works && f.handleOf(pciAddress.c_str(), &m_device) != 0)
        m_device = nullptr;
}

std::optional<std::int64_t> Nvml::usedBytes() const {
    MemoryInfo memory{};
    if (m_device == nullptr || functions().memoryOf(m_device, &memory) != 0)
        return std::nullopt;
    return static_cast<std::int64_t>(memory.used);
}

std::optional<std::int64_t> Nvml::ownBytes() const {
    std::array<ProcessInfo, 128> processes{};
    auto count = static_cast<unsigned>(processes.size());
    if (m_device == nullptr || functions().processesOf == nullptr ||
        functions().processesOf(m_device, &count, processes.data()) != 0)
        return std::nullopt;
    for (unsigned i = 0; i < count && i < processes.size(); ++i)
        if (processes[i].pid == static_cast<unsigned>(getpid()) && processes[i].usedBytes != kNotAvailable)
            return static_cast<std::int64_t>(processes[i].usedBytes);
    return std::nullopt;
}

} // namespace shardscope::engine::cuda
