// SPDX-License-Identifier: GPL-3.0-or-later
// In every build, with CUDA or without.
#include "runtime/contract/Bytes.h"
#include "runtime/device/cuda/OpenCuda.h"

#include <fmt/format.h>

namespace shardscope::engine {

namespace {

std::string version(int number) {
    return fmt::format("{}.{}", number / 1000, number % 1000 / 10);
}

} // namespace

contract::Result<void> judgeCuda(const CudaProbe& probe) {
    const auto refuse = [](const std::string& why) { return contract::runFailed("--device cuda: " + why); };
    if (!probe.built)
        return refuse("this program was built without CUDA; run it with --device cpu");
    if (probe.driverVersion == 0)
        return refuse("there is no NVIDIA driver on this machine; run it with --device cpu");
    if (probe.driverVersion < probe.neededVersion)
        return refuse(fmt::format("the NVIDIA driver serves CUDA {}; this program needs {}: a newer driver is right",
                                  version(probe.driverVersion), version(probe.neededVersion)));
    if (probe.devices == 0 && !probe.failure.empty())
        return refuse(fmt::format("the driver shows no GPU: {}", probe.failure));
    if (probe.devices == 0)
        return refuse("this machine has no GPU that CUDA can use (or CUDA_VISIBLE_DEVICES hides it)");
    if (!probe.hasKernels)
        return refuse(fmt::format("GPU {} ({}) has compute capability {}.{}; this program has kernels for {}",
                                  probe.ordinal, probe.name, probe.architecture / 10, probe.architecture % 10,
                                  probe.builtFor));
    if (!probe.failure.empty())
        return refuse(fmt::format("GPU {} ({}) cannot be used: {}", probe.ordinal, probe.name, probe.failure));
    if (probe.neededBytes > probe.freeBytes)
        return refuse(fmt::format("GPU {} ({}) has {} ({} bytes) free; the plan needs {} ({} bytes)", probe.ordinal,
                                  probe.name, contract::describeBytes(probe.freeBytes), probe.freeBytes,
                                  contract::describeBytes(probe.neededBytes), probe.neededBytes));
    return {};
}

contract::Result<void> checkCuda() {
    return judgeCuda(probeCuda(0, ProbeDepth::Present));
}

} // namespace shardscope::engine
