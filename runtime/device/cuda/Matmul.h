// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "runtime/device/cuda/Product.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <cuda_runtime_api.h>
#include <memory>

namespace shardscope::engine::cuda {

/// Matrix products through cuBLASLt. Algorithms are chosen at the first product of each shape; after that nothing is
/// allocated.
class Matmul {
public:
    /// `workspace` is device memory that stays. Errors: RunFailed where the library is missing or fails.
    static contract::Result<std::unique_ptr<Matmul>> create(cudaStream_t stream, std::byte* workspace,
                                                            std::int64_t workspaceBytes);
    ~Matmul();

    /// False where the library has no algorithm for this product. Errors: RunFailed.
    contract::Result<bool> run(const Product& product);

private:
    Matmul();
    struct Implementation;
    std::unique_ptr<Implementation> m_implementation;
};

} // namespace shardscope::engine::cuda
