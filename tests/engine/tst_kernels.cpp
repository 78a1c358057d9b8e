// SPDX-License-Identifier: GPL-3.0-or-later
#include "engine/support/FloatReference.h"
#include "runtime/ops/AdamW.h"
#include "runtime/ops/Attention.h"
#include "runtime/ops/CrossEntropy.h"
#include "runtime/ops/Embedding.h"
#include "runtime/ops/Gelu.h"
#include "runtime/ops/LayerNorm.h"
#include "runtime/ops/Linear.h"
#include "runtime/ops/Vectorised.h"

#include <QtTest/QtTest>

#include <cmath>

using namespace shardscope::engine;
using namespace shardscope::testing;

namespace {

Doubles referenceAttention(AttentionShape shape, const Doubles& qkv) {
    const std::int64_t width = shape.width();
    Doubles out(static_cast<std::size_t>(shape.tokens() * width), 0.0);
    const auto at = [&](std::int64_t token, std::int64_t which, std::int64_t head, std::int64_t d) {
        return qkv[static_cast<std::size_t>(token * 3 * width + which * width + head * shape.headDim + d)];
    };
    for (std::int64_t b = 0; b < shape.batch; ++b)
        for (std::int64_t h = 0; h < shape.heads; ++h)
            for (std::int64_t i = 0; i < shape.sequence; ++i) {
                Doubles p(static_cast<std::size_t>(i + 1));
                double sum = 0;
                for (std::int64_t j = 0; j <= i; ++j) {
                    double score = 0;
                    for (std::int64_t d = 0; d < shape.headDim; ++d)
                        score += at(b * shape.sequence + i, 0, h, d) * at(b * shape.sequence + j, 1, h, d);
                    p[static_cast<std::size_t>(j)] = std::exp(score / std::sqrt(static_cast<double>(shape.headDim)));
                    sum += p[static_cast<std::size_t>(j)];
                }
                for (std::int64_t j = 0; j <= i; ++j)
                    for (std::int64_t d = 0; d < shape.headDim; ++d)
                        out[static_cast<std::size_t>((b * shape.sequence + i) * width + h * shape.headDim + d)] +=
                            p[static_cast<std::size_t>(j)] / sum * at(b * shape.sequence + j, 2, h, d);
            }
    return out;
}

Doubles referenceLayerNorm(std::int64_t tokens, std::int64_t hidden, const Doubles& x, const Doubles& gain,
                           const Doubles& bias) {
    Doubles y(x.size());
    for (std::int64_t t = 0; t < tokens; ++t) {
        double mean = 0;
        double square = 0;
        for (std::int64_t i = 0; i < hidden; ++i)
            mean += x[static_cast<std::size_t>(t * hidden + i)] / static_cast<double>(hidden);
        for (std::int64_t i = 0; i < hidden; ++i)
            square += std::pow(x[static_cast<std::size_t>(t * hidden + i)] - mean, 2) / static_cast<double>(hidden);
        for (std::int64_t i = 0; i < hidden; ++i) {
            const auto e = static_cast<std::size_t>(t * hidden + i);
            y[e] = (x[e] - mean) / std::sqrt(square + 1e-5) * gain[static_cast<std::size_t>(i)] +
                   bias[static_cast<std::size_t>(i)];
        }
    }
    return y;
}

} // namespace

class KernelTest : public QObject {
    Q_OBJECT

private Q_SLOTS:
    void fastExpAndTanhAreAccurate();
    void geluGradientIsThatOfItsForward();
    void layerNormAgreesWithFloat64();
    void attentionAgreesWithFloat64_data();
    void attentionAgreesWithFloat64();
    void linearAgreesWithFloat64();
    void crossEntropyGradientIsThatOfItsLoss();
    void ignoredTargetsHaveNoGradient();
    void embeddingsOfRowRangesAddUp();
    void adamWFollowsItsFormula();
    void sgdFollowsItsFormula();
};

void KernelTest::fastExpAndTanhAreAccurate() {
    for (double x = -80; x < 80; x += 0.0137) {
        const auto single = static_cast<float>(x);
        const double exact = std::exp(static_cast<double>(single));
        QVERIFY2(std::abs(static_cast<double>(fastExp(single)) - exact) / exact < 3e-7, qPrintable(QString::number(x)));
        QVERIFY(std::abs(static_cast<double>(fastTanh(single / 8)) - std::tanh(static_cast<double>(single / 8))) <
                5e-7);
    }
}

void KernelTest::geluGradientIsThatOfItsForward() {
    constexpr std::int64_t kCount = 201;
    Floats x(kCount), y(kCount), dx(kCount);
    const Floats dy = randomFloats(kCount, 1);
    for (std::int64_t i = 0; i < kCount; ++i)
        x[static_cast<std::size_t>(i)] = static_cast<float>(i - 100) / 20.0F;
    const auto reference = [&](const Doubles& at) {
        Doubles out(at.size());
        for (std::size_t i = 0; i < at.size(); ++i)
            out[i] = 0.5 * at[i] * (1 + std::tanh(std::sqrt(2 / M_PI) * (at[i] + 0.044715 * std::pow(at[i], 3))));
        return out;
    };
    geluTanhForward({x.data(), 1, kCount, kCount}, {y.data(), 1, kCount, kCount});
    geluTanhBackward({x.data(), 1, kCount, kCount}, {dy.data(), 1, kCount, kCount}, {dx.data(), 1, kCount, kCount});
    QVERIFY(worst(y, reference(toDoubles(x))) < 1e-6);
    QVERIFY(worst(dx, numericGradient(toDoubles(x),
                                      [&](const Doubles& at) { return weightedSum(reference(at), dy); })) < 1e-6);
}

void KernelTest::layerNormAgreesWithFloat64() {
    constexpr std::int64_t kTokens = 3;
    constexpr std::int64_t kHidden = 21;
    const Floats x = randomFloats(kTokens * kHidden, 2, 3.0F);
    const Floats gain = randomFloats(kHidden, 3);
    const Floats bias = randomFloats(kHidden, 4);
    const Floats dy = randomFloats(kTokens * kHidden, 5);
    Floats y(x.size()), statistics(2 * kTokens), dx(x.size()), dgain(kHidden), dbias(kHidden);
    layerNormForward({kTokens, kHidden}, x.data(), gain.data(), bias.data(), 1e-5F, y.data(), statistics.data());
    layerNormBackward({kTokens, kHidden}, dy.data(), x.data(), gain.data(), statistics.data(), dx.data(),
                      Write::Overwrite, dgain.data(), dbias.data(), Write::Overwrite);
    const Doubles X = toDoubles(x), G = toDoubles(gain), B = toDoubles(bias);
    const auto f = [&](const Doubles& a, const Doubles& g, const Doubles& b) {
        return weightedSum(referenceLayerNorm(kTokens, kHidden, a, g, b), dy);
    };
    QVERIFY(worst(y, referenceLayerNorm(kTokens, kHidden, X, G, B)) < 1e-6);
    QVERIFY(worst(dx, numericGradient(X, [&](const Doubles& a) { return f(a, G, B); })) < 2e-6);
    QVERIFY(worst(dgain, numericGradient(G, [&](const Doubles& g) { return f(X, g, B); })) < 2e-6);
    QVERIFY(worst(dbias, numericGradient(B, [&](const Doubles& b) { return f(X, G, b); })) < 2e-6);
    // Adding twice is twice the gradient.
    layerNormBackward({kTokens, kHidden}, dy.data(), x.data(), gain.data(), statistics.data(), dx.data(), Write::Add,
                      dgain.data(), dbias.data(), Write::Add);
    QVERIFY(worst(dgain, numericGradient(G, [&](const Doubles& g) { return 2 * f(X, g, B); })) < 2e-6);
}

void KernelTest::attentionAgreesWithFloat64_data() {
    QTest::addColumn<int>("batch");
    QTest::addColumn<int>("sequence");
    QTest::newRow("one tile") << 2 << 9;
    QTest::newRow("exactly one tile") << 1 << 64;
    QTest::newRow("three tiles, the last partly filled") << 1 << 131;
}

void KernelTest::attentionAgreesWithFloat64() {
    QFETCH(const int, batch);
    QFETCH(const int, sequence);
    const AttentionShape shape{batch, sequence, 2, 2, 3};
    const auto tokens = static_cast<std::size_t>(shape.tokens());
    const Floats qkv = randomFloats(tokens * 18, 6);
    const Floats dy = randomFloats(tokens * 6, 7);
    Floats y(tokens * 6), lse(tokens * 2), dqkv(tokens * 18), scratch(static_cast<std::size_t>(2 * 64 * sequence));
    attentionForward(shape, fusedRows(shape, qkv.data()), y.data(), lse.data(), scratch.data());
    attentionBackward(shape, fusedRows(shape, qkv.data()), y.data(), lse.data(), dy.data(),
                      fusedRows(shape, dqkv.data()), scratch.data());
    QVERIFY(worst(y, referenceAttention(shape, toDoubles(qkv))) < 2e-6);
    // Directional derivatives: all elements at once, since each costs a forward pass.
    for (unsigned seed = 10; seed < 13; ++seed) {
        const Floats direction = randomFloats(qkv.size(), seed);
        const auto along = [&](double step) {
            Doubles at = toDoubles(qkv);
            for (std::size_t i = 0; i < at.size(); ++i)
                at[i] += step * static_cast<double>(direction[i]);
            return weightedSum(referenceAttention(shape, at), dy);
        };
        const double expected = (along(1e-5) - along(-1e-5)) / 2e-5;
        const double got = weightedSum(toDoubles(dqkv), direction);
        QVERIFY2(std::abs(got - expected) < 1e-4 * (1 + std::abs(expected)),
                 qPrintable(QString("%1 %2").arg(got).arg(expected)));
    }
}

void KernelTest::linearAgreesWithFloat64() {
    constexpr std::int64_t T = 5, I = 7, O = 6;
    const Floats x = randomFloats(T * I, 20), w = randomFloats(O * I, 21), b = randomFloats(O, 22),
                 dy = randomFloats(T * O, 23);
    const Floats residual = randomFloats(T * O, 24);
    const auto reference = [&](const Doubles& X, const Doubles& W, const Doubles& B) {
        Doubles y(T * O);
        for (std::int64_t t = 0; t < T; ++t)
            for (std::int64_t o = 0; o < O; ++o) {
                double sum =
                    B[static_cast<std::size_t>(o)] + static_cast<double>(residual[static_cast<std::size_t>(t * O + o)]);
                for (std::int64_t i = 0; i < I; ++i)
                    sum += X[static_cast<std::size_t>(t * I + i)] * W[static_cast<std::size_t>(o * I + i)];
                y[static_cast<std::size_t>(t * O + o)] = sum;
            }
        return y;
    };
    Floats y(T * O), dx(T * I), dw(O * I), db(O);
    // In two slices of output rows, as a split operator is computed.
    for (const auto& [begin, end] : {std::pair<std::int64_t, std::int64_t>{0, 2}, {2, O}}) {
        linearForward({x.data(), T, I, I}, w.data() + begin * I, b.data() + begin,
                      {residual.data() + begin, T, end - begin, O}, {y.data() + begin, T, end - begin, O});
        const ConstMatrix part{dy.data() + begin, T, end - begin, O};
        linearBackwardWeight(part, {x.data(), T, I, I}, dw.data() + begin * I, Write::Overwrite);
        linearBackwardBias(part, db.data() + begin, Write::Overwrite);
        linearBackwardInput(part, w.data() + begin * I, {dx.data(), T, I, I},
                            begin == 0 ? Write::Overwrite : Write::Add);
    }
    const Doubles X = toDoubles(x), W = toDoubles(w), B = toDoubles(b);
    QVERIFY(worst(y, reference(X, W, B)) < 1e-6);
    QVERIFY(worst(dx, numericGradient(X, [&](const Doubles& at) { return weightedSum(reference(at, W, B), dy); })) <
            1e-6);
    QVERIFY(worst(dw, numericGradient(W, [&](const Doubles& at) { return weightedSum(reference(X, at, B), dy); })) <
            1e-6);
    QVERIFY(worst(db, numericGradient(B, [&](const Doubles& at) { return weightedSum(reference(X, W, at), dy); })) <
            1e-6);
}

void KernelTest::crossEntropyGradientIsThatOfItsLoss() {
    constexpr std::int64_t T = 3, V = 37;
    const Floats logits = randomFloats(T * V, 30, 4.0F);
    const std::int32_t targets[T] = {5, 0, 36};
    const auto reference = [&](const Doubles& at) {
        double loss = 0;
        for (std::int64_t t = 0; t < T; ++t) {
            double sum = 0;
            for (std::int64_t v = 0; v < V; ++v)
                sum += std::exp(at[static_cast<std::size_t>(t * V + v)]);
            loss += std::log(sum) - at[static_cast<std::size_t>(t * V + targets[t])];
        }
        return loss;
    };
    Floats gradient = logits, losses(T), correct(T);
    QVERIFY(std::abs(crossEntropy(logits.data(), targets, T, V, correct.data()).loss - reference(toDoubles(logits))) <
            1e-4);
    const LossSum sum = crossEntropyWithGradient(gradient.data(), targets, T, V, losses.data());
    QCOMPARE(sum.tokens, T);
    QVERIFY(std::abs(sum.loss - reference(toDoubles(logits))) < 1e-4);
    QVERIFY(worst(gradient, numericGradient(toDoubles(logits), reference)) < 1e-6);
}

void KernelTest::ignoredTargetsHaveNoGradient() {
    Floats logits = randomFloats(2 * 5, 31);
    Floats losses(2, 9.0F);
    const std::int32_t targets[2] = {kIgnoredTarget, 3};
    const LossSum sum = crossEntropyWithGradient(logits.data(), targets, 2, 5, losses.data());
    QCOMPARE(sum.tokens, std::int64_t{1});
    QCOMPARE(losses[0], 0.0F);
    for (int v = 0; v < 5; ++v)
        QCOMPARE(logits[static_cast<std::size_t>(v)], 0.0F);
}

void KernelTest::embeddingsOfRowRangesAddUp() {
    constexpr std::int64_t V = 7, H = 3, T = 5;
    const Floats table = randomFloats(V * H, 32);
    const std::int32_t ids[T] = {6, 0, 3, 3, 2};
    Floats whole(T * H), parts(T * H), gradient(V * H), gradients(V * H);
    const Floats dy = randomFloats(T * H, 33);
    embeddingForward(ids, {0, V}, table.data(), {whole.data(), T, H, H}, Write::Overwrite);
    embeddingBackward(ids, {0, V}, {dy.data(), T, H, H}, gradient.data());
    for (const auto& [begin, end] : {std::pair<std::int64_t, std::int64_t>{0, 3}, {3, V}}) {
        embeddingForward(ids, {begin, end}, table.data() + begin * H, {parts.data(), T, H, H}, Write::Overwrite);
        embeddingBackward(ids, {begin, end}, {dy.data(), T, H, H}, gradients.data() + begin * H);
    }
    QCOMPARE(parts, whole);
    QCOMPARE(gradients, gradient);
    QVERIFY(std::abs(gradient[9] - (dy[6] + dy[9])) < 1e-6F); // row 3 is used twice
}

void KernelTest::adamWFollowsItsFormula() {
    constexpr std::int64_t kCount = 37;
    const Floats gradient = randomFloats(kCount, 40);
    Floats weight = randomFloats(kCount, 41), first = randomFloats(kCount, 42), second(kCount, 0.5F);
    const Doubles w = toDoubles(weight), m = toDoubles(first);
    const AdamWStep step{0.25F, 0.01F, 0.9F, 0.95F, 1e-8F, 1.0F / (1.0F - 0.9F), 1.0F / (1.0F - 0.95F)};
    adamW(step, 0.1F, kCount, gradient.data(), weight.data(), first.data(), second.data());
    for (std::size_t i = 0; i < kCount; ++i) {
        const double g = static_cast<double>(gradient[i]) * 0.25;
        const double mi = 0.9 * m[i] + 0.1 * g;
        const double vi = 0.95 * 0.5 + 0.05 * g * g;
        const double expected = w[i] * (1 - 0.01 * 0.1) - 0.01 * (mi / 0.1) / (std::sqrt(vi / 0.05) + 1e-8);
        QVERIFY(std::abs(static_cast<double>(weight[i]) - expected) < 1e-5);
    }
}

void KernelTest::sgdFollowsItsFormula() {
    constexpr std::int64_t kCount = 37;
    const Floats gradient = randomFloats(kCount, 43);
    Floats weight = randomFloats(kCount, 44), momentum = randomFloats(kCount, 45);
    const Doubles w = toDoubles(weight), m = toDoubles(momentum);
    sgdMomentum({0.25F, 0.01F, 0.9F}, 0.1F, kCount, gradient.data(), weight.data(), momentum.data());
    for (std::size_t i = 0; i < kCount; ++i) {
        const double expected = 0.9 * m[i] + static_cast<double>(gradient[i]) * 0.25 + 0.1 * w[i];
        QVERIFY(std::abs(static_cast<double>(momentum[i]) - expected) < 1e-6);
        QVERIFY(std::abs(static_cast<double>(weight[i]) - (w[i] - 0.01 * expected)) < 1e-6);
    }
}

QTEST_GUILESS_MAIN(KernelTest)
#include "tst_kernels.moc"
