// SPDX-License-Identifier: GPL-3.0-or-later
// Every kernel body that CPU and GPU share, against float64 formulas: by one thread and by a team of threads in lock
// step, in float32 and in bf16.
#include "engine/support/FloatReference.h"
#include "engine/support/KernelMemory.h"
#include "engine/support/NetworkReference.h"
#include "engine/support/PortableDevice.h"

#include <QtTest/QtTest>

#include <cmath>
#include <memory>

using namespace shardscope;
using namespace shardscope::engine;
using namespace shardscope::testing;
using shared::BFloat16;

class SharedKernelTest : public QObject {
    Q_OBJECT

private Q_SLOTS:
    void initTestCase();
    void bf16RoundsToNearestEven();
    void stochasticRoundingIsRightOnAverage();
    void norms_data() { addRows(); }
    void norms();
    void pointwise_data() { addRows(); }
    void pointwise();
    void rotary_data() { addRows(); }
    void rotary();
    void attention_data() { addRows(); }
    void attention();
    void crossEntropy_data() { addRows(); }
    void crossEntropy();
    void onlineSoftmaxIsThatOfTheWhole();
    void embeddings_data() { addRows(); }
    void embeddings();
    void sumsOfSquares_data() { addRows(); }
    void sumsOfSquares();
    void biasGradients_data() { addRows(); }
    void biasGradients();
    void adamWFollowsTheFormula_data() { addRows(); }
    void adamWFollowsTheFormula();
    void sgdFollowsTheFormula();
    void smallStepsAreKeptOnAverage();

private:
    void addRows();
    /// What the row asks for: the kernels, the type, and how far they may be off.
    Kernels& kernels();
    static ElementType type() {
        return std::strstr(QTest::currentDataTag(), "bf16") ? ElementType::BFloat16 : ElementType::Float32;
    }
    /// bf16 has 8 bits: results are rounded once, and sums of rounded numbers a few times.
    static double tolerance() { return type() == ElementType::BFloat16 ? 6e-3 : 4e-6; }
    bool isClose(const Memory& got, const Doubles& expected) {
        const double off = worst(got.floats(), expected);
        if (!(off < tolerance()))
            qWarning("off by %g", off);
        return off < tolerance();
    }

    std::unique_ptr<Kernels> m_loop, m_threads;
};

void SharedKernelTest::initTestCase() {
    m_loop = std::make_unique<PortableKernels<LoopLauncher>>();
    m_threads = std::make_unique<PortableKernels<ThreadLauncher>>();
}

void SharedKernelTest::addRows() {
    QTest::addColumn<int>("unused");
    for (const char* row : {"one thread, fp32", "team, fp32", "one thread, bf16", "team, bf16"})
        QTest::newRow(row) << 0;
}

Kernels& SharedKernelTest::kernels() {
    return std::strstr(QTest::currentDataTag(), "team") ? *m_threads : *m_loop;
}

void SharedKernelTest::bf16RoundsToNearestEven() {
    const auto rounded = [](float value) {
        const BFloat16 half = shared::roundToNearest(value);
        return shared::load(&half);
    };
    QCOMPARE(rounded(1.0F), 1.0F);
    QCOMPARE(rounded(1.0F + 0x1p-8F), 1.0F);               // a tie goes to the even one below
    QCOMPARE(rounded(1.0F + 3 * 0x1p-8F), 1.0F + 0x1p-6F); // and to the even one above
    QCOMPARE(rounded(1.0F + 0x1p-8F + 0x1p-20F), 1.0F + 0x1p-7F);
    QCOMPARE(rounded(-3.0F - 0x1p-9F), -3.0F);
    QCOMPARE(rounded(3.4e38F), INFINITY);
    QVERIFY(std::isnan(rounded(NAN)));
    QVERIFY(std::isnan(rounded(shared::floatOf(0x7F800001U)))); // whose upper half alone would be infinite
    for (std::uint32_t bits = 0; bits < 0x10000U; ++bits) {     // whatever is a bf16 stays what it is
        const float value = shared::floatOf(bits << 16);
        if (!std::isnan(value))
            QCOMPARE(shared::bitsOf(rounded(value)), bits << 16);
    }
}

void SharedKernelTest::stochasticRoundingIsRightOnAverage() {
    for (const float value : {1.0F + 0x1p-10F, -2.7182817F, 1e-3F, 0.1F}) {
        double sum = 0;
        for (std::uint32_t random = 0; random < 0x10000U; ++random) {
            const BFloat16 half = shared::roundStochastically(value, random);
            sum += static_cast<double>(shared::load(&half));
        }
        QVERIFY(std::abs(sum / 0x10000 - static_cast<double>(value)) < 1e-9 * std::abs(static_cast<double>(value)));
    }
    const BFloat16 infinite = shared::roundStochastically(INFINITY, 0xFFFF);
    QCOMPARE(shared::load(&infinite), INFINITY);
}

void SharedKernelTest::norms() {
    constexpr std::int64_t kTokens = 5, kHidden = 21;
    Kernels& k = kernels();
    const Memory x(type(), randomFloats(kTokens * kHidden, 1, 3.0F)), gain(type(), randomFloats(kHidden, 2)),
        bias(type(), randomFloats(kHidden, 3)), dy(type(), randomFloats(kTokens * kHidden, 4));
    const Memory before(type(), randomFloats(kTokens * kHidden, 5));
    const Doubles X = x.doubles(), G = gain.doubles(), B = bias.doubles();
    for (const bool centred : {true, false}) {
        Memory y(type(), kTokens * kHidden), dx = before, dgain(type(), kHidden), dbias(type(), kHidden);
        Memory statistics(ElementType::Float32, 2 * kTokens);
        if (centred) {
            k.layerNormForward({kTokens, kHidden}, x, gain, bias, 1e-5F, y, statistics);
            k.layerNormBackward({kTokens, kHidden}, dy, x, gain, statistics, dx, Write::Add, dgain, dbias,
                                Write::Overwrite);
        } else {
            k.rmsNormForward({kTokens, kHidden}, x, gain, 1e-5F, y, statistics);
            k.rmsNormBackward({kTokens, kHidden}, dy, x, gain, statistics, dx, Write::Add, dgain, Write::Overwrite);
        }
        const auto f = [&](const Doubles& a, const Doubles& g, const Doubles& b) {
            return weightedSum(referenceNorm(kHidden, a, g, b, centred), dy.floats());
        };
        QVERIFY(isClose(y, referenceNorm(kHidden, X, G, B, centred)));
        QVERIFY(isClose(dx, sumOf(before.doubles(), numericGradient(X, [&](const Doubles& a) { return f(a, G, B); }))));
        QVERIFY(isClose(dgain, numericGradient(G, [&](const Doubles& g) { return f(X, g, B); })));
        if (centred) {
            QVERIFY(isClose(dbias, numericGradient(B, [&](const Doubles& b) { return f(X, G, b); })));
            continue;
        }
        // In place, as the norms over heads do.
        Memory inPlace = dy, again(type(), kHidden);
        k.rmsNormBackward({kTokens, kHidden}, inPlace, x, gain, statistics, inPlace, Write::Overwrite, again,
                          Write::Overwrite);
        QVERIFY(isClose(inPlace, numericGradient(X, [&](const Doubles& a) { return f(a, G, B); })));
        QCOMPARE(again.floats(), dgain.floats());
    }
}

void SharedKernelTest::pointwise() {
    constexpr std::int64_t kRows = 3, kColumns = 19, kCount = kRows * kColumns;
    Kernels& k = kernels();
    const Memory a(type(), randomFloats(kCount, 6, 3.0F)), b(type(), randomFloats(kCount, 7)),
        dy(type(), randomFloats(kCount, 8));
    const auto gelu = [](double x) {
        return 0.5 * x * (1 + std::tanh(std::sqrt(2 / M_PI) * (x + 0.044715 * x * x * x)));
    };
    const auto each = [](const Doubles& x, const std::function<double(double, std::size_t)>& f) {
        Doubles y(x.size());
        for (std::size_t i = 0; i < x.size(); ++i)
            y[i] = f(x[i], i);
        return y;
    };
    Memory identity(type(), kColumns * kColumns); // gelu alone, through a matrix product that changes nothing
    for (std::int64_t i = 0; i < kColumns; ++i)
        PortableKernels<LoopLauncher>::put(identity, i * kColumns + i, 1, Write::Overwrite);
    Memory before(type(), kCount), y(type(), kCount), dx = dy;
    k.linearGeluForward(a.constMatrix(kRows, kColumns), identity, {}, before.matrix(kRows, kColumns),
                        y.matrix(kRows, kColumns));
    QCOMPARE(before.floats(), a.floats());
    QVERIFY(isClose(y, each(a.doubles(), [&](double x, std::size_t) { return gelu(x); })));
    k.geluTanhBackward(a.constMatrix(kRows, kColumns), dx.constMatrix(kRows, kColumns), dx.matrix(kRows, kColumns));
    QVERIFY(isClose(dx, numericGradient(a.doubles(), [&](const Doubles& x) {
                        return weightedSum(each(x, [&](double v, std::size_t) { return gelu(v); }), dy.floats());
                    })));

    const auto silu = [&](const Doubles& gate, const Doubles& up) {
        return each(gate, [&](double g, std::size_t i) { return g / (1 + std::exp(-g)) * up[i]; });
    };
    Memory dgate = dy, dup(type(), kCount); // the gradient of the gate takes the place of dy
    k.siluGateForward(a.constMatrix(kRows, kColumns), b.constMatrix(kRows, kColumns), y.matrix(kRows, kColumns));
    k.siluGateBackward(a.constMatrix(kRows, kColumns), b.constMatrix(kRows, kColumns),
                       dgate.constMatrix(kRows, kColumns), dgate.matrix(kRows, kColumns), dup.matrix(kRows, kColumns));
    QVERIFY(isClose(y, silu(a.doubles(), b.doubles())));
    QVERIFY(isClose(dgate, numericGradient(a.doubles(), [&](const Doubles& g) {
                        return weightedSum(silu(g, b.doubles()), dy.floats());
                    })));
    QVERIFY(isClose(dup, numericGradient(b.doubles(), [&](const Doubles& u) {
                        return weightedSum(silu(a.doubles(), u), dy.floats());
                    })));
}

void SharedKernelTest::rotary() {
    constexpr std::int64_t kSequence = 7, kHeads = 3, kDim = 6, kTokens = 2 * kSequence;
    Kernels& k = kernels();
    const Rotary rotary = *Rotary::create(contract::Rope{100.0, "", ""}, kDim);
    k.prepareRotary(rotary, kSequence);
    const Memory x(type(), randomFloats(kTokens * kHeads * kDim, 9));
    Memory y = x;
    k.rotate(rotary, y, kTokens, kSequence, kHeads, Rotary::Direction::Forward);
    Doubles expected = x.doubles();
    for (std::size_t t = 0; t < kTokens; ++t)
        for (std::size_t h = 0; h < kHeads; ++h)
            for (std::size_t i = 0; i < kDim / 2; ++i) {
                const double angle =
                    static_cast<double>(t % kSequence) * std::pow(100.0, -2.0 * static_cast<double>(i) / kDim);
                double& low = expected[(t * kHeads + h) * kDim + i];
                double& high = expected[(t * kHeads + h) * kDim + kDim / 2 + i];
                const double a = low, b = high;
                low = a * std::cos(angle) - b * std::sin(angle);
                high = b * std::cos(angle) + a * std::sin(angle);
            }
    QVERIFY(isClose(y, expected));
    k.rotate(rotary, y, kTokens, kSequence, kHeads, Rotary::Direction::Backward);
    QVERIFY(isClose(y, x.doubles()));
}

void SharedKernelTest::attention() {
    const AttentionShape s{2, 6, 4, 2, 5};
    Kernels& k = kernels();
    const std::int64_t queries = s.tokens() * s.width(), keys = s.tokens() * s.kvHeads * s.headDim;
    const Memory rows(type(), randomFloats(static_cast<std::size_t>(queries + 2 * keys), 10));
    const Memory doutput(type(), randomFloats(static_cast<std::size_t>(queries), 11));
    Memory output(type(), static_cast<std::size_t>(queries)),
        logsumexp(ElementType::Float32, static_cast<std::size_t>(s.tokens() * s.heads)),
        gradients(type(), static_cast<std::size_t>(queries + 2 * keys), 9.0F);
    const ConstElements in(rows);
    const Elements out(gradients);
    const AttentionElements given{in, in + queries, in + (queries + keys), s.width(), s.kvHeads * s.headDim};
    k.attentionForward(s, given, output, logsumexp, {});
    const Doubles expected = referenceAttention(s, rows.doubles());
    QVERIFY(isClose(output, Doubles(expected.begin(), expected.begin() + queries)));
    QVERIFY(worst(logsumexp.floats(), Doubles(expected.begin() + queries, expected.end())) < 1e-5);
    // From the exact output, so that the tolerance is that of the backward pass alone.
    Floats exact;
    for (std::int64_t i = 0; i < queries; ++i)
        exact.push_back(static_cast<float>(expected[static_cast<std::size_t>(i)]));
    k.attentionBackward(s, given, Memory(type(), exact), logsumexp, doutput,
                        {out, out + queries, out + (queries + keys), s.width(), s.kvHeads * s.headDim}, {});
    QVERIFY(isClose(gradients, numericGradient(rows.doubles(), [&](const Doubles& r) {
                        const Doubles all = referenceAttention(s, r);
                        return weightedSum(Doubles(all.begin(), all.begin() + queries), doutput.floats());
                    })));
}

void SharedKernelTest::crossEntropy() {
    constexpr std::int64_t kTokens = 6, kVocabulary = 37;
    Kernels& k = kernels();
    const Memory logits(type(), randomFloats(kTokens * kVocabulary, 12, 4.0F));
    const std::vector<std::int32_t> targets{0, 36, kIgnoredTarget, 5, 17, 5};
    const auto loss = [&](const Doubles& z, std::size_t t) {
        double sum = 0;
        for (std::size_t i = 0; i < kVocabulary; ++i)
            sum += std::exp(z[t * kVocabulary + i]);
        return targets[t] == kIgnoredTarget ? 0.0
                                            : std::log(sum) - z[t * kVocabulary + static_cast<std::size_t>(targets[t])];
    };
    const auto total = [&](const Doubles& z) {
        double sum = 0;
        for (std::size_t t = 0; t < kTokens; ++t)
            sum += loss(z, t);
        return sum;
    };
    const Doubles z = logits.doubles();
    Memory gradient = logits, losses(ElementType::Float32, kTokens), marks(ElementType::Float32, kTokens);
    const LossSum judged = k.crossEntropy(logits, targets.data(), kTokens, kVocabulary, marks);
    QVERIFY(std::abs(judged.loss - total(z)) < 1e-5 * total(z));
    QCOMPARE(judged.tokens, 5);
    std::int64_t right = 0;
    for (std::size_t t = 0; t < kTokens; ++t) {
        const auto row = z.begin() + static_cast<std::ptrdiff_t>(t) * kVocabulary;
        const bool best = targets[t] != kIgnoredTarget && row[targets[t]] >= *std::max_element(row, row + kVocabulary);
        right += best;
        QCOMPARE(marks.floats()[t], best ? 1.0F : 0.0F);
    }
    QCOMPARE(judged.correct, right);
    k.clearSums();
    for (int micro = 0; micro < 2; ++micro) {
        gradient = logits;
        k.crossEntropyWithGradient(gradient, targets.data(), kTokens, kVocabulary, losses);
    }
    const auto sums = k.readSums();
    QVERIFY(sums.has_value());
    QVERIFY(std::abs(sums->loss - 2 * total(z)) < 1e-5 * total(z));
    QCOMPARE(sums->tokens, 10);
    for (std::size_t t = 0; t < kTokens; ++t)
        QVERIFY(std::abs(static_cast<double>(losses.floats()[t]) - loss(z, t)) < 1e-5);
    QVERIFY(isClose(gradient, numericGradient(z, total)));
    // A loss that is no number is not taken for a small one.
    Memory broken = logits;
    PortableKernels<LoopLauncher>::put(broken, 3, static_cast<double>(NAN), Write::Overwrite);
    QVERIFY(std::isnan(k.crossEntropy(broken, targets.data(), kTokens, kVocabulary, marks).loss));
    k.clearSums();
    k.crossEntropyWithGradient(broken, targets.data(), kTokens, kVocabulary, losses);
    QVERIFY(std::isnan(k.readSums()->loss));
}

void SharedKernelTest::onlineSoftmaxIsThatOfTheWhole() {
    const Floats values = randomFloats(1000, 13, 30.0F);
    shared::OnlineSoftmax online;
    for (const float value : values)
        online.join(value);
    double sum = 0;
    const auto largest = static_cast<double>(*std::max_element(values.begin(), values.end()));
    for (const float value : values)
        sum += std::exp(static_cast<double>(value) - largest);
    QVERIFY(std::abs(static_cast<double>(online.logSumExp()) - largest - std::log(sum)) < 1e-5);
    QCOMPARE(static_cast<double>(online.maximum), largest);
}

void SharedKernelTest::embeddings() {
    constexpr std::int64_t kSequence = 4, kTokens = 8, kHidden = 5, kRows = 11;
    Kernels& k = kernels();
    const std::vector<std::int32_t> ids{3, 0, 3, 10, 7, 3, 0, 9};
    const Memory table(type(), randomFloats(kRows * kHidden, 14)), dy(type(), randomFloats(kTokens * kHidden, 15));
    const ConstElements whole(table);
    Memory y(type(), kTokens * kHidden), gradient(type(), kRows * kHidden, 0.5F);
    Doubles expected(kTokens * kHidden), expectedGradient(kRows * kHidden, 0.5);
    for (std::size_t t = 0; t < kTokens; ++t)
        for (std::size_t c = 0; c < kHidden; ++c) {
            expected[t * kHidden + c] = table.doubles()[static_cast<std::size_t>(ids[t]) * kHidden + c];
            expectedGradient[static_cast<std::size_t>(ids[t]) * kHidden + c] += dy.doubles()[t * kHidden + c];
        }
    const Elements out(gradient);
    for (const contract::RowRange rows : {contract::RowRange{0, 4}, contract::RowRange{4, kRows}}) {
        k.embeddingForward(ids.data(), rows, whole + rows.begin * kHidden, y.matrix(kTokens, kHidden));
        k.embeddingBackward(ids.data(), rows, dy.constMatrix(kTokens, kHidden), out + rows.begin * kHidden);
    }
    QVERIFY(isClose(y, expected));
    QVERIFY(isClose(gradient, expectedGradient));
    // Positions are added to what is there.
    Memory positions(type(), kRows * kHidden);
    Doubles expectedPositions(kRows * kHidden, 0.0);
    for (std::size_t t = 0; t < kTokens; ++t)
        for (std::size_t c = 0; c < kHidden; ++c) {
            expected[t * kHidden + c] += table.doubles()[t % kSequence * kHidden + c];
            expectedPositions[t % kSequence * kHidden + c] += dy.doubles()[t * kHidden + c];
        }
    const Elements positionsOut(positions);
    for (const contract::RowRange rows : {contract::RowRange{0, 3}, contract::RowRange{3, kRows}}) {
        k.positionForward(kSequence, rows, whole + rows.begin * kHidden, y.matrix(kTokens, kHidden));
        k.positionBackward(kSequence, rows, dy.constMatrix(kTokens, kHidden), positionsOut + rows.begin * kHidden);
    }
    QVERIFY(isClose(y, expected));
    QVERIFY(isClose(positions, expectedPositions));
    k.clear(positions, kHidden);
    QCOMPARE(positions.floats()[0], 0.0F);
    QVERIFY(positions.floats()[kHidden] != 0.0F);
}

void SharedKernelTest::sumsOfSquares() {
    Kernels& k = kernels();
    for (const std::size_t count : {std::size_t{0}, std::size_t{1}, std::size_t{40001}}) {
        const Memory values(type(), randomFloats(count, 16));
        double expected = 0;
        for (const double v : values.doubles())
            expected += v * v;
        k.clearSums();
        k.addSquares(SquareSum::Whole, values, static_cast<std::int64_t>(count), 1);
        k.addSquares(SquareSum::Sharded, values, static_cast<std::int64_t>(count), 4);
        k.addSquares(SquareSum::Sharded, values, static_cast<std::int64_t>(count), 4);
        const auto sums = k.readSums();
        QVERIFY(std::abs(sums->squares[0] - expected) <= 1e-12 * expected);
        QVERIFY(std::abs(sums->squares[1] - expected / 2) <= 1e-12 * expected);
    }
}

void SharedKernelTest::biasGradients() {
    constexpr std::int64_t kTokens = 9, kColumns = 7, kStride = 12;
    const Memory dy(type(), randomFloats(kTokens * kStride, 17));
    for (const ElementType gradients : {type(), ElementType::Float32}) {
        Memory sums(gradients, kColumns, 2.0F);
        kernels().linearBackwardBias({dy, kTokens, kColumns, kStride}, sums, Write::Add);
        Doubles expected(kColumns, 2.0);
        for (std::size_t t = 0; t < kTokens; ++t)
            for (std::size_t c = 0; c < kColumns; ++c)
                expected[c] += dy.doubles()[t * kStride + c];
        QVERIFY(isClose(sums, expected));
    }
}

void SharedKernelTest::adamWFollowsTheFormula() {
    constexpr std::size_t kCount = 33;
    AdamWStep step;
    step.gradientScale = 0.25F;
    step.learningRate = 0.01F;
    step.firstCorrection = 1.0F / (1 - 0.9F * 0.9F);
    step.secondCorrection = 1.0F / (1 - 0.95F * 0.95F);
    const Memory gradient(type(), randomFloats(kCount, 18));
    const Floats start = randomFloats(kCount, 19);
    Memory weight(type(), start), master(ElementType::Float32, start),
        first(ElementType::Float32, randomFloats(kCount, 20, 0.1F)),
        second(ElementType::Float32, Floats(kCount, 0.02F));
    Doubles expected, expectedFirst, expectedSecond;
    for (std::size_t i = 0; i < kCount; ++i) {
        const double g = gradient.doubles()[i] * 0.25;
        const double m = 0.9 * first.doubles()[i] + 0.1 * g, v = 0.95 * second.doubles()[i] + 0.05 * g * g;
        const double w = type() == ElementType::BFloat16 ? static_cast<double>(start[i]) : weight.doubles()[i];
        expected.push_back(w * (1 - 0.01 * 0.1) - 0.01 * m / (1 - 0.81) / (std::sqrt(v / (1 - 0.9025)) + 1e-8));
        expectedFirst.push_back(m);
        expectedSecond.push_back(v);
    }
    TensorUpdate tensor{0.1F, kCount, gradient, weight, {}, first, second, 0, 0};
    if (type() == ElementType::BFloat16)
        tensor.master = master;
    kernels().adamW(step, tensor);
    QVERIFY(isClose(weight, expected));
    QVERIFY(worst(first.floats(), expectedFirst) < 1e-6);
    QVERIFY(worst(second.floats(), expectedSecond) < 1e-6);
    if (type() != ElementType::BFloat16)
        return;
    QVERIFY(worst(master.floats(), expected) < 1e-6);
    for (std::size_t i = 0; i < kCount; ++i) { // the weight is the nearest of the master
        const BFloat16 nearest = shared::roundToNearest(master.floats()[i]);
        QCOMPARE(weight.floats()[i], shared::load(&nearest));
    }
}

void SharedKernelTest::sgdFollowsTheFormula() {
    constexpr std::size_t kCount = 33;
    const ElementType kFloat = ElementType::Float32;
    const Memory gradient(kFloat, randomFloats(kCount, 21));
    Memory weight(kFloat, randomFloats(kCount, 22)), momentum(kFloat, randomFloats(kCount, 23));
    Doubles expectedWeight, expectedMomentum;
    for (std::size_t i = 0; i < kCount; ++i) {
        const double w = weight.doubles()[i];
        expectedMomentum.push_back(0.9 * momentum.doubles()[i] + gradient.doubles()[i] * 0.25 + 0.1 * w);
        expectedWeight.push_back(w - 0.01 * expectedMomentum.back());
    }
    m_loop->sgdMomentum({0.25F, 0.01F, 0.9F}, {0.1F, kCount, gradient, weight, {}, momentum, {}, 0, 0});
    QVERIFY(worst(weight.floats(), expectedWeight) < 1e-6);
    QVERIFY(worst(momentum.floats(), expectedMomentum) < 1e-6);
}

/// Without a master, steps far below the spacing of bf16 still move the weights by their sum on average, the same
/// wherever the shards are cut.
void SharedKernelTest::smallStepsAreKeptOnAverage() {
    constexpr std::int64_t kCount = 4096;
    constexpr int kSteps = 32;
    AdamWStep step;
    step.learningRate = 2e-4F; // the spacing at 1 is 2^-8 below and 2^-7 above
    const Memory gradient(ElementType::BFloat16, kCount, 1.0F);
    const auto train = [&](std::int64_t cut) {
        Memory weight(ElementType::BFloat16, kCount, 1.0F), first(ElementType::BFloat16, kCount),
            second(ElementType::BFloat16, kCount);
        for (int n = 1; n <= kSteps; ++n) {
            step.firstCorrection = static_cast<float>(1 / (1 - std::pow(0.9, n)));
            step.secondCorrection = static_cast<float>(1 / (1 - std::pow(0.95, n)));
            for (const auto& [begin, end] : {std::pair(std::int64_t{0}, cut), std::pair(cut, kCount)})
                m_loop->adamW(step, {0,
                                     end - begin,
                                     ConstElements(gradient) + begin,
                                     Elements(weight) + begin,
                                     {},
                                     Elements(first) + begin,
                                     Elements(second) + begin,
                                     shared::mix(static_cast<std::uint64_t>(n)),
                                     begin});
        }
        return weight.floats();
    };
    const Floats whole = train(kCount);
    QCOMPARE(train(1000), whole);
    double mean = 0;
    for (const float w : whole)
        mean += static_cast<double>(w) / kCount;
    QVERIFY2(std::abs(mean - (1 - kSteps * 2e-4)) < 3e-4, qPrintable(QString::number(mean)));
}

QTEST_APPLESS_MAIN(SharedKernelTest)
#include "tst_shared_kernels.moc"
