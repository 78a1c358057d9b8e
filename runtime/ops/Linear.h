// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <cstdint>

namespace shardscope::engine {

/// A rectangle of a row-major matrix: `stride` floats from one row to the next.
struct Matrix {
    float* data = nullptr;
    std::int64_t rows = 0;
    std::int64_t columns = 0;
    std::int64_t stride = 0;
};
struct ConstMatrix {
    const float* data = nullptr;
    std::int64_t rows = 0;
    std::int64_t columns = 0;
    std::int64_t stride = 0;
};

/// What a kernel does with what its destination holds.
/// Rows of a weight gradient that one call of BLAS computes.
inline constexpr std::int64_t kOuterRows = 4096;

enum class Write { Overwrite, Add };

/// c (M, N) = scale * a (M, K) b (N, K)^T
void multiplyTransposed(ConstMatrix a, ConstMatrix b, Matrix c, float scale, Write write);
/// c (M, N) = a (M, K) b (K, N)
void multiply(ConstMatrix a, ConstMatrix b, Matrix c, Write write);
/// c (M, N) = a (K, M)^T b (K, N)
void multiplyOuter(ConstMatrix a, ConstMatrix b, Matrix c, Write write);

/// y (T, O) = residual (T, O) + x (T, I) weight (O, I)^T + bias (O). `bias` may be null; `residual.data` too.
void linearForward(ConstMatrix x, const float* weight, const float* bias, ConstMatrix residual, Matrix y);
/// dx (T, I) = dy (T, O) weight (O, I)
void linearBackwardInput(ConstMatrix dy, const float* weight, Matrix dx, Write write);
/// dweight (O, I) = dy (T, O)^T x (T, I)
void linearBackwardWeight(ConstMatrix dy, ConstMatrix x, float* weightGradient, Write write);
/// dbias (O) = sum over rows of dy (T, O)
void linearBackwardBias(ConstMatrix dy, float* biasGradient, Write write);

/// One thread per process computes: ranks share the cores among themselves. Also makes BLAS take its buffers now.
void prepareBlas();

} // namespace shardscope::engine
