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

/// Clears the head rows of one gradient: tokens rows of `width` floats.
void clearRows(float* rows, std::int64_t tokens, std::int64_t width, std::int64_t stride) {
    for (std::int64_t t = 0; t < tokens; ++t)
        std::memset(rows + t * stride, 0, static_cast<std::size_t>(width) * sizeof(float));
}

float dotProduct(const float* a, const float* b, std::int64_t n) {
    float sum = 0;
    for (std::int64_t i = 0; i < n; ++i)
        sum += a[i] * b[i];
    return sum;
}

} // namespace

void attentionForward(AttentionShape shape, AttentionRows<const float> rows, float* output, float* logsumexp,
                      float* scratch) {
    const std::int64_t width = shape.width();
    const std::int64_t queriesPerKey = shape.heads / shape.kvHeads;
    const std::int64_t qs = rows.queryStride;
    const std::int64_t ks = rows.keyStride;
    const float scale = 1.0F / std::sqrt(static_cast<float>(shape.headDim));
    for (std::int64_t b = 0; b < shape.batch; ++b)
        for (std::int64_t h = 0; h < shape.heads; ++h) {
            const std::int64_t keyAt = b * shape.sequence * ks + h / queriesPerKey * shape.headDim;
            const float* q = rows.query + b * shape.sequence * qs + h * shape.headDim;
            const float* k = rows.key + keyAt;
            const float* v = rows.value + keyAt;
            float* o = output + b * shape.sequence * width + h * shape.headDim;
            float* lse = logsumexp + (b * shape.heads + h) * shape.sequence;
            for (std::int64_t i = 0; i < shape.sequence; i += contract::kAttentionTileRows) {
                const std::int64_t count = std::min(contract::kAttentionTileRows, shape.sequence - i);
                const std::int64_t keys = i + count; // later keys are masked for the whole tile
                multiplyTransposed({q + i * qs, count, shape.headDim, qs}, {k, keys, shape.headDim, ks},
                                   {scratch, count, keys, keys}, scale, Write::Overwrite);
                for (std::int64_t r = 0; r < count; ++r)
                    lse[i + r] = softmaxRow(scratch + r * keys, i + r + 1, keys);
                multiply({scratch, count, keys, keys}, {v, keys, shape.headDim, ks},
                         {o + i * width, count, shape.headDim, width}, Write::Overwrite);
            }
        }
}

void attentionBackward(AttentionShape shape, AttentionRows<const float> rows, const float* output,
                       const float* logsumexp, const float* doutput, AttentionRows<float> gradients, float* scratch) {
    const std::int64_t width = shape.width();
    const std::int64_t queriesPerKey = shape.heads / shape.kvHeads;
    const std::int64_t qs = rows.queryStride;
    const std::int64_t ks = rows.keyStride;
    const float scale = 1.0F / std::sqrt(static_cast<float>(shape.headDim));
    float* probabilities = scratch;
    float* scores = scratch + contract::kAttentionTileRows * shape.sequence;
    clearRows(gradients.key, shape.tokens(), shape.kvHeads * shape.headDim, gradients.keyStride);
    clearRows(gradients.value, shape.tokens(), shape.kvHeads * shape.headDim, gradients.keyStride);
    for (std::int64_t b = 0; b < shape.batch; ++b)
        for (std::int64_t h = 0; h < shape.heads; ++h) {
            const std::int64_t keyHead = h / queriesPerKey * shape.headDim;
            const float* q = rows.query + b * shape.sequence * qs + h * shape.headDim;
            const float* k = rows.key + b * shape.sequence * ks + keyHead;
            const float* v = rows.value + b * shape.sequence * ks + keyHead;
            float* dq = gradients.query + b * shape.sequence * gradients.queryStride + h * shape.headDim;
            float* dk = gradients.key + b * shape.sequence * gradients.keyStride + keyHead;
            float* dv = gradients.value + b * shape.sequence * gradients.keyStride + keyHead;
            const float* o = output + b * shape.sequence * width + h * shape.headDim;
            const float* dout = doutput + b * shape.sequence * width + h * shape.headDim;
            const float* lse = logsumexp + (b * shape.heads + h) * shape.sequence;
            for (std::int64_t i = 0; i < shape.sequence; i += contract::kAttentionTileRows) {
                const std::int64_t count = std::min(contract::kAttentionTileRows, shape.sequence - i);
                const std::int64_t keys = i + count;
                const ConstMatrix queryTile{q + i * qs, count, shape.headDim, qs};
                const ConstMatrix outputTile{dout + i * width, count, shape.headDim, width};
                multiplyTransposed(queryTile, {k, keys, shape.headDim, ks}, {probabilities, count, keys, keys}, scale,
                                   Write::Overwrite);
                multiplyTransposed(outputTile, {v, keys, shape.headDim, ks}, {scores, count, keys, keys}, 1.0F,
                                   Write::Overwrite);
                for (std::int64_t r = 0; r < count; ++r)
                    probabilityRow(probabilities + r * keys, lse[i + r], i + r + 1, keys);
                // dv += P^T dout
                multiplyOuter({probabilities, count, keys, keys}, outputTile,
                              {dv, keys, shape.headDim, gradients.keyStride}, Write::Add);
                for (std::int64_t r = 0; r < count; ++r)
                    scoreGradientRow(probabilities + r * keys, scores + r * keys,
                                     dotProduct(dout + (i + r) * width, o + (i + r) * width, shape.headDim), scale,
                                     keys);
                multiply({scores, count, keys, keys}, {k, keys, shape.headDim, ks},
                         {dq + i * gradients.queryStride, count, shape.headDim, gradients.queryStride},
                         Write::Overwrite);
                multiplyOuter({scores, count, keys, keys}, queryTile, {dk, keys, shape.headDim, gradients.keyStride},
                              Write::Add);
            }
        }
}

} // namespace shardscope::engine
