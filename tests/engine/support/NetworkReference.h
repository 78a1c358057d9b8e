// SPDX-License-Identifier: GPL-3.0-or-later
// Norms and attention in float64.
#pragma once

#include "engine/support/FloatReference.h"
#include "runtime/ops/Attention.h"

#include <cmath>

namespace shardscope::testing {

inline Doubles sumOf(const Doubles& a, const Doubles& b) {
    Doubles sum = a;
    for (std::size_t i = 0; i < a.size(); ++i)
        sum[i] += b[i];
    return sum;
}

/// y (T, H) of a norm; `mean` false: RMS.
inline Doubles referenceNorm(std::int64_t hidden, const Doubles& x, const Doubles& gain, const Doubles& bias,
                             bool centred) {
    Doubles y(x.size());
    const auto h = static_cast<std::size_t>(hidden);
    for (std::size_t t = 0; t < x.size() / h; ++t) {
        double mean = 0, square = 0;
        for (std::size_t i = 0; i < h && centred; ++i)
            mean += x[t * h + i] / static_cast<double>(hidden);
        for (std::size_t i = 0; i < h; ++i)
            square += std::pow(x[t * h + i] - mean, 2) / static_cast<double>(hidden);
        for (std::size_t i = 0; i < h; ++i)
            y[t * h + i] = (x[t * h + i] - mean) / std::sqrt(square + 1e-5) * gain[i] + (centred ? bias[i] : 0);
    }
    return y;
}

/// rows: query (B, S, heads, d), key, value (B, S, kvHeads, d). Returns the output, then logsumexp (B, heads, S).
inline Doubles referenceAttention(engine::AttentionShape s, const Doubles& rows) {
    const std::int64_t queries = s.tokens() * s.width(), keys = s.tokens() * s.kvHeads * s.headDim;
    Doubles out(static_cast<std::size_t>(queries), 0.0), logs;
    for (std::int64_t b = 0; b < s.batch; ++b)
        for (std::int64_t h = 0; h < s.heads; ++h)
            for (std::int64_t i = 0; i < s.sequence; ++i) {
                const std::int64_t kv = h / (s.heads / s.kvHeads);
                const auto q = static_cast<std::size_t>(((b * s.sequence + i) * s.heads + h) * s.headDim);
                const auto k = [&](std::int64_t j, int which) {
                    return static_cast<std::size_t>(queries + which * keys +
                                                    ((b * s.sequence + j) * s.kvHeads + kv) * s.headDim);
                };
                Doubles p;
                double sum = 0;
                for (std::int64_t j = 0; j <= i; ++j) {
                    double score = 0;
                    for (std::size_t d = 0; d < static_cast<std::size_t>(s.headDim); ++d)
                        score += rows[q + d] * rows[k(j, 0) + d];
                    p.push_back(std::exp(score / std::sqrt(static_cast<double>(s.headDim))));
                    sum += p.back();
                }
                for (std::int64_t j = 0; j <= i; ++j)
                    for (std::size_t d = 0; d < static_cast<std::size_t>(s.headDim); ++d)
                        out[q + d] += p[static_cast<std::size_t>(j)] / sum * rows[k(j, 1) + d];
                logs.push_back(std::log(sum));
            }
    out.insert(out.end(), logs.begin(), logs.end());
    return out;
}

} // namespace shardscope::testing
