// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "runtime/device/cuda/CudnnAttention.h"
#include "runtime/device/cuda/Matmul.h"

#include <functional>
#include <memory>
#include <optional>

namespace shardscope::engine::cuda {

/// What the kernels have of the device besides its arenas. `memory` holds kKernelMemoryBytes.
struct KernelContext {
    cudaStream_t stream = nullptr;
    std::byte* memory = nullptr;
    /// Waits for the stream. Errors: RunFailed.
    std::function<contract::Result<void>()> wait;
    /// Device memory that stays. Errors: RunFailed.
    std::function<contract::Result<std::byte*>(std::int64_t bytes)> allocate;
    /// Remembers the first failure of a call that cannot return one.
    std::function<void(const contract::Error&)> fail;
};
constexpr std::int64_t kKernelMemoryBytes = 8192;

/// The operations on a GPU: shared kernels, matrix products through cuBLASLt, attention through cuDNN where there is
/// one
/// (`attention` may be null) and it takes the shape.
std::unique_ptr<Kernels> makeKernels(KernelContext context, Matmul& matmul, CudnnAttention* attention);

/// What copies of the communication stream do besides copying.
void addElements(cudaStream_t stream, Elements into, ConstElements from, std::int64_t count);
/// Whether the kernels of this program can be run on the current device: in its own code or compiled from PTX.
bool canRunKernels(std::string& why);

} // namespace shardscope::engine::cuda
