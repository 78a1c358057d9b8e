// SPDX-License-Identifier: GPL-3.0-or-later
// Every operation on the GPU against the same operation by loops on the CPU, which tests of the engine hold against
// float64 formulas. Skipped, with the reason, where there is no GPU.
#include "engine/support/FloatReference.h"
#include "engine/support/PortableDevice.h"
#include "runtime/device/cuda/OpenCuda.h"

#include <QtTest/QtTest>

#include <cmath>
#include <cstring>
#include <functional>

using namespace shardscope;
using namespace shardscope::engine;
using namespace shardscope::testing;

namespace {

constexpr ElementType kFloat = ElementType::Float32;

struct Array {
    ElementType type;
    Floats values;
    bool isCompared = true;
};
Array random(ElementType type, std::int64_t count, unsigned seed, float scale = 1) {
    return {type, randomFloats(static_cast<std::size_t>(count), seed, scale)};
}
Array filled(ElementType type, std::int64_t count, float value = 0) {
    return {type, Floats(static_cast<std::size_t>(count), value)};
}
/// Token ids, as bits.
Array ids(const std::vector<std::int32_t>& values) {
    Array array{kFloat, Floats(values.size()), false};
    std::memcpy(array.values.data(), values.data(), values.size() * sizeof(float));
    return array;
}
const std::int32_t* asIds(Elements elements) {
    return reinterpret_cast<const std::int32_t*>(elements.at);
}

using Operation = std::function<void(Kernels&, const std::vector<Elements>&)>;

} // namespace

class CudaKernelTest : public QObject {
    Q_OBJECT

private Q_SLOTS:
    void initTestCase();
    void copiesConvert();
    void products_data();
    void products();
    void pointwise_data() { addTypes(); }
    void pointwise();
    void norms_data() { addTypes(); }
    void norms();
    void attention_data();
    void attention();
    void rotary_data() { addTypes(); }
    void rotary();
    void embeddings_data() { addTypes(); }
    void embeddings();
    void losses_data() { addTypes(); }
    void losses();
    void lossesOfParts_data() { addTypes(); }
    void lossesOfParts();
    void updates_data() { addTypes(); }
    void updates();
    void sgdUpdates();
    void sumsAreTheSameEachTime();

private:
    static void addTypes();
    static ElementType type() { return std::strstr(QTest::currentDataTag(), "bf16") ? ElementType::BFloat16 : kFloat; }
    /// Runs the operation on both and compares what is in every array afterwards.
    void compare(const char* what, const std::vector<Array>& arrays, const Operation& operation, double tolerance = 0);

    std::unique_ptr<Device> m_device;
    PortableKernels<LoopLauncher> m_loops;
};

void CudaKernelTest::initTestCase() {
    auto device = openCuda(0, 5);
    if (!device)
        QSKIP(device.error().message.c_str());
    m_device = std::move(*device);
}

void CudaKernelTest::addTypes() {
    QTest::addColumn<int>("unused");
    QTest::newRow("fp32") << 0;
    QTest::newRow("bf16") << 0;
}

void CudaKernelTest::compare(const char* what, const std::vector<Array>& arrays, const Operation& operation,
                             double tolerance) {
    // A result in bf16 may be rounded the other way: one part in 256 of its size.
    const double allowed = tolerance > 0 ? tolerance : type() == ElementType::BFloat16 ? 9e-3 : 2e-5;
    std::vector<std::vector<std::byte>> host;
    std::vector<Elements> onHost, onGpu;
    for (const Array& array : arrays) {
        const auto count = static_cast<std::int64_t>(array.values.size());
        const std::int64_t bytes = std::max<std::int64_t>(256, count * elementBytes(array.type));
        host.emplace_back(static_cast<std::size_t>(bytes));
        onHost.push_back({host.back().data(), array.type});
        const auto memory = m_device->allocate(bytes, "a test");
        QVERIFY2(memory, memory ? "" : memory.error().message.c_str());
        onGpu.push_back({*memory, array.type});
        if (array.type == kFloat)
            std::memcpy(host.back().data(), array.values.data(), array.values.size() * sizeof(float));
        for (std::int64_t i = 0; i < count && array.type != kFloat; ++i)
            m_loops.put(onHost.back(), i, static_cast<double>(array.values[static_cast<std::size_t>(i)]),
                        Write::Overwrite);
        m_device->upload(onGpu.back(), array.values.data(), count);
    }
    operation(m_loops, onHost);
    operation(m_device->kernels(), onGpu);
    const auto done = m_device->synchronize();
    QVERIFY2(done, done ? "" : done.error().message.c_str());
    for (std::size_t a = 0; a < arrays.size(); ++a) {
        const auto count = static_cast<std::int64_t>(arrays[a].values.size());
        Floats got(arrays[a].values.size());
        m_device->download(got.data(), onGpu[a], count);
        Doubles expected;
        for (std::int64_t i = 0; i < count; ++i)
            expected.push_back(m_loops.read(onHost[a], i));
        if (arrays[a].isCompared) {
            const double off = worst(got, expected);
            QVERIFY2(off <= allowed, qPrintable(QString("%1, array %2: off by %3").arg(what).arg(a).arg(off)));
        }
        m_device->release(onGpu[a].at, std::max<std::int64_t>(256, count * elementBytes(arrays[a].type)));
    }
}

void CudaKernelTest::copiesConvert() {
    const Floats values = randomFloats(1000, 1);
    const auto memory = m_device->allocate(4000, "a test");
    QVERIFY(memory.has_value());
    Floats back(values.size());
    m_device->upload({*memory, kFloat}, values.data(), 1000);
    m_device->download(back.data(), {*memory, kFloat}, 1000);
    QCOMPARE(back, values);
    m_device->upload({*memory, ElementType::BFloat16}, values.data(), 1000);
    m_device->download(back.data(), {*memory, ElementType::BFloat16}, 1000);
    for (std::size_t i = 0; i < values.size(); ++i) {
        const shared::BFloat16 rounded = shared::roundToNearest(values[i]);
        QCOMPARE(back[i], shared::load(&rounded));
    }
    m_device->release(*memory, 4000);
}

void CudaKernelTest::products_data() {
    QTest::addColumn<int>("tokens");
    QTest::addColumn<int>("inputs");
    QTest::addColumn<int>("outputs");
    QTest::addColumn<int>("begin"); // of a part's columns in a wider matrix
    for (const char* type : {"fp32", "bf16"}) {
        QTest::addRow("%s, even", type) << 128 << 256 << 192 << 0;
        QTest::addRow("%s, dividing by nothing", type) << 22 << 21 << 43 << 0;
        QTest::addRow("%s, a part of a split operator", type) << 32 << 64 << 40 << 13;
        QTest::addRow("%s, one token", type) << 1 << 64 << 64 << 0;
    }
}

void CudaKernelTest::products() {
    QFETCH(const int, tokens);
    QFETCH(const int, inputs);
    QFETCH(const int, outputs);
    QFETCH(const int, begin);
    const std::int64_t wide = outputs + begin;
    const auto part = [&](Elements e) { return ElementMatrix{e + begin, tokens, outputs, wide}; };
    const auto constPart = [&](Elements e) { return ConstElementMatrix{e + begin, tokens, outputs, wide}; };
    const auto whole = [&](Elements e) { return ElementMatrix{e, tokens, inputs, inputs}; };
    const auto constWhole = [&](Elements e) { return ConstElementMatrix{e, tokens, inputs, inputs}; };
    const Array x = random(type(), std::int64_t{tokens} * inputs, 2),
                w = random(type(), std::int64_t{outputs} * inputs, 3, 0.1F), b = random(type(), outputs, 4),
                r = random(type(), tokens * wide, 5), y = filled(type(), tokens * wide);
    compare("y = x w", {x, w, y},
            [&](Kernels& k, const auto& a) { k.linearForward(constWhole(a[0]), a[1], {}, {}, part(a[2])); });
    compare("y = x w + b + r", {x, w, b, r, y}, [&](Kernels& k, const auto& a) {
        k.linearForward(constWhole(a[0]), a[1], a[2], constPart(a[3]), part(a[4]));
    });
    compare(
        "gelu(x w + b)", {x, w, b, y, y},
        [&](Kernels& k, const auto& a) { k.linearGeluForward(constWhole(a[0]), a[1], a[2], part(a[3]), part(a[4])); },
        type() == kFloat ? 1e-4 : 0);
    for (const Write write : {Write::Overwrite, Write::Add})
        for (const ElementType gradients : {type(), kFloat}) {
            const Array dw = random(gradients, std::int64_t{outputs} * inputs, 6), db = random(gradients, outputs, 7);
            compare("gradients", {r, w, x, dw, db, x}, [&](Kernels& k, const auto& a) {
                k.linearBackwardWeight(constPart(a[0]), constWhole(a[2]), a[3], write);
                k.linearBackwardBias(constPart(a[0]), a[4], write);
                k.linearBackwardInput(constPart(a[0]), a[1], whole(a[5]), write);
            });
        }
}

void CudaKernelTest::pointwise() {
    constexpr std::int64_t kRows = 37, kColumns = 301, kCount = kRows * kColumns;
    const auto m = [](Elements e) { return ElementMatrix{e, kRows, kColumns, kColumns}; };
    const auto c = [](Elements e) { return ConstElementMatrix{e, kRows, kColumns, kColumns}; };
    const Array a1 = random(type(), kCount, 8, 3), b1 = random(type(), kCount, 9), d = random(type(), kCount, 10);
    compare("gelu backward", {a1, d},
            [&](Kernels& k, const auto& a) { k.geluTanhBackward(c(a[0]), c(a[1]), m(a[1])); });
    compare("silu gate", {a1, b1, d, filled(type(), kCount), filled(type(), kCount)}, [&](Kernels& k, const auto& a) {
        k.siluGateForward(c(a[0]), c(a[1]), m(a[3]));
        k.siluGateBackward(c(a[0]), c(a[1]), c(a[2]), m(a[2]), m(a[4]));
    });
    compare("clear", {a1}, [&](Kernels& k, const auto& a) { k.clear(a[0] + 5, kCount - 10); });
}

void CudaKernelTest::norms() {
    for (const std::int64_t hidden : {std::int64_t{21}, std::int64_t{768}, std::int64_t{1024}}) {
        constexpr std::int64_t kTokens = 67;
        const Array x = random(type(), kTokens * hidden, 11, 3), gain = random(type(), hidden, 12),
                    bias = random(type(), hidden, 13), dy = random(type(), kTokens * hidden, 14);
        for (const ElementType gradients : {type(), kFloat})
            for (const Write write : {Write::Overwrite, Write::Add}) {
                const Array dgain = random(gradients, hidden, 15), dbias = random(gradients, hidden, 16);
                compare(
                    "layer norm",
                    {x, gain, bias, filled(type(), kTokens * hidden), filled(kFloat, 2 * kTokens), dy,
                     random(type(), kTokens * hidden, 17), dgain, dbias},
                    [&](Kernels& k, const auto& a) {
                        k.layerNormForward({kTokens, hidden}, a[0], a[1], a[2], 1e-5F, a[3], a[4]);
                        k.layerNormBackward({kTokens, hidden}, a[5], a[0], a[1], a[4], a[6], write, a[7], a[8], write);
                    });
                compare("rms norm, in place",
                        {x, gain, filled(type(), kTokens * hidden), filled(kFloat, kTokens), dy, dgain},
                        [&](Kernels& k, const auto& a) {
                            k.rmsNormForward({kTokens, hidden}, a[0], a[1], 1e-5F, a[2], a[3]);
                            k.rmsNormBackward({kTokens, hidden}, a[4], a[0], a[1], a[3], a[4], Write::Overwrite, a[5],
                                              write);
                        });
            }
    }
}

void CudaKernelTest::attention_data() {
    QTest::addColumn<int>("sequence");
    QTest::addColumn<int>("heads");
    QTest::addColumn<int>("kvHeads");
    QTest::addColumn<int>("headDim");
    for (const char* type : {"fp32", "bf16"}) {
        QTest::addRow("%s, as many keys as queries", type) << 65 << 3 << 3 << 64;
        QTest::addRow("%s, grouped", type) << 70 << 8 << 2 << 128;
        QTest::addRow("%s, odd", type) << 33 << 4 << 2 << 7;
        QTest::addRow("%s, one token", type) << 1 << 2 << 1 << 16;
        QTest::addRow("%s, the widest head", type) << 40 << 1 << 1 << 256;
    }
}

void CudaKernelTest::attention() {
    QFETCH(const int, sequence);
    QFETCH(const int, heads);
    QFETCH(const int, kvHeads);
    QFETCH(const int, headDim);
    const AttentionShape s{2, sequence, heads, kvHeads, headDim};
    const std::int64_t queries = s.tokens() * s.width(), keyWidth = std::int64_t{kvHeads} * headDim,
                       keys = s.tokens() * keyWidth;
    // The backward pass starts from the forward's results, which differ in their last bits: looser than one rounding.
    compare(
        "attention",
        {random(type(), queries, 18), random(type(), keys, 19), random(type(), keys, 20), filled(type(), queries),
         filled(kFloat, s.tokens() * heads), random(type(), queries, 21), filled(type(), queries, 5),
         filled(type(), keys, 5), filled(type(), keys, 5)},
        [&](Kernels& k, const auto& a) {
            const AttentionElements rows{a[0], a[1], a[2], s.width(), keyWidth};
            k.attentionForward(s, rows, a[3], a[4], {});
            k.attentionBackward(s, rows, a[3], a[4], a[5], {a[6], a[7], a[8], s.width(), keyWidth}, {});
        },
        type() == kFloat ? 5e-5 : 2e-2);
}

void CudaKernelTest::rotary() {
    constexpr std::int64_t kSequence = 50, kHeads = 3, kDim = 64;
    const Rotary rotary = *Rotary::create(contract::Rope{10000.0, "", ""}, kDim);
    for (const auto direction : {Rotary::Direction::Forward, Rotary::Direction::Backward})
        compare("rotary", {random(type(), 2 * kSequence * kHeads * kDim, 22)}, [&](Kernels& k, const auto& a) {
            k.prepareRotary(rotary, kSequence);
            k.rotate(rotary, a[0], 2 * kSequence, kSequence, kHeads, direction);
        });
}

void CudaKernelTest::embeddings() {
    constexpr std::int64_t kTokens = 96, kHidden = 300, kRows = 41, kSequence = 48;
    std::vector<std::int32_t> tokens;
    for (std::int32_t t = 0; t < kTokens; ++t)
        tokens.push_back(t % 3 == 0 ? 7 : (t * 13) % static_cast<std::int32_t>(kRows));
    for (const ElementType gradients : {type(), kFloat})
        compare("embedding",
                {ids(tokens), random(type(), kRows * kHidden, 23), filled(type(), kTokens * kHidden),
                 random(type(), kTokens * kHidden, 24), random(gradients, kRows * kHidden, 25),
                 random(gradients, kRows * kHidden, 26)},
                [&](Kernels& k, const auto& a) {
                    const ConstElementMatrix dy{a[3], kTokens, kHidden, kHidden};
                    for (const contract::RowRange rows : {contract::RowRange{0, 10}, contract::RowRange{10, kRows}}) {
                        const std::int64_t at = rows.begin * kHidden;
                        k.embeddingForward(asIds(a[0]), rows, a[1] + at, {a[2], kTokens, kHidden, kHidden});
                        k.embeddingBackward(asIds(a[0]), rows, dy, a[4] + at);
                        k.positionForward(kSequence, rows, a[1] + at, {a[2], kTokens, kHidden, kHidden});
                        k.positionBackward(kSequence, rows, dy, a[5] + at);
                    }
                });
}

void CudaKernelTest::losses() {
    for (const std::int64_t vocabulary : {std::int64_t{259}, std::int64_t{5003}}) {
        constexpr std::int64_t kTokens = 70;
        std::vector<std::int32_t> targets;
        for (std::int32_t t = 0; t < kTokens; ++t)
            targets.push_back(t % 7 == 3 ? kIgnoredTarget : (t * 31) % static_cast<std::int32_t>(vocabulary));
        std::vector<double> sums;
        compare(
            "cross-entropy",
            {ids(targets), random(type(), kTokens * vocabulary, 27, 4), filled(kFloat, kTokens),
             filled(kFloat, kTokens)},
            [&](Kernels& k, const auto& a) {
                const LossSum judged = k.crossEntropy(a[1], asIds(a[0]), kTokens, vocabulary, a[3]);
                k.clearSums();
                k.crossEntropyWithGradient(a[1], asIds(a[0]), kTokens, vocabulary, a[2]);
                const auto added = k.readSums();
                sums.insert(sums.end(),
                            {judged.loss, static_cast<double>(judged.tokens), static_cast<double>(judged.correct),
                             added->loss, static_cast<double>(added->tokens)});
            },
            type() == kFloat ? 1e-5 : 0);
        QCOMPARE(sums.size(), std::size_t{10});
        for (std::size_t i = 0; i < 5; ++i)
            QVERIFY(std::abs(sums[i] - sums[5 + i]) <= 1e-5 * std::abs(sums[i]));
    }
}

/// Logits that come in two parts of the vocabulary.
void CudaKernelTest::lossesOfParts() {
    constexpr std::int64_t kTokens = 70, kVocabulary = 5003, kSecond = 1234;
    std::vector<std::int32_t> targets;
    for (std::int32_t t = 0; t < kTokens; ++t)
        targets.push_back(t % 7 == 3 ? kIgnoredTarget : (t * 97) % static_cast<std::int32_t>(kVocabulary));
    std::vector<double> sums;
    compare(
        "cross-entropy of parts",
        {ids(targets), random(type(), kTokens * kVocabulary, 28, 4), filled(kFloat, kTokens), filled(kFloat, kTokens),
         filled(kFloat, kTokens)},
        [&](Kernels& k, const auto& a) {
            const TokenSoftmax softmax{a[2], a[3], a[4]};
            const auto joinBoth = [&] {
                k.joinSoftmax({a[1], kTokens, kSecond, kVocabulary}, 0, asIds(a[0]), softmax, Write::Overwrite);
                k.joinSoftmax({a[1] + kSecond, kTokens, kVocabulary - kSecond, kVocabulary}, kSecond, asIds(a[0]),
                              softmax, Write::Add);
            };
            joinBoth();
            const LossSum judged = k.judgeSoftmax(softmax, asIds(a[0]), kTokens);
            joinBoth();
            k.clearSums();
            k.addLosses(softmax, asIds(a[0]), kTokens);
            const auto added = k.readSums();
            k.softmaxGradient({a[1], kTokens, kSecond, kVocabulary}, 0, asIds(a[0]), softmax.logsumexp);
            k.softmaxGradient({a[1] + kSecond, kTokens, kVocabulary - kSecond, kVocabulary}, kSecond, asIds(a[0]),
                              softmax.logsumexp);
            sums.insert(sums.end(),
                        {judged.loss, static_cast<double>(judged.tokens), static_cast<double>(judged.correct),
                         added->loss, static_cast<double>(added->tokens)});
        },
        type() == kFloat ? 1e-5 : 0);
    QCOMPARE(sums.size(), std::size_t{10});
    for (std::size_t i = 0; i < 5; ++i)
        QVERIFY(std::abs(sums[i] - sums[5 + i]) <= 1e-5 * std::abs(sums[i]));
}

void CudaKernelTest::updates() {
    constexpr std::int64_t kCount = 70001;
    AdamWStep step;
    step.gradientScale = 0.3F;
    step.learningRate = 0.01F;
    step.firstCorrection = 2;
    step.secondCorrection = 3;
    for (const ElementType gradients : {type(), kFloat})
        for (const bool pure : {false, true}) {
            const ElementType moments = pure ? type() : kFloat;
            const bool hasMaster = type() == ElementType::BFloat16 && !pure;
            // Without a master the rounding is random, and must be the same random on both.
            compare("adamw",
                    {random(gradients, kCount, 28), random(type(), kCount, 29), random(kFloat, kCount, 29),
                     random(moments, kCount, 30), filled(moments, kCount, 0.5F)},
                    [&](Kernels& k, const auto& a) {
                        k.adamW(step, {0.1F, kCount, a[0], a[1], hasMaster ? a[2] : Elements{}, a[3], a[4], 77, 5});
                    });
        }
}

void CudaKernelTest::sgdUpdates() {
    constexpr std::int64_t kCount = 70001;
    compare("sgd", {random(kFloat, kCount, 28), random(kFloat, kCount, 29), random(kFloat, kCount, 30)},
            [&](Kernels& k, const auto& a) {
                k.sgdMomentum({0.3F, 0.01F, 0.9F}, {0.1F, kCount, a[0], a[1], {}, a[2], {}, 0, 0});
            });
}

void CudaKernelTest::sumsAreTheSameEachTime() {
    constexpr std::int64_t kCount = 3000001;
    const Floats values = randomFloats(kCount, 31);
    const auto memory = m_device->allocate(kCount * 4, "a test");
    QVERIFY(memory.has_value());
    const Elements gradient{*memory, kFloat};
    m_device->upload(gradient, values.data(), kCount);
    double expected = 0;
    for (const float v : values)
        expected += static_cast<double>(v) * static_cast<double>(v);
    double first = 0;
    for (int time = 0; time < 5; ++time) {
        m_device->kernels().clearSums();
        m_device->kernels().addSquares(SquareSum::Sharded, gradient, kCount, 2);
        const auto sums = m_device->kernels().readSums();
        QVERIFY(sums.has_value());
        if (time == 0)
            first = sums->squares[1];
        QCOMPARE(sums->squares[1], first);
    }
    QVERIFY(std::abs(first - expected / 2) < 1e-12 * expected);
    m_device->release(*memory, kCount * 4);
}

QTEST_APPLESS_MAIN(CudaKernelTest)
#include "tst_cuda_kernels.moc"
