// SPDX-License-Identifier: GPL-3.0-or-later
#include "engine/support/FloatReference.h"
#include "runtime/ops/Attention.h"
#include "runtime/ops/RmsNorm.h"
#include "runtime/ops/Rotary.h"
#include "runtime/ops/SiluGate.h"

#include <QtTest/QtTest>

#include <cmath>

using namespace shardscope;
using namespace shardscope::engine;
using namespace shardscope::testing;

namespace {

Doubles referenceRmsNorm(std::int64_t tokens, std::int64_t hidden, const Doubles& x, const Doubles& gain) {
    Doubles y(x.size());
    for (std::int64_t t = 0; t < tokens; ++t) {
        double square = 0;
        for (std::int64_t i = 0; i < hidden; ++i)
            square += std::pow(x[static_cast<std::size_t>(t * hidden + i)], 2) / static_cast<double>(hidden);
        for (std::int64_t i = 0; i < hidden; ++i)
            y[static_cast<std::size_t>(t * hidden + i)] = x[static_cast<std::size_t>(t * hidden + i)] /
                                                          std::sqrt(square + 1e-6) * gain[static_cast<std::size_t>(i)];
    }
    return y;
}

/// Attention of one sequence with separate rows: q (S, heads, d), then k and v (S, kvHeads, d).
Doubles referenceGroupedAttention(AttentionShape shape, const Doubles& rows) {
    const std::int64_t queries = shape.sequence * shape.width();
    const std::int64_t keys = shape.sequence * shape.kvHeads * shape.headDim;
    Doubles out(static_cast<std::size_t>(queries), 0.0);
    for (std::int64_t h = 0; h < shape.heads; ++h) {
        const std::int64_t group = h * shape.kvHeads / shape.heads;
        const auto q = [&](std::int64_t i, std::int64_t d) {
            return rows[static_cast<std::size_t>((i * shape.heads + h) * shape.headDim + d)];
        };
        const auto kv = [&](std::int64_t which, std::int64_t i, std::int64_t d) {
            return rows[static_cast<std::size_t>(queries + which * keys + (i * shape.kvHeads + group) * shape.headDim +
                                                 d)];
        };
        for (std::int64_t i = 0; i < shape.sequence; ++i) {
            Doubles p;
            double sum = 0;
            for (std::int64_t j = 0; j <= i; ++j) {
                double score = 0;
                for (std::int64_t d = 0; d < shape.headDim; ++d)
                    score += q(i, d) * kv(0, j, d);
                p.push_back(std::exp(score / std::sqrt(static_cast<double>(shape.headDim))));
                sum += p.back();
            }
            for (std::int64_t j = 0; j <= i; ++j)
                for (std::int64_t d = 0; d < shape.headDim; ++d)
                    out[static_cast<std::size_t>((i * shape.heads + h) * shape.headDim + d)] +=
                        p[static_cast<std::size_t>(j)] / sum * kv(1, j, d);
        }
    }
    return out;
}

} // namespace

/// Kernels of the Llama family against the same formulas in float64.
class LlamaKernelTest : public QObject {
    Q_OBJECT

private Q_SLOTS:
    void rmsNormAgreesWithFloat64();
    void siluGateAgreesWithFloat64();
    void groupedAttentionAgreesWithFloat64();
    void rotaryAgreesWithFloat64();
    void rotaryFrequenciesAreScaled();
    void unknownScalingIsNamed_data();
    void unknownScalingIsNamed();
};

void LlamaKernelTest::rmsNormAgreesWithFloat64() {
    constexpr std::int64_t kTokens = 3;
    constexpr std::int64_t kHidden = 21;
    const Floats x = randomFloats(kTokens * kHidden, 2, 3.0F);
    const Floats gain = randomFloats(kHidden, 3);
    const Floats dy = randomFloats(kTokens * kHidden, 5);
    Floats y(x.size()), reciprocals(kTokens), dx(x.size()), dgain(kHidden);
    rmsNormForward({kTokens, kHidden}, x.data(), gain.data(), 1e-6F, y.data(), reciprocals.data());
    rmsNormBackward({kTokens, kHidden}, dy.data(), x.data(), gain.data(), reciprocals.data(), dx.data(),
                    Write::Overwrite, dgain.data(), Write::Overwrite);
    const Doubles X = toDoubles(x), G = toDoubles(gain);
    const auto f = [&](const Doubles& a, const Doubles& g) {
        return weightedSum(referenceRmsNorm(kTokens, kHidden, a, g), dy);
    };
    QVERIFY(worst(y, referenceRmsNorm(kTokens, kHidden, X, G)) < 1e-6);
    QVERIFY(worst(dx, numericGradient(X, [&](const Doubles& a) { return f(a, G); })) < 2e-6);
    QVERIFY(worst(dgain, numericGradient(G, [&](const Doubles& g) { return f(X, g); })) < 2e-6);
    // In place, and adding to the gain's gradient.
    Floats inPlace = dy;
    rmsNormBackward({kTokens, kHidden}, inPlace.data(), x.data(), gain.data(), reciprocals.data(), inPlace.data(),
                    Write::Overwrite, dgain.data(), Write::Add);
    QCOMPARE(inPlace, dx);
    QVERIFY(worst(dgain, numericGradient(G, [&](const Doubles& g) { return 2 * f(X, g); })) < 2e-6);
}

void LlamaKernelTest::siluGateAgreesWithFloat64() {
    constexpr std::int64_t kCount = 53;
    const Floats gate = randomFloats(kCount, 6, 4.0F);
    const Floats up = randomFloats(kCount, 7);
    const Floats dy = randomFloats(kCount, 8);
    Floats y(kCount), dgate(kCount), dup = dy; // the gradient of up takes the place of dy
    siluGateForward({gate.data(), 1, kCount, kCount}, {up.data(), 1, kCount, kCount}, {y.data(), 1, kCount, kCount});
    siluGateBackward({gate.data(), 1, kCount, kCount}, {up.data(), 1, kCount, kCount}, {dup.data(), 1, kCount, kCount},
                     {dgate.data(), 1, kCount, kCount}, {dup.data(), 1, kCount, kCount});
    const auto f = [](const Doubles& g, const Doubles& u) {
        Doubles out(g.size());
        for (std::size_t i = 0; i < g.size(); ++i)
            out[i] = g[i] / (1 + std::exp(-g[i])) * u[i];
        return out;
    };
    const Doubles G = toDoubles(gate), U = toDoubles(up);
    QVERIFY(worst(y, f(G, U)) < 1e-6);
    QVERIFY(worst(dgate, numericGradient(G, [&](const Doubles& g) { return weightedSum(f(g, U), dy); })) < 1e-6);
    QVERIFY(worst(dup, numericGradient(U, [&](const Doubles& u) { return weightedSum(f(G, u), dy); })) < 1e-6);
}

void LlamaKernelTest::groupedAttentionAgreesWithFloat64() {
    const AttentionShape shape{1, 70, 6, 2, 4}; // two tiles, three query heads for each key head
    const auto queries = static_cast<std::size_t>(shape.sequence * shape.width());
    const auto keys = static_cast<std::size_t>(shape.sequence * shape.kvHeads * shape.headDim);
    const Floats rows = randomFloats(queries + 2 * keys, 9);
    const Floats dy = randomFloats(queries, 10);
    Floats y(queries), lse(static_cast<std::size_t>(6 * 70)), gradient(rows.size()), scratch(2 * 64 * 70);
    const auto view = [&](auto* at) {
        return AttentionRows<std::remove_pointer_t<decltype(at)>>{at, at + queries, at + queries + keys, shape.width(),
                                                                  shape.kvHeads * shape.headDim};
    };
    attentionForward(shape, view(rows.data()), y.data(), lse.data(), scratch.data());
    attentionBackward(shape, view(rows.data()), y.data(), lse.data(), dy.data(), view(gradient.data()), scratch.data());
    QVERIFY(worst(y, referenceGroupedAttention(shape, toDoubles(rows))) < 2e-6);
    for (unsigned seed = 20; seed < 24; ++seed) {
        const Floats direction = randomFloats(rows.size(), seed);
        const auto along = [&](double step) {
            Doubles at = toDoubles(rows);
            for (std::size_t i = 0; i < at.size(); ++i)
                at[i] += step * static_cast<double>(direction[i]);
            return weightedSum(referenceGroupedAttention(shape, at), dy);
        };
        const double expected = (along(1e-5) - along(-1e-5)) / 2e-5;
        const double got = weightedSum(toDoubles(gradient), direction);
        QVERIFY2(std::abs(got - expected) < 1e-4 * (1 + std::abs(expected)),
                 qPrintable(QString("%1 %2").arg(got).arg(expected)));
    }
}

void LlamaKernelTest::rotaryAgreesWithFloat64() {
    constexpr std::int64_t kSequence = 5, kTokens = 10, kHeads = 3, kHeadDim = 6;
    const Floats x = randomFloats(kTokens * kHeads * kHeadDim, 11);
    const auto rotary = Rotary::create({100.0, "", ""}, kHeadDim);
    QVERIFY(rotary);
    Floats y = x;
    rotary->apply(y.data(), kTokens, kSequence, kHeads, Rotary::Direction::Forward);
    Doubles expected(x.size());
    for (std::int64_t t = 0; t < kTokens; ++t)
        for (std::int64_t h = 0; h < kHeads; ++h)
            for (std::int64_t i = 0; i < kHeadDim / 2; ++i) {
                const auto low = static_cast<std::size_t>((t * kHeads + h) * kHeadDim + i);
                const auto high = low + kHeadDim / 2;
                const double angle = static_cast<double>(t % kSequence) *
                                     std::pow(100.0, -2.0 * static_cast<double>(i) / static_cast<double>(kHeadDim));
                const double a = static_cast<double>(x[low]), b = static_cast<double>(x[high]);
                expected[low] = a * std::cos(angle) - b * std::sin(angle);
                expected[high] = b * std::cos(angle) + a * std::sin(angle);
            }
    QVERIFY(worst(y, expected) < 1e-6);
    rotary->apply(y.data(), kTokens, kSequence, kHeads, Rotary::Direction::Backward);
    QVERIFY(worst(y, toDoubles(x)) < 1e-6); // a rotation's gradient is the opposite rotation
}

/// Llama 3.1's parameters: short waves stay, long ones are stretched, those between are blended.
void LlamaKernelTest::rotaryFrequenciesAreScaled() {
    const auto plain = Rotary::create({500000.0, "", ""}, 128);
    const auto linear = Rotary::create({500000.0, "linear", R"({"type":"linear","factor":2.0})"}, 128);
    const auto scaled = Rotary::create({500000.0, "llama3",
                                        R"({"rope_type":"llama3","factor":8.0,"low_freq_factor":1.0,)"
                                        R"("high_freq_factor":4.0,"original_max_position_embeddings":8192})"},
                                       128);
    QVERIFY(plain && linear && scaled);
    int kept = 0, stretched = 0, blended = 0;
    for (std::size_t i = 0; i < 64; ++i) {
        const double before = plain->frequencies()[i];
        QCOMPARE(linear->frequencies()[i], before / 2);
        const double ratio = scaled->frequencies()[i] / before;
        const double wavelength = 2 * M_PI / before;
        if (wavelength < 8192.0 / 4)
            kept += std::abs(ratio - 1) < 1e-12 ? 1 : 0;
        else if (wavelength > 8192.0)
            stretched += std::abs(ratio - 1.0 / 8) < 1e-12 ? 1 : 0;
        else
            blended += ratio > 1.0 / 8 && ratio < 1 ? 1 : 0;
    }
    QCOMPARE(kept + stretched + blended, 64);
    QVERIFY(kept > 20 && stretched > 20 && blended > 3);
}

void LlamaKernelTest::unknownScalingIsNamed_data() {
    QTest::addColumn<QString>("kind");
    QTest::addColumn<QString>("scaling");
    QTest::addColumn<QString>("named");
    QTest::newRow("another kind") << "yarn"
                                  << R"({"factor":4})"
                                  << "rope.scaling_kind";
    QTest::newRow("no factor") << "linear"
                               << R"({})"
                               << "factor";
    QTest::newRow("no context") << "llama3"
                                << R"({"factor":8,"low_freq_factor":1,"high_freq_factor":4})"
                                << "original_max_position_embeddings";
    QTest::newRow("bounds the wrong way round")
        << "llama3"
        << R"({"factor":8,"low_freq_factor":4,"high_freq_factor":1,"original_max_position_embeddings":8192})"
        << "high_freq_factor";
    QTest::newRow("not JSON") << "llama3"
                              << "{"
                              << "rope.scaling";
}

void LlamaKernelTest::unknownScalingIsNamed() {
    QFETCH(const QString, kind);
    QFETCH(const QString, scaling);
    QFETCH(const QString, named);
    const auto rotary = Rotary::create({10000.0, kind.toStdString(), scaling.toStdString()}, 8);
    QVERIFY(!rotary);
    QVERIFY2(rotary.error().message.find(named.toStdString()) != std::string::npos, rotary.error().message.c_str());
}

QTEST_GUILESS_MAIN(LlamaKernelTest)
#include "tst_llama_kernels.moc"
