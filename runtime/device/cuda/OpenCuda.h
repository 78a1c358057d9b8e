// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "runtime/contract/Result.h"
#include "runtime/device/Device.h"

#include <cstdint>
#include <memory>
#include <string>

namespace shardscope::engine {

/// What was found where a GPU was looked for. Kept apart from the looking, so that every answer can be tested.
struct CudaProbe {
    bool built = true;     ///< this program has CUDA kernels at all
    int driverVersion = 0; ///< of CUDA that the driver serves, 1000 major + 10 minor; 0: no driver
    int neededVersion = 0; ///< of the runtime that this program is built with
    int devices = 0;
    std::string failure;          ///< what the runtime says where nothing else explains it
    int ordinal = 0;              ///< the device that is wanted
    std::string name;             ///< of it
    int architecture = 0;         ///< of it: 90 for compute capability 9.0
    bool hasKernels = true;       ///< the program's kernels can be run, or compiled, for it
    std::string builtFor;         ///< "80, 86, 89, 90, 100"
    std::int64_t freeBytes = 0;   ///< of its memory
    std::int64_t neededBytes = 0; ///< 0: not known yet
};
/// One sentence that says why there is no training on that device; success where there is. Errors: RunFailed.
contract::Result<void> judgeCuda(const CudaProbe& probe);

enum class ProbeDepth {
    Present, ///< what is there, without a context, which would take memory on the GPU as long as the process lives
    Usable,  ///< also whether it can be used, and its free memory
};
/// Looks for the device of a rank with this place on its machine; several ranks share one where there are fewer.
CudaProbe probeCuda(int localRank, ProbeDepth depth);
/// Whether this machine has what --device cuda needs. Errors: RunFailed, see judgeCuda().
contract::Result<void> checkCuda();
/// Opens the device of a rank. `timeoutSeconds`: of one wait for the device. Errors: RunFailed.
contract::Result<std::unique_ptr<Device>> openCuda(int localRank, double timeoutSeconds);

} // namespace shardscope::engine
