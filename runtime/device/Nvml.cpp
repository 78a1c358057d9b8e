// SPDX-License-Identifier: GPL-3.0-or-later
#include "runtime/device/Nvml.h"

#include "runtime/device/Library.h"

#include <algorithm>
#include <array>
#include <climits>
#include <cstdlib>
#include <unistd.h>
#include <utility>

namespace shardscope::engine {

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
struct Utilization {
    unsigned gpu, memory; ///< percent of the last sampling period in which kernels ran, or memory was in use
};
struct FieldValue {
    unsigned field, scope;
    long long timestamp, latency;
    unsigned type;
    int status;
    union {
        unsigned long long number;
        double real;
    } value;
};
constexpr unsigned long long kNotAvailable = ~0ULL;
constexpr int kCoreTemperature = 0;
constexpr int kPcieSent = 0, kPcieReceived = 1;
constexpr unsigned kNvlinkSent = 138, kNvlinkReceived = 139; ///< KiB of data, without protocol
constexpr unsigned kAllLinks = UINT_MAX;
constexpr unsigned kUnsignedLongLong = 3;

} // namespace

struct NvmlLibrary::Functions {
    int (*initialize)() = nullptr;
    int (*handleOf)(const char*, void**) = nullptr;
    int (*memoryOf)(void*, MemoryInfo*) = nullptr;
    // Null where this version of the library does not have them.
    int (*processesOf)(void*, unsigned*, ProcessInfo*) = nullptr;
    int (*utilizationOf)(void*, Utilization*) = nullptr;
    int (*powerOf)(void*, unsigned*) = nullptr; ///< milliwatts
    int (*temperatureOf)(void*, int, unsigned*) = nullptr;
    int (*pcieOf)(void*, int, unsigned*) = nullptr; ///< KB/s
    int (*fieldsOf)(void*, int, FieldValue*) = nullptr;
};

NvmlLibrary::NvmlLibrary(const std::string& file) {
    const auto library = Library::load({file});
    if (!library)
        return;
    auto f = std::make_unique<Functions>();
    if (!library->resolve(f->initialize, "nvmlInit_v2") ||
        !library->resolve(f->handleOf, "nvmlDeviceGetHandleByPciBusId_v2") ||
        !library->resolve(f->memoryOf, "nvmlDeviceGetMemoryInfo") || f->initialize() != 0)
        return;
    const auto find = [&](auto*& function, const char* symbol) {
        if (!library->resolve(function, symbol))
            function = nullptr;
    };
    find(f->processesOf, "nvmlDeviceGetComputeRunningProcesses_v3");
    find(f->utilizationOf, "nvmlDeviceGetUtilizationRates");
    find(f->powerOf, "nvmlDeviceGetPowerUsage");
    find(f->temperatureOf, "nvmlDeviceGetTemperature");
    find(f->pcieOf, "nvmlDeviceGetPcieThroughput");
    find(f->fieldsOf, "nvmlDeviceGetFieldValues");
    m_functions = std::move(f);
}

NvmlLibrary::~NvmlLibrary() = default;

std::shared_ptr<const NvmlLibrary> NvmlLibrary::ofThisMachine() {
    static const std::shared_ptr<const NvmlLibrary> kLibrary = [] {
        const char* const named = std::getenv("SHARDSCOPE_NVML");
        return std::make_shared<const NvmlLibrary>(named != nullptr && *named != '\0' ? named : "libnvidia-ml.so.1");
    }();
    return kLibrary;
}

Nvml::Nvml(const std::string& pciAddress, std::shared_ptr<const NvmlLibrary> library) : m_library(std::move(library)) {
    if (m_library->m_functions && m_library->m_functions->handleOf(pciAddress.c_str(), &m_device) != 0)
        m_device = nullptr;
}

std::optional<std::int64_t> Nvml::usedBytes() const {
    MemoryInfo memory{};
    if (m_device == nullptr || m_library->m_functions->memoryOf(m_device, &memory) != 0)
        return std::nullopt;
    return static_cast<std::int64_t>(memory.used);
}

std::optional<std::int64_t> Nvml::ownBytes() const {
    std::array<ProcessInfo, 128> processes{};
    auto count = static_cast<unsigned>(processes.size());
    if (m_device == nullptr || m_library->m_functions->processesOf == nullptr ||
        m_library->m_functions->processesOf(m_device, &count, processes.data()) != 0)
        return std::nullopt;
    for (unsigned i = 0; i < count && i < processes.size(); ++i)
        if (processes[i].pid == static_cast<unsigned>(getpid()) && processes[i].usedBytes != kNotAvailable)
            return static_cast<std::int64_t>(processes[i].usedBytes);
    return std::nullopt;
}

std::optional<Nvml::Carried> Nvml::carried() const {
    std::array<FieldValue, 2> fields{};
    fields[0].field = kNvlinkSent;
    fields[1].field = kNvlinkReceived;
    fields[0].scope = fields[1].scope = kAllLinks;
    if (m_library->m_functions->fieldsOf == nullptr ||
        m_library->m_functions->fieldsOf(m_device, static_cast<int>(fields.size()), fields.data()) != 0)
        return std::nullopt;
    for (const FieldValue& field : fields)
        if (field.status != 0 || field.type != kUnsignedLongLong || field.value.number > (ULLONG_MAX >> 12))
            return std::nullopt;
    return Carried{static_cast<std::int64_t>(fields[0].value.number) * 1024,
                   static_cast<std::int64_t>(fields[1].value.number) * 1024, std::chrono::steady_clock::now()};
}

contract::DeviceEvent Nvml::read() {
    contract::DeviceEvent event;
    if (m_device == nullptr)
        return event;
    const NvmlLibrary::Functions& f = *m_library->m_functions;
    event.memoryUsed = usedBytes();
    if (Utilization busy{}; f.utilizationOf != nullptr && f.utilizationOf(m_device, &busy) == 0 && busy.gpu <= 100)
        event.utilization = busy.gpu / 100.0;
    unsigned value = 0;
    if (f.powerOf != nullptr && f.powerOf(m_device, &value) == 0)
        event.powerWatts = value / 1000.0;
    if (f.temperatureOf != nullptr && f.temperatureOf(m_device, kCoreTemperature, &value) == 0)
        event.temperatureCelsius = value;
    if (f.pcieOf != nullptr && f.pcieOf(m_device, kPcieReceived, &value) == 0)
        event.pcieReceived = value * 1000.0;
    if (f.pcieOf != nullptr && f.pcieOf(m_device, kPcieSent, &value) == 0)
        event.pcieSent = value * 1000.0;
    const auto now = carried();
    if (now && m_before && now->sent >= m_before->sent && now->received >= m_before->received) {
        const double seconds = std::max(1e-3, std::chrono::duration<double>(now->at - m_before->at).count());
        event.nvlinkReceived = static_cast<double>(now->received - m_before->received) / seconds;
        event.nvlinkSent = static_cast<double>(now->sent - m_before->sent) / seconds;
    }
    m_before = now;
    return event;
}

} // namespace shardscope::engine
