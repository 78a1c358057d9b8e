// SPDX-License-Identifier: GPL-3.0-or-later
#include "runtime/ops/Attention.h"

#include "runtime/contract/Operator.h"
#include "runtime/ops/Linear.h"
#include "runtime/ops/Vectorised.h"

#include <algorithm>
#include <cmath>
#include <cstring>

namespace shardscope::engine {

namespace {

/// Softmax of the first `visible` scores of a row; the rest of it becomes 0. Returns the log of the sum of
/// exponentials.
SHARDSCOPE_VECTORISED
float softmaxRow(float* row, std::int64_t visible, std::int64_t columns) {
    float maximum = row[0];
    for (std::int64_t j = 1; j < visible; ++j)
        maximum = row[j] > maximum ? row[j] : maximum;
    float sums[kLanes] = {};
    std::int64_t j = 0;
    for (; j + kLanes <= visible; j += kLanes)
        for (int lane = 0; lane < kLanes; ++lane) {
            row[j + lane] = fastExp(row[j + lane] - maximum);
            sums[lane] += row[j + lane];
        }
    for (int lane = 0; j < visible; ++j, ++lane) {
        row[j] = fastExp(row[j] - maximum);
        sums[lane] += row[j];
    }
    float sum = 0;
    for (const float part : sums)
        sum += part;
    const float reciprocal = 1.0F / sum;
    for (j = 0; j < visible; ++j)
        row[j] *= reciprocal;
    for (; j < columns; ++j)
        row[j] = 0.0F;
    return maximum + std::log(sum);
}

SHARDSCOPE_VECTORISED
void probabilityRow(float* row, float logsumexp, std::int64_t visible, std::int64_t columns) {
    std::int64_t j = 0;
    for (; j < visible; ++j)
        row[j] = fastExp(row[j] - logsumexp);
    for (; j < columns; ++j)
        row[j] = 0.0F;
}

SHARDSCOPE_VECTORISED
void scoreGradientRow(const float* probability, float* gradient, float dot, float scale, std::int64_t columns) {
    for (std::int64_t j = 0; j < columns; ++j)
        gradient[j] = probability[j] * (gradient[j] - dot) * scale;
}

float dotProduct(const float* a, const float* b, std::int64_t n) {
    float sum = 0;
    for (std::int64_t i = 0; i < n; ++i)
        sum += a[i] * b[i];
    return sum;
}

} // namespace

void attentionForward(AttentionShape shape, const float* qkv, float* output, float* logsumexp, float* scratch) {
    const std::int64_t width = shape.width();
    const std::int64_t stride = 3 * width;
    const float scale = 1.0F / std::sqrt(static_cast<float>(shape.headDim));
    for (std::int64_t b = 0; b < shape.batch; ++b)
        for (std::int64_t h = 0; h < shape.heads; ++h) {
            const float* q = qkv + b * shape.sequence * stride + h * shape.headDim;
            const float* k = q + width;
            const float* v = k + width;
            float* o = output + b * shape.sequence * width + h * shape.headDim;
            float* lse = logsumexp + (b * shape.heads + h) * shape.sequence;
            for (std::int64_t i = 0; i < shape.sequence; i += contract::kAttentionTileRows) {
                const std::int64_t rows = std::min(contract::kAttentionTileRows, shape.sequence - i);
                const std::int64_t keys = i + rows; // later keys are masked for the whole tile
                multiplyTransposed({q + i * stride, rows, shape.headDim, stride}, {k, keys, shape.headDim, stride},
                                   {scratch, rows, keys, keys}, scale, Write::Overwrite);
                for (std::int64_t r = 0; r < rows; ++r)
                    lse[i + r] = softmaxRow(scratch + r * keys, i + r + 1, keys);
                multiply({scratch, rows, keys, keys}, {v, keys, shape.headDim, stride},
                         {o + i * width, rows, shape.headDim, width}, Write::Overwrite);
            }
        }
}

void attentionBackward(AttentionShape shape, const float* qkv, const float* output, const float* logsumexp,
                       const float* doutput, float* dqkv, float* scratch) {
    const std::int64_t width = shape.width();
    const std::int64_t stride = 3 * width;
    const float scale = 1.0F / std::sqrt(static_cast<float>(shape.headDim));
    float* probabilities = scratch;
    float* gradients = scratch + contract::kAttentionTileRows * shape.sequence;
    std::memset(dqkv, 0, static_cast<std::size_t>(shape.tokens() * stride) * sizeof(float));
    for (std::int64_t b = 0; b < shape.batch; ++b)
        for (std::int64_t h = 0; h < shape.heads; ++h) {
            const std::int64_t at = b * shape.sequence * stride + h * shape.headDim;
            const float* q = qkv + at;
            const float* k = q + width;
            const float* v = k + width;
            float* dq = dqkv + at;
            float* dk = dq + width;
            float* dv = dk + width;
            const float* o = output + b * shape.sequence * width + h * shape.headDim;
            const float* dout = doutput + b * shape.sequence * width + h * shape.headDim;
            const float* lse = logsumexp + (b * shape.heads + h) * shape.sequence;
            for (std::int64_t i = 0; i < shape.sequence; i += contract::kAttentionTileRows) {
                const std::int64_t rows = std::min(contract::kAttentionTileRows, shape.sequence - i);
                const std::int64_t keys = i + rows;
                const ConstMatrix queryTile{q + i * stride, rows, shape.headDim, stride};
                const ConstMatrix outputTile{dout + i * width, rows, shape.headDim, width};
                multiplyTransposed(queryTile, {k, keys, shape.headDim, stride}, {probabilities, rows, keys, keys},
                                   scale, Write::Overwrite);
                multiplyTransposed(outputTile, {v, keys, shape.headDim, stride}, {gradients, rows, keys, keys}, 1.0F,
                                   Write::Overwrite);
                for (std::int64_t r = 0; r < rows; ++r)
                    probabilityRow(probabilities + r * keys, lse[i + r], i + r + 1, keys);
                // dv += P^T dout
                multiplyOuter({probabilities, rows, keys, keys}, outputTile, {dv, keys, shape.headDim, stride},
                              Write::Add);
                for (std::int64_t r = 0; r < rows; ++r)
                    scoreGradientRow(probabilities + r * keys, gradients + r * keys,
                                     dotProduct(dout + (i + r) * width, o + (i + r) * width, shape.headDim), scale,
                                     keys);
                multiply({gradients, rows, keys, keys}, {k, keys, shape.headDim, stride},
                         {dq + i * stride, rows, shape.headDim, stride}, Write::Overwrite);
                multiplyOuter({gradients, rows, keys, keys}, queryTile, {dk, keys, shape.headDim, stride}, Write::Add);
            }
        }
}

} // namespace shardscope::engine
