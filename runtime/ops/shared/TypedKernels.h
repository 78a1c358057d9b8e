// SPDX-License-Identifier: GPL-3.0-or-later
// The operations for one type of element: kernel bodies and how a launcher spreads them. See SharedKernels.h.
#pragma once

#include "runtime/ops/Kernels.h"
#include "runtime/ops/shared/AttentionBodies.h"
#include "runtime/ops/shared/EmbeddingBodies.h"
#include "runtime/ops/shared/LossBodies.h"
#include "runtime/ops/shared/NormBodies.h"
#include "runtime/ops/shared/PointwiseBodies.h"
#include "runtime/ops/shared/UpdateBodies.h"

#include <algorithm>
#include <cmath>
#include <vector>

namespace shardscope::engine::shared {

/// What a step adds up, in the memory of the device.
struct DeviceSums {
    double loss, tokens, correct;
    double squares[2]; ///< by SquareSum
};
constexpr std::int64_t kPartialSums = 512;

template<typename E> E* as(Elements elements) {
    return reinterpret_cast<E*>(elements.at);
}
template<typename E> const E* as(ConstElements elements) {
    return reinterpret_cast<const E*>(elements.at);
}

/// A launcher has four forms of a kernel over `n` things, none of which depends on the order of the others:
/// rows(n, f(RowTeam, i)), warps(n, f(WarpTeam, i)), columns(n, f(ColumnTeam, i)), matrix(rows, columns, f(row,
/// column)). Calls take effect one after the other.
///
/// The functions are public because nvcc wants those around its lambdas to be.
template<typename Launcher> class TypedKernels {
public:
    using RowTeam = typename Launcher::RowTeam;
    using WarpTeam = typename Launcher::WarpTeam;
    using ColumnTeam = typename Launcher::ColumnTeam;

    template<typename E> void geluBackward(ConstElementMatrix x, ConstElementMatrix dy, ElementMatrix dx) {
        const E* const from = as<E>(x.data);
        const E* const gradient = as<E>(dy.data);
        E* const to = as<E>(dx.data);
        const std::int64_t xs = x.stride, ys = dy.stride, os = dx.stride;
        m_launcher.matrix(x.rows, x.columns, [=] SHARDSCOPE_KERNEL(std::int64_t r, std::int64_t c) {
            store(to + r * os + c, load(gradient + r * ys + c) * geluTanhSlope(load(from + r * xs + c)));
        });
    }
    template<typename E> void geluForward(ConstElementMatrix x, ElementMatrix y) {
        const E* const from = as<E>(x.data);
        E* const to = as<E>(y.data);
        const std::int64_t xs = x.stride, ys = y.stride;
        m_launcher.matrix(x.rows, x.columns, [=] SHARDSCOPE_KERNEL(std::int64_t r, std::int64_t c) {
            store(to + r * ys + c, geluTanh(load(from + r * xs + c)));
        });
    }
    template<typename E> void siluForward(ConstElementMatrix gate, ConstElementMatrix up, ElementMatrix y) {
        const E* const g = as<E>(gate.data);
        const E* const u = as<E>(up.data);
        E* const to = as<E>(y.data);
        const std::int64_t gs = gate.stride, us = up.stride, ys = y.stride;
        m_launcher.matrix(y.rows, y.columns, [=] SHARDSCOPE_KERNEL(std::int64_t r, std::int64_t c) {
            store(to + r * ys + c, siluGate(load(g + r * gs + c), load(u + r * us + c)));
        });
    }
    template<typename E>
    void siluBackward(ConstElementMatrix gate, ConstElementMatrix up, ConstElementMatrix dy, ElementMatrix dgate,
                      ElementMatrix dup) {
        const E* const g = as<E>(gate.data);
        const E* const u = as<E>(up.data);
        const E* const d = as<E>(dy.data);
        E* const dg = as<E>(dgate.data);
        E* const du = as<E>(dup.data);
        const std::int64_t gs = gate.stride, us = up.stride, ds = dy.stride, dgs = dgate.stride, dus = dup.stride;
        m_launcher.matrix(dy.rows, dy.columns, [=] SHARDSCOPE_KERNEL(std::int64_t r, std::int64_t c) {
            // dy is read before either is written: it may be one of them.
            const SiluGateGradient gradient =
                siluGateGradient(load(g + r * gs + c), load(u + r * us + c), load(d + r * ds + c));
            store(dg + r * dgs + c, gradient.gate);
            store(du + r * dus + c, gradient.up);
        });
    }
    template<typename E>
    void layerForward(NormShape shape, ConstElements x, ConstElements gain, ConstElements bias, float epsilon,
                      Elements y, float* statistics) {
        const E* const from = as<E>(x);
        const E* const g = as<E>(gain);
        const E* const b = as<E>(bias);
        E* const to = as<E>(y);
        const std::int64_t hidden = shape.hidden, tokens = shape.tokens;
        m_launcher.rows(tokens, [=] SHARDSCOPE_KERNEL(const RowTeam& team, std::int64_t t) {
            layerNormForwardRow(team, from + t * hidden, g, b, epsilon, hidden, to + t * hidden, statistics + t,
                                statistics + tokens + t);
        });
    }
    template<typename E, typename G>
    void layerBackward(NormShape shape, ConstElements dy, ConstElements x, ConstElements gain, const float* statistics,
                       Elements dx, Write writeInput, Elements dgain, Elements dbias, Write writeParameters) {
        const E* const d = as<E>(dy);
        const E* const from = as<E>(x);
        const E* const g = as<E>(gain);
        E* const to = as<E>(dx);
        G* const gains = as<G>(dgain);
        G* const biases = as<G>(dbias);
        const std::int64_t hidden = shape.hidden, tokens = shape.tokens;
        const bool add = writeInput == Write::Add, addParameters = writeParameters == Write::Add;
        m_launcher.columns(hidden, [=] SHARDSCOPE_KERNEL(const ColumnTeam& team, std::int64_t column) {
            layerNormParameters(team, d, from, statistics, tokens, hidden, column, gains, biases, addParameters);
        });
        m_launcher.rows(tokens, [=] SHARDSCOPE_KERNEL(const RowTeam& team, std::int64_t t) {
            layerNormBackwardRow(team, d + t * hidden, from + t * hidden, g, statistics[t], statistics[tokens + t],
                                 hidden, to + t * hidden, add);
        });
    }
    template<typename E>
    void rmsForward(NormShape shape, ConstElements x, ConstElements gain, float epsilon, Elements y,
                    float* reciprocals) {
        const E* const from = as<E>(x);
        const E* const g = as<E>(gain);
        E* const to = as<E>(y);
        const std::int64_t hidden = shape.hidden;
        m_launcher.rows(shape.tokens, [=] SHARDSCOPE_KERNEL(const RowTeam& team, std::int64_t t) {
            rmsNormForwardRow(team, from + t * hidden, g, epsilon, hidden, to + t * hidden, reciprocals + t);
        });
    }
    template<typename E, typename G>
    void rmsBackward(NormShape shape, ConstElements dy, ConstElements x, ConstElements gain, const float* reciprocals,
                     Elements dx, Write writeInput, Elements dgain, Write writeParameters) {
        const E* const d = as<E>(dy);
        const E* const from = as<E>(x);
        const E* const g = as<E>(gain);
        E* const to = as<E>(dx);
        G* const gains = as<G>(dgain);
        const std::int64_t hidden = shape.hidden, tokens = shape.tokens;
        const bool add = writeInput == Write::Add, addParameters = writeParameters == Write::Add;
        // First, since dx may take the place of dy.
        m_launcher.columns(hidden, [=] SHARDSCOPE_KERNEL(const ColumnTeam& team, std::int64_t column) {
            rmsNormParameters(team, d, from, reciprocals, tokens, hidden, column, gains, addParameters);
        });
        m_launcher.rows(tokens, [=] SHARDSCOPE_KERNEL(const RowTeam& team, std::int64_t t) {
            rmsNormBackwardRow(team, d + t * hidden, from + t * hidden, g, reciprocals[t], hidden, to + t * hidden,
                               add);
        });
    }
    template<typename E>
    void attendForward(AttentionShape shape, AttentionElements rows, Elements output, float* logsumexp) {
        const E* const query = as<E>(rows.query);
        const E* const key = as<E>(rows.key);
        const E* const value = as<E>(rows.value);
        E* const out = as<E>(output);
        const std::int64_t sequence = shape.sequence, heads = shape.heads, headDim = shape.headDim,
                           width = shape.width(), perKey = shape.heads / shape.kvHeads, qs = rows.queryStride,
                           ks = rows.keyStride;
        const float scale = 1.0F / std::sqrt(static_cast<float>(headDim));
        m_launcher.warps(shape.tokens() * heads, [=] SHARDSCOPE_KERNEL(const WarpTeam& team, std::int64_t index) {
            const std::int64_t i = index % sequence, h = index / sequence % heads, b = index / sequence / heads;
            const std::int64_t keys = b * sequence * ks + h / perKey * headDim;
            attentionForwardRow(team, query + (b * sequence + i) * qs + h * headDim, key + keys, value + keys, ks,
                                i + 1, headDim, scale, out + (b * sequence + i) * width + h * headDim,
                                logsumexp + index);
        });
    }
    template<typename E>
    void attendBackward(AttentionShape shape, AttentionElements rows, ConstElements output, const float* logsumexp,
                        ConstElements doutput, AttentionGradients gradients) {
        const E* const query = as<E>(rows.query);
        const E* const key = as<E>(rows.key);
        const E* const value = as<E>(rows.value);
        const E* const out = as<E>(output);
        const E* const dout = as<E>(doutput);
        E* const dquery = as<E>(gradients.query);
        E* const dkey = as<E>(gradients.key);
        E* const dvalue = as<E>(gradients.value);
        const std::int64_t sequence = shape.sequence, heads = shape.heads, kvHeads = shape.kvHeads,
                           headDim = shape.headDim, width = shape.width(), perKey = shape.heads / shape.kvHeads,
                           qs = rows.queryStride, ks = rows.keyStride, dqs = gradients.queryStride,
                           dks = gradients.keyStride;
        const float scale = 1.0F / std::sqrt(static_cast<float>(headDim));
        m_launcher.warps(shape.tokens() * heads, [=] SHARDSCOPE_KERNEL(const WarpTeam& team, std::int64_t index) {
            const std::int64_t i = index % sequence, h = index / sequence % heads, b = index / sequence / heads;
            const std::int64_t keys = b * sequence * ks + h / perKey * headDim, row = b * sequence + i;
            const std::int64_t at = row * width + h * headDim;
            attentionQueryGradient(team, query + row * qs + h * headDim, key + keys, value + keys, ks, i + 1, headDim,
                                   scale, out + at, dout + at, logsumexp[index], dquery + row * dqs + h * headDim);
        });
        m_launcher.warps(shape.tokens() * kvHeads, [=] SHARDSCOPE_KERNEL(const WarpTeam& team, std::int64_t index) {
            const std::int64_t j = index % sequence, h = index / sequence % kvHeads, b = index / sequence / kvHeads;
            const std::int64_t first = h * perKey, row = b * sequence + j;
            const SeeingQueries<E> queries{query + b * sequence * qs + first * headDim,
                                           out + b * sequence * width + first * headDim,
                                           dout + b * sequence * width + first * headDim,
                                           logsumexp + (b * heads + first) * sequence,
                                           qs,
                                           width,
                                           sequence,
                                           perKey};
            attentionKeyGradient(team, queries, j, key + row * ks + h * headDim, value + row * ks + h * headDim,
                                 headDim, scale, dkey + row * dks + h * headDim, dvalue + row * dks + h * headDim);
        });
    }
    template<typename E>
    void rotateRows(E* x, std::int64_t tokens, std::int64_t sequence, std::int64_t heads, std::int64_t pairs,
                    float sign) {
        const float* const table = m_rotaryTable;
        m_launcher.matrix(tokens * heads, pairs, [=] SHARDSCOPE_KERNEL(std::int64_t row, std::int64_t i) {
            const float* const angles = table + row / heads % sequence * 2 * pairs;
            E* const head = x + row * 2 * pairs;
            rotatePair(head + i, head + pairs + i, angles[i], sign * angles[pairs + i]);
        });
    }
    template<typename E>
    void embed(const std::int32_t* ids, contract::RowRange rows, ConstElements table, ElementMatrix y) {
        const E* const from = as<E>(table);
        E* const to = as<E>(y.data);
        const std::int64_t begin = rows.begin, end = rows.end, hidden = y.columns, stride = y.stride;
        m_launcher.matrix(y.rows, hidden, [=] SHARDSCOPE_KERNEL(std::int64_t t, std::int64_t c) {
            const std::int64_t id = ids[t];
            if (id >= begin && id < end)
                to[t * stride + c] = from[(id - begin) * hidden + c];
        });
    }
    template<typename E, typename G>
    void embedBackward(const std::int32_t* ids, contract::RowRange rows, ConstElementMatrix dy, Elements gradient) {
        const E* const d = as<E>(dy.data);
        G* const table = as<G>(gradient);
        const std::int64_t begin = rows.begin, end = rows.end, hidden = dy.columns, stride = dy.stride,
                           tokens = dy.rows;
        m_launcher.rows(tokens, [=] SHARDSCOPE_KERNEL(const RowTeam& team, std::int64_t t) {
            embeddingGradientRow(team, ids, tokens, t, begin, end, d, stride, hidden, table);
        });
    }
    template<typename E>
    void addPositions(std::int64_t sequence, contract::RowRange rows, ConstElements table, ElementMatrix y) {
        const E* const from = as<E>(table);
        E* const to = as<E>(y.data);
        const std::int64_t begin = rows.begin, end = rows.end, hidden = y.columns, stride = y.stride;
        m_launcher.matrix(y.rows, hidden, [=] SHARDSCOPE_KERNEL(std::int64_t t, std::int64_t c) {
            const std::int64_t position = t % sequence;
            if (position >= begin && position < end)
                write(to + t * stride + c, load(from + (position - begin) * hidden + c), true);
        });
    }
    template<typename E, typename G>
    void positionGradients(std::int64_t sequence, contract::RowRange rows, ConstElementMatrix dy, Elements gradient) {
        const E* const d = as<E>(dy.data);
        G* const table = as<G>(gradient);
        const std::int64_t begin = rows.begin, hidden = dy.columns, stride = dy.stride, tokens = dy.rows;
        const std::int64_t count = std::max<std::int64_t>(0, std::min(rows.end, sequence) - begin);
        m_launcher.matrix(count, hidden, [=] SHARDSCOPE_KERNEL(std::int64_t row, std::int64_t c) {
            positionGradientAt(begin + row, c, sequence, tokens, begin, d, stride, hidden, table);
        });
    }
    template<typename E, typename G> void biasGradients(ConstElementMatrix dy, Elements gradient, Write writes) {
        const E* const d = as<E>(dy.data);
        G* const sums = as<G>(gradient);
        const std::int64_t tokens = dy.rows, stride = dy.stride;
        const bool add = writes == Write::Add;
        m_launcher.columns(dy.columns, [=] SHARDSCOPE_KERNEL(const ColumnTeam& team, std::int64_t column) {
            columnSum(team, d, tokens, stride, column, sums, add);
        });
    }
    template<typename E> void fillZero(E* values, std::int64_t count) {
        m_launcher.matrix(1, count, [=] SHARDSCOPE_KERNEL(std::int64_t, std::int64_t i) { store(values + i, 0.0F); });
    }
    template<typename E>
    void entropy(E* logits, const std::int32_t* targets, std::int64_t tokens, std::int64_t vocabulary, float* losses) {
        const std::int32_t ignored = kIgnoredTarget;
        m_launcher.rows(tokens, [=] SHARDSCOPE_KERNEL(const RowTeam& team, std::int64_t t) {
            crossEntropyRow(team, logits + t * vocabulary, targets[t], ignored, vocabulary, losses + t);
        });
    }
    /// A token's loss and mark share one number until they are added up: the loss, or -1 - loss of one that is right.
    template<typename E>
    void judge(const E* logits, const std::int32_t* targets, std::int64_t tokens, std::int64_t vocabulary, float* marks,
               DeviceSums* sums) {
        const std::int32_t ignored = kIgnoredTarget;
        m_launcher.rows(tokens, [=] SHARDSCOPE_KERNEL(const RowTeam& team, std::int64_t t) {
            const Judgement judged = judgeRow(team, logits + t * vocabulary, targets[t], ignored, vocabulary);
            if (team.rank() == 0)
                marks[t] = judged.correct ? -1.0F - judged.loss : judged.loss;
        });
        m_launcher.rows(1, [=] SHARDSCOPE_KERNEL(const RowTeam& team, std::int64_t) {
            double loss = 0, counted = 0, right = 0;
            for (std::int64_t t = team.rank(); t < tokens; t += team.size()) {
                const auto mark = static_cast<double>(marks[t]);
                loss += mark < 0 ? -1 - mark : mark;
                right += mark < 0 ? 1 : 0;
                counted += targets[t] != ignored ? 1 : 0;
                marks[t] = mark < 0 ? 1.0F : 0.0F;
            }
            loss = team.sum(loss);
            counted = team.sum(counted);
            right = team.sum(right);
            if (team.rank() == 0)
                *sums = DeviceSums{loss, counted, right, {0, 0}};
        });
    }
    template<typename E>
    void joinLogits(ConstElementMatrix logits, std::int64_t firstRow, const std::int32_t* targets, TokenSoftmax softmax,
                    bool first) {
        const E* const from = as<E>(logits.data);
        const std::int64_t rows = logits.columns, stride = logits.stride;
        float* const logsumexp = as<float>(softmax.logsumexp);
        float* const target = as<float>(softmax.target);
        float* const largest = as<float>(softmax.largest);
        m_launcher.rows(logits.rows, [=] SHARDSCOPE_KERNEL(const RowTeam& team, std::int64_t t) {
            joinRow(team, from + t * stride, rows, targets[t] - firstRow, first, logsumexp + t, target + t,
                    largest + t);
        });
    }
    template<typename E>
    void gradientOfLogits(ElementMatrix logits, std::int64_t firstRow, const std::int32_t* targets,
                          const float* logsumexp) {
        E* const to = as<E>(logits.data);
        const std::int64_t stride = logits.stride;
        const std::int32_t ignored = kIgnoredTarget;
        m_launcher.matrix(logits.rows, logits.columns, [=] SHARDSCOPE_KERNEL(std::int64_t t, std::int64_t row) {
            E* const at = to + t * stride + row;
            const float gradient = expf(load(at) - logsumexp[t]) - (firstRow + row == targets[t] ? 1.0F : 0.0F);
            store(at, targets[t] == ignored ? 0.0F : gradient);
        });
    }
    /// The losses of tokens whose softmax is known, in the place of their targets' logits.
    void finishLosses(TokenSoftmax softmax, const std::int32_t* targets, std::int64_t tokens) {
        const float* const logsumexp = as<float>(softmax.logsumexp);
        float* const target = as<float>(softmax.target);
        float* const largest = as<float>(softmax.largest);
        const std::int32_t ignored = kIgnoredTarget;
        m_launcher.matrix(1, tokens, [=] SHARDSCOPE_KERNEL(std::int64_t, std::int64_t t) {
            const bool counts = targets[t] != ignored;
            largest[t] = counts && target[t] >= largest[t] ? 1.0F : 0.0F;
            target[t] = counts ? logsumexp[t] - target[t] : 0.0F;
        });
    }
    void judgeTokens(const float* losses, const float* correct, const std::int32_t* targets, std::int64_t tokens,
                     DeviceSums* sums) {
        clearDeviceSums(sums);
        addLosses(losses, targets, tokens, sums);
        m_launcher.rows(1, [=] SHARDSCOPE_KERNEL(const RowTeam& team, std::int64_t) {
            double right = 0;
            for (std::int64_t t = team.rank(); t < tokens; t += team.size())
                right += static_cast<double>(correct[t]);
            right = team.sum(right);
            if (team.rank() == 0)
                sums->correct = right;
        });
    }
    void addLosses(const float* losses, const std::int32_t* targets, std::int64_t tokens, DeviceSums* sums) {
        const std::int32_t ignored = kIgnoredTarget;
        m_launcher.rows(1, [=] SHARDSCOPE_KERNEL(const RowTeam& team, std::int64_t) {
            double loss = 0, counted = 0;
            for (std::int64_t t = team.rank(); t < tokens; t += team.size()) {
                loss += static_cast<double>(losses[t]);
                counted += targets[t] != ignored ? 1 : 0;
            }
            loss = team.sum(loss);
            counted = team.sum(counted);
            if (team.rank() == 0) {
                sums->loss += loss;
                sums->tokens += counted;
            }
        });
    }
    void clearDeviceSums(DeviceSums* sums) {
        m_launcher.matrix(1, 1, [=] SHARDSCOPE_KERNEL(std::int64_t, std::int64_t) { *sums = DeviceSums{}; });
    }
    template<typename G> void squares(const G* values, std::int64_t count, double divisor, int which) {
        constexpr std::int64_t kStretch = 16384;
        const std::int64_t parts = std::clamp<std::int64_t>((count + kStretch - 1) / kStretch, 1, kPartialSums);
        const std::int64_t length = (count + parts - 1) / parts;
        double* const partial = m_partials;
        DeviceSums* const sums = m_sums;
        m_launcher.rows(parts, [=] SHARDSCOPE_KERNEL(const RowTeam& team, std::int64_t part) {
            const std::int64_t end = (part + 1) * length < count ? (part + 1) * length : count;
            const double sum = sumOfSquares(team, values, part * length, end);
            if (team.rank() == 0)
                partial[part] = sum;
        });
        m_launcher.rows(1, [=] SHARDSCOPE_KERNEL(const RowTeam& team, std::int64_t) {
            double sum = 0;
            for (std::int64_t i = team.rank(); i < parts; i += team.size())
                sum += partial[i];
            sum = team.sum(sum);
            if (team.rank() == 0)
                sums->squares[which] += sum / divisor;
        });
    }
    template<typename E, typename G, typename M> void update(const AdamWStep& step, const TensorUpdate& tensor) {
        const AdamWStep s = step;
        const float decay = tensor.weightDecay;
        const G* const gradient = as<G>(tensor.gradient);
        E* const weight = as<E>(tensor.weight);
        float* const master = as<float>(tensor.master);
        M* const first = as<M>(tensor.firstMoment);
        M* const second = as<M>(tensor.secondMoment);
        const std::uint64_t key = tensor.roundingKey;
        const std::int64_t index = tensor.firstIndex;
        m_launcher.matrix(1, tensor.count, [=] SHARDSCOPE_KERNEL(std::int64_t, std::int64_t i) {
            adamWAt(s, decay, i, gradient, weight, master, first, second, key, index);
        });
    }
    void update(const SgdStep& step, const TensorUpdate& tensor) {
        const SgdStep s = step;
        const float decay = tensor.weightDecay;
        const float* const gradient = as<float>(tensor.gradient);
        float* const weight = as<float>(tensor.weight);
        float* const momentum = as<float>(tensor.firstMoment);
        m_launcher.matrix(1, tensor.count, [=] SHARDSCOPE_KERNEL(std::int64_t, std::int64_t i) {
            sgdMomentumAt(s, decay, i, gradient, weight, momentum);
        });
    }

protected:
    explicit TypedKernels(Launcher launcher) : m_launcher(launcher) {}

    Launcher m_launcher;
    DeviceSums* m_sums = nullptr;         ///< two: a step's, an evaluation's. Set by who derives, as are these:
    double* m_partials = nullptr;         ///< kPartialSums of them
    const float* m_rotaryTable = nullptr; ///< (sequence, 2, pairs): cosines, then sines
};

} // namespace shardscope::engine::shared
