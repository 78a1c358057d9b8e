// SPDX-License-Identifier: GPL-3.0-or-later
// How row-major products are handed to a library that knows column-major ones: the descriptions, carried out by loops.
#include "engine/support/KernelMemory.h"
#include "runtime/device/cuda/Product.h"

#include <QtTest/QtTest>

using namespace shardscope;
using namespace shardscope::engine;
using namespace shardscope::testing;
using cuda::Product;

namespace {

using Values = PortableKernels<LoopLauncher>;

/// d = op(a) op(b) (+ c) (+ bias), or d += ..., column-major.
void carryOut(const Product& p) {
    const auto at = [](const Product::Stored& m, std::int64_t row, std::int64_t column) {
        return m.transposed ? Values::read(m.data, row * m.leading + column)
                            : Values::read(m.data, column * m.leading + row);
    };
    const std::int64_t inner = p.a.transposed ? p.a.rows : p.a.columns;
    QCOMPARE(p.b.transposed ? p.b.columns : p.b.rows, inner);
    QCOMPARE(p.a.transposed ? p.a.columns : p.a.rows, p.rows);
    QCOMPARE(p.b.transposed ? p.b.rows : p.b.columns, p.columns);
    QVERIFY(p.a.leading >= p.a.rows && p.b.leading >= p.b.rows && p.leading >= p.rows);
    for (std::int64_t column = 0; column < p.columns; ++column)
        for (std::int64_t row = 0; row < p.rows; ++row) {
            double sum = p.bias ? Values::read(p.bias, row) : 0;
            if (p.c.data)
                sum += Values::read(p.c.data, column * p.c.leading + row);
            for (std::int64_t i = 0; i < inner; ++i)
                sum += at(p.a, row, i) * at(p.b, i, column);
            Values::put(p.d, column * p.leading + row, sum, p.accumulate ? Write::Add : Write::Overwrite);
        }
}

} // namespace

class CudaProductTest : public QObject {
    Q_OBJECT

private Q_SLOTS:
    void productsAreThoseOfALinearLayer();
    void alignmentIsTheLargestPowerOfTwo();
};

/// A part of a split operator: its columns begin inside rows that are wider.
void CudaProductTest::productsAreThoseOfALinearLayer() {
    constexpr std::int64_t kTokens = 5, kInputs = 7, kOutputs = 3, kWide = 11, kBegin = 4;
    constexpr ElementType kFloat = ElementType::Float32;
    PortableKernels<LoopLauncher> kernels;
    const Memory x(kFloat, randomFloats(kTokens * kInputs, 1)), w(kFloat, randomFloats(kOutputs * kInputs, 2)),
        b(kFloat, randomFloats(kOutputs, 3)), r(kFloat, randomFloats(kTokens * kWide, 4));
    const ConstElementMatrix in = x.constMatrix(kTokens, kInputs);
    const ConstElementMatrix wide{ConstElements(r) + kBegin, kTokens, kOutputs, kWide};

    Memory y(kFloat, kTokens * kWide), expected(kFloat, kTokens * kWide);
    Product forward = cuda::forwardProduct(in, w, {Elements(y) + kBegin, kTokens, kOutputs, kWide});
    forward.bias = b;
    forward.c = {wide.data, kOutputs, kTokens, kWide, false};
    carryOut(forward);
    kernels.linearForward(in, w, b, wide, {Elements(expected) + kBegin, kTokens, kOutputs, kWide});
    QCOMPARE(y.floats(), expected.floats());

    for (const Write write : {Write::Overwrite, Write::Add}) {
        Memory dx = x, expectedInput = x, dw = w, expectedWeight = w;
        carryOut(cuda::inputProduct(wide, w, dx.matrix(kTokens, kInputs), write));
        kernels.linearBackwardInput(wide, w, expectedInput.matrix(kTokens, kInputs), write);
        QVERIFY(worst(dx.floats(), expectedInput.doubles()) < 1e-6);
        carryOut(cuda::weightProduct(wide, in, dw, write));
        kernels.linearBackwardWeight(wide, in, expectedWeight, write);
        QVERIFY(worst(dw.floats(), expectedWeight.doubles()) < 1e-6);
    }
}

void CudaProductTest::alignmentIsTheLargestPowerOfTwo() {
    const auto of = [](std::uintptr_t address) { return cuda::alignmentOf(reinterpret_cast<const void*>(address)); };
    QCOMPARE(of(0x1000), 256U);
    QCOMPARE(of(0x1100), 256U);
    QCOMPARE(of(0x1080), 128U);
    QCOMPARE(of(0x1002), 2U);
    Product product;
    product.leading = 24;
    product.beforeGelu = {reinterpret_cast<std::byte*>(0x1010), ElementType::BFloat16};
    QVERIFY(cuda::canFuseGelu(product));
    product.leading = 25;
    QVERIFY(!cuda::canFuseGelu(product));
    product.leading = 24;
    product.beforeGelu.at = reinterpret_cast<std::byte*>(0x1008);
    QVERIFY(!cuda::canFuseGelu(product));
}

QTEST_APPLESS_MAIN(CudaProductTest)
#include "tst_cuda_products.moc"
