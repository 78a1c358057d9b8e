// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "runtime/contract/Telemetry.h"

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

namespace shardscope::engine {

/// The driver's management library. Loaded when it is first asked for; where it is missing, broken or too old for a
/// question, there is no answer.
class NvmlLibrary {
public:
    /// `file`: "libnvidia-ml.so.1", or a path.
    explicit NvmlLibrary(const std::string& file);
    ~NvmlLibrary();
    NvmlLibrary(const NvmlLibrary&) = delete;
    NvmlLibrary& operator=(const NvmlLibrary&) = delete;

    /// The one of this machine; SHARDSCOPE_NVML names another file.
    static std::shared_ptr<const NvmlLibrary> ofThisMachine();

private:
    friend class Nvml;
    struct Functions;
    std::unique_ptr<Functions> m_functions; ///< null where it does not work
};

/// What the library says of one GPU.
class Nvml {
public:
    /// The GPU at a PCI address, "0000:65:00.0".
    explicit Nvml(const std::string& pciAddress,
                  std::shared_ptr<const NvmlLibrary> library = NvmlLibrary::ofThisMachine());

    /// Whether there is an answer to anything.
    bool works() const { return m_device != nullptr; }
    /// Memory in use by everybody.
    std::optional<std::int64_t> usedBytes() const;
    /// Memory in use by this process. Inside a container the library may know it by another number: then nothing.
    std::optional<std::int64_t> ownBytes() const;
    /// How the GPU is now; takes some 40 ms, in which the library counts PCIe's bytes. NVLink's rates are those since
    /// the reading before.
    contract::DeviceEvent read();

private:
    /// Data that NVLink has carried, in bytes since some time.
    struct Carried {
        std::int64_t sent = 0, received = 0;
        std::chrono::steady_clock::time_point at;
    };
    std::optional<Carried> carried() const;

    std::shared_ptr<const NvmlLibrary> m_library;
    void* m_device = nullptr;
    std::optional<Carried> m_before;
};

} // namespace shardscope::engine
