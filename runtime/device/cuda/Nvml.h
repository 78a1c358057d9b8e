// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace shardscope::engine::cuda {

/// What the driver's management library says of one GPU. Loaded when it is first asked; where it is missing, or does
/// not know, there is no answer.
class Nvml {
public:
    /// The GPU at a PCI address, "0000:65:00.0".
    explicit Nvml(const std::string& pciAddress);

    /// Memory in use by everybody.
    std::optional<std::int64_t> usedBytes() const;
    /// Memory in use by this process. Inside a container the library may know it by another number: then nothing.
    std::optional<std::int64_t> ownBytes() const;

private:
    void* m_device = nullptr;
};

} // namespace shardscope::engine::cuda
