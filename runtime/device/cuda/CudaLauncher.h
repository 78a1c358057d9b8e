// SPDX-License-Identifier: GPL-3.0-or-later
// How shared kernel bodies are spread over a GPU. For .cu files only.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cuda_runtime.h>

namespace shardscope::engine::cuda {

constexpr unsigned kWholeWarp = 0xFFFFFFFFU;
constexpr int kWarp = 32;
constexpr int kRowThreads = 256;
constexpr int kWarpsPerBlock = 4;
constexpr int kColumnThreads = 32; ///< threads that share a column; as many columns lie beside each other in a block
constexpr std::int64_t kMostBlocks = 1 << 20;

struct Add {
    template<typename T> __device__ T operator()(T a, T b) const { return a + b; }
};
struct Larger {
    template<typename T> __device__ T operator()(T a, T b) const { return a > b ? a : b; }
};

/// The exchange is a butterfly of commutative operations: every lane ends with the same bits.
template<typename T, typename Fold> __device__ T foldWarp(T value, Fold fold) {
    for (int offset = kWarp / 2; offset > 0; offset /= 2)
        value = fold(value, __shfl_xor_sync(kWholeWarp, value, offset));
    return value;
}
/// Called by all threads of a block; the order of the operations is fixed.
template<typename T, typename Fold> __device__ T foldBlock(T value, Fold fold) {
    __shared__ T partial[kRowThreads / kWarp];
    value = foldWarp(value, fold);
    __syncthreads(); // whoever still reads what an earlier call left
    if (threadIdx.x % kWarp == 0)
        partial[threadIdx.x / kWarp] = value;
    __syncthreads();
    T result = partial[0];
    for (int i = 1; i < kRowThreads / kWarp; ++i)
        result = fold(result, partial[i]);
    return result;
}

// The members are __host__ __device__ because the bodies are; on the host they are never called.
#if defined(__CUDA_ARCH__)
#define SHARDSCOPE_ON_DEVICE(expression, otherwise) (expression)
#else
#define SHARDSCOPE_ON_DEVICE(expression, otherwise) (otherwise)
#endif

/// The threads of a block.
struct BlockTeam {
    static constexpr int kHeadDimsPerMember = 1;
    __host__ __device__ int rank() const { return SHARDSCOPE_ON_DEVICE(static_cast<int>(threadIdx.x), 0); }
    __host__ __device__ int size() const { return kRowThreads; }
    __host__ __device__ float sum(float value) const { return SHARDSCOPE_ON_DEVICE(foldBlock(value, Add{}), value); }
    __host__ __device__ double sum(double value) const { return SHARDSCOPE_ON_DEVICE(foldBlock(value, Add{}), value); }
    __host__ __device__ float maximum(float value) const {
        return SHARDSCOPE_ON_DEVICE(foldBlock(value, Larger{}), value);
    }
};

/// The lanes of a warp.
struct WarpTeam {
    static constexpr int kHeadDimsPerMember = 256 / kWarp;
    __host__ __device__ int rank() const { return SHARDSCOPE_ON_DEVICE(static_cast<int>(threadIdx.x) % kWarp, 0); }
    __host__ __device__ int size() const { return kWarp; }
    __host__ __device__ float sum(float value) const { return SHARDSCOPE_ON_DEVICE(foldWarp(value, Add{}), value); }
    __host__ __device__ float maximum(float value) const {
        return SHARDSCOPE_ON_DEVICE(foldWarp(value, Larger{}), value);
    }
    __host__ __device__ float from(float value, int member) const {
        return SHARDSCOPE_ON_DEVICE(__shfl_sync(kWholeWarp, value, member), (static_cast<void>(member), value));
    }
};

#if defined(__CUDA_ARCH__)
/// The sum over the threads of a block that have this thread's threadIdx.x, in their order.
__device__ inline float foldColumn(float value) {
    __shared__ float partial[kColumnThreads][kColumnThreads + 1];
    __syncthreads();
    partial[threadIdx.y][threadIdx.x] = value;
    __syncthreads();
    float sum = 0;
    for (int i = 0; i < kColumnThreads; ++i)
        sum += partial[i][threadIdx.x];
    return sum;
}
#endif

/// The threads of one column. Those beyond the last column go along, since all threads of a block must meet, but are
/// never rank 0, which alone writes.
struct ColumnTeam {
    static constexpr int kHeadDimsPerMember = 1;
    bool isColumn;
    __host__ __device__ int rank() const {
        return SHARDSCOPE_ON_DEVICE(static_cast<int>(threadIdx.y) + (isColumn ? 0 : kColumnThreads), 0);
    }
    __host__ __device__ int size() const { return kColumnThreads; }
    __host__ __device__ float sum(float value) const { return SHARDSCOPE_ON_DEVICE(foldColumn(value), value); }
};

template<typename F> __global__ void __launch_bounds__(kRowThreads) rowKernel(std::int64_t n, F f) {
    for (std::int64_t i = blockIdx.x; i < n; i += gridDim.x)
        f(BlockTeam{}, i);
}
template<typename F> __global__ void __launch_bounds__(kWarp* kWarpsPerBlock) warpKernel(std::int64_t n, F f) {
    const std::int64_t step = static_cast<std::int64_t>(gridDim.x) * kWarpsPerBlock;
    for (std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * kWarpsPerBlock + threadIdx.x / kWarp; i < n;
         i += step)
        f(WarpTeam{}, i);
}
template<typename F>
__global__ void __launch_bounds__(kColumnThreads* kColumnThreads) columnKernel(std::int64_t n, F f) {
    const std::int64_t column = static_cast<std::int64_t>(blockIdx.x) * kColumnThreads + threadIdx.x;
    f(ColumnTeam{column < n}, column < n ? column : n - 1);
}
template<typename F>
__global__ void __launch_bounds__(kRowThreads) matrixKernel(std::int64_t count, std::int64_t columns, F f) {
    const std::int64_t step = static_cast<std::int64_t>(gridDim.x) * kRowThreads;
    const bool isSmall = count <= 0x7FFFFFFF; // division of 32-bit numbers is several times as fast
    for (std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * kRowThreads + threadIdx.x; i < count; i += step) {
        const std::int64_t row =
            isSmall ? static_cast<std::uint32_t>(i) / static_cast<std::uint32_t>(columns) : i / columns;
        f(row, i - row * columns);
    }
}

/// See TypedKernels. A fault of a launch shows at the next wait for the device.
struct CudaLauncher {
    using RowTeam = BlockTeam;
    using WarpTeam = cuda::WarpTeam;
    using ColumnTeam = cuda::ColumnTeam;

    cudaStream_t stream;

    static unsigned blocks(std::int64_t n) { return static_cast<unsigned>(std::min(n, kMostBlocks)); }

    template<typename F> void rows(std::int64_t n, F f) const {
        if (n > 0)
            rowKernel<<<blocks(n), kRowThreads, 0, stream>>>(n, f);
    }
    template<typename F> void warps(std::int64_t n, F f) const {
        if (n > 0)
            warpKernel<<<blocks((n + kWarpsPerBlock - 1) / kWarpsPerBlock), kWarp * kWarpsPerBlock, 0, stream>>>(n, f);
    }
    template<typename F> void columns(std::int64_t n, F f) const {
        const dim3 threads(kColumnThreads, kColumnThreads);
        if (n > 0)
            columnKernel<<<static_cast<unsigned>((n + kColumnThreads - 1) / kColumnThreads), threads, 0, stream>>>(n,
                                                                                                                   f);
    }
    template<typename F> void matrix(std::int64_t rowCount, std::int64_t columnCount, F f) const {
        const std::int64_t count = rowCount * columnCount;
        if (count > 0)
            matrixKernel<<<blocks((count + kRowThreads - 1) / kRowThreads), kRowThreads, 0, stream>>>(count,
                                                                                                      columnCount, f);
    }
};

} // namespace shardscope::engine::cuda
