// SPDX-License-Identifier: GPL-3.0-or-later
#include "runtime/ops/Linear.h"

#include "runtime/ops/Vectorised.h"

#include <cblas.h>

#include <algorithm>
#include <cstring>
#include <vector>

namespace shardscope::engine {

namespace {

blasint blas(std::int64_t value) {
    return static_cast<blasint>(value);
}
float beta(Write write) {
    return write == Write::Add ? 1.0F : 0.0F;
}

SHARDSCOPE_VECTORISED
void addRow(const float* source, float* destination, std::int64_t columns) {
    for (std::int64_t c = 0; c < columns; ++c)
        destination[c] += source[c];
}

} // namespace

void multiplyTransposed(ConstMatrix a, ConstMatrix b, Matrix c, float scale, Write write) {
    if (c.rows == 0 || c.columns == 0)
        return;
    cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasTrans, blas(c.rows), blas(c.columns), blas(a.columns), scale, a.data,
                blas(a.stride), b.data, blas(b.stride), beta(write), c.data, blas(c.stride));
}

void multiply(ConstMatrix a, ConstMatrix b, Matrix c, Write write) {
    if (c.rows == 0 || c.columns == 0)
        return;
    cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, blas(c.rows), blas(c.columns), blas(a.columns), 1.0F, a.data,
                blas(a.stride), b.data, blas(b.stride), beta(write), c.data, blas(c.stride));
}

void multiplyOuter(ConstMatrix a, ConstMatrix b, Matrix c, Write write) {
    if (c.rows == 0 || c.columns == 0)
        return;
    // BLAS copies this operand for all rows at once into memory of its own; in pieces that stays small and in caches.
    for (std::int64_t row = 0; row < c.rows; row += kOuterRows)
        cblas_sgemm(CblasRowMajor, CblasTrans, CblasNoTrans, blas(std::min(kOuterRows, c.rows - row)), blas(c.columns),
                    blas(a.rows), 1.0F, a.data + row, blas(a.stride), b.data, blas(b.stride), beta(write),
                    c.data + row * c.stride, blas(c.stride));
}

void linearForward(ConstMatrix x, const float* weight, const float* bias, ConstMatrix residual, Matrix y) {
    const bool prefilled = bias != nullptr || residual.data != nullptr;
    for (std::int64_t t = 0; prefilled && t < y.rows; ++t) {
        float* row = y.data + t * y.stride;
        const float* first = residual.data != nullptr ? residual.data + t * residual.stride : bias;
        std::memcpy(row, first, static_cast<std::size_t>(y.columns) * sizeof(float));
        if (residual.data != nullptr && bias != nullptr)
            addRow(bias, row, y.columns);
    }
    multiplyTransposed(x, {weight, y.columns, x.columns, x.columns}, y, 1.0F,
                       prefilled ? Write::Add : Write::Overwrite);
}

void linearBackwardInput(ConstMatrix dy, const float* weight, Matrix dx, Write write) {
    multiply(dy, {weight, dy.columns, dx.columns, dx.columns}, dx, write);
}

void linearBackwardWeight(ConstMatrix dy, ConstMatrix x, float* weightGradient, Write write) {
    multiplyOuter(dy, x, {weightGradient, dy.columns, x.columns, x.columns}, write);
}

void linearBackwardBias(ConstMatrix dy, float* biasGradient, Write write) {
    if (write == Write::Overwrite)
        std::fill_n(biasGradient, dy.columns, 0.0F);
    for (std::int64_t t = 0; t < dy.rows; ++t)
        addRow(dy.data + t * dy.stride, biasGradient, dy.columns);
}

void prepareBlas() {
    openblas_set_num_threads(1);
    // As large as the engine's products make it, so that it counts to what the process takes before its arenas.
    constexpr int kRows = kOuterRows;
    constexpr int kInner = 512;
    constexpr int kColumns = 512;
    std::vector<float> a(static_cast<std::size_t>(kRows) * kInner, 1.0F);
    std::vector<float> b(static_cast<std::size_t>(kInner) * kColumns, 1.0F);
    std::vector<float> c(static_cast<std::size_t>(kRows) * kColumns, 0.0F);
    cblas_sgemm(CblasRowMajor, CblasTrans, CblasNoTrans, kRows, kColumns, kInner, 1.0F, a.data(), kRows, b.data(),
                kColumns, 0.0F, c.data(), kColumns);
}

} // namespace shardscope::engine
