// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "runtime/contract/Result.h"
#include "runtime/ops/Kernels.h"

#include <cuda_runtime_api.h>
#include <functional>
#include <memory>
#include <string>

namespace shardscope::engine::cuda {

/// Causal attention through cuDNN's fused scaled dot-product attention (graph API). In bf16 only; what it does not take
/// is left to our own kernel. Graphs are built at the first call of each shape; after that nothing is allocated.
class CudnnAttention {
public:
    using Allocate = std::function<contract::Result<std::byte*>(std::int64_t bytes)>;
    /// Null where this program was built without cuDNN's headers or cuDNN cannot be loaded; `why` says which.
    static std::unique_ptr<CudnnAttention> open(cudaStream_t stream, Allocate allocate, std::string& why);
    virtual ~CudnnAttention() = default;

    /// False where cuDNN has no kernel for this shape on this GPU. Errors: RunFailed.
    virtual contract::Result<bool> forward(AttentionShape shape, const AttentionElements& rows, Elements output,
                                           Elements logsumexp) = 0;
    virtual contract::Result<bool> backward(AttentionShape shape, const AttentionElements& rows, ConstElements output,
                                            ConstElements logsumexp, ConstElements doutput,
                                            const AttentionGradients& gradients) = 0;
};

} // namespace shardscope::engine::cuda
