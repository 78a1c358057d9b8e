// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "runtime/contract/Cluster.h"
#include "runtime/contract/Result.h"
#include "runtime/device/Device.h"
#include "runtime/launch/Measure.h"
#include "runtime/launch/MeasureRing.h"

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

namespace shardscope::engine {

struct ProductShape {
    std::int64_t rows = 0, outputs = 0, inputs = 0;
};
/// What one device does per second.
struct DeviceRates {
    std::vector<double> flopsFp32, flopsBf16; ///< by shape
    double memoryBandwidth = 0;               ///< bytes, read and written
};

/// Times matrix products of these shapes and a pass over `bytes` of memory, each for about `seconds`.
/// Errors: RunFailed when the device fails or has too little memory.
contract::Result<DeviceRates> measureDevice(Device& device, const std::vector<ProductShape>& shapes, std::int64_t bytes,
                                            double seconds);

/// Makes the device of a rank.
using DeviceOpener = std::function<contract::Result<std::unique_ptr<Device>>(int rank)>;
/// One ring step of an all-gather between devices, by message size up to `largest` bytes; empty for one rank. `how` is
/// told how they travel. Errors: RunFailed.
contract::Result<std::vector<LinkSample>> measureDeviceLinks(int ranks, std::int64_t largest, const DeviceOpener& open,
                                                             std::string& how);

/// `measure --device cuda`: the GPUs of this machine. Errors: RunFailed where there are none.
contract::Result<contract::Cluster> measureGpus(std::int64_t workers);

} // namespace shardscope::engine
