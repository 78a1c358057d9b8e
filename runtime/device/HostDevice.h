// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "runtime/device/Device.h"
#include "runtime/ops/HostKernels.h"

namespace shardscope::engine {

/// One CPU core, in float32.
class HostDevice final : public Device {
public:
    std::string name() const override;
    Kernels& kernels() override { return m_kernels; }
    bool isHostMemory() const override { return true; }
    /// Every page is written to, so that a machine that is out of memory says so now and not in the middle of a step.
    contract::Result<std::byte*> allocate(std::int64_t bytes, std::string_view what) override;
    void release(std::byte* memory, std::int64_t bytes) override;
    void upload(Elements to, const float* from, std::int64_t count) override;
    void download(float* to, ConstElements from, std::int64_t count) override;
    void uploadBytes(void* to, const void* from, std::int64_t bytes) override;
    void clearBytes(std::byte* memory, std::int64_t bytes) override;
    void copyOnLane(Elements to, ConstElements from, std::int64_t count) override;
    void addOnLane(Elements into, ConstElements from, std::int64_t count) override;
    void uploadOnLane(Elements to, const float* from, std::int64_t count) override { upload(to, from, count); }
    void downloadOnLane(float* to, ConstElements from, std::int64_t count) override { download(to, from, count); }

private:
    HostKernels m_kernels;
};

} // namespace shardscope::engine
