// SPDX-License-Identifier: GPL-3.0-or-later
// Stands in where no CUDA Toolkit was found.
#include "runtime/device/cuda/OpenCuda.h"

namespace shardscope::engine {

CudaProbe probeCuda(int localRank, ProbeDepth) {
    CudaProbe probe;
    probe.built = false;
    probe.ordinal = localRank;
    return probe;
}

contract::Result<std::unique_ptr<Device>> openCuda(int localRank, double) {
    return tl::unexpected(judgeCuda(probeCuda(localRank, ProbeDepth::Present)).error());
}

} // namespace shardscope::engine
