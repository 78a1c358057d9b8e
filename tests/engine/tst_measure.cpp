// SPDX-License-Identifier: GPL-3.0-or-later
#include "runtime/launch/MeasureKernels.h"
#include "runtime/launch/MeasureRing.h"

#include <QtTest/QtTest>

#include <chrono>
#include <cmath>
#include <thread>

using namespace shardscope;

/// What is made of measurements; the measurements themselves are no matter of right or wrong.
class MeasureTest : public QObject {
    Q_OBJECT

private Q_SLOTS:
    void fitsFindTheCoefficients();
    void noCoefficientIsNegative();
    void linksAreFitted();
    void theSlowestWorkerCounts();
    void everyKernelIsMeasured();
    void ringsAreMeasuredAloneAndBesideComputing_data();
    void ringsAreMeasuredAloneAndBesideComputing();
};

void MeasureTest::fitsFindTheCoefficients() {
    std::vector<engine::FitSample> samples;
    for (const double n : {1.0, 10.0, 300.0, 5000.0})
        for (const double m : {2.0, 70.0, 900.0})
            samples.push_back({{n * m, n + m, 1.0}, 2e-9 * n * m + 3e-8 * (n + m) + 1e-7});
    const engine::Fit fit = engine::fitSeconds(samples);
    QCOMPARE(fit.coefficients.size(), std::size_t{3});
    QVERIFY(std::abs(fit.coefficients[0] - 2e-9) < 1e-15);
    QVERIFY(std::abs(fit.coefficients[1] - 3e-8) < 1e-14);
    QVERIFY(std::abs(fit.coefficients[2] - 1e-7) < 1e-13);
    QVERIFY(fit.r2 > 0.999999);
}

/// A straight line would cross zero at x = 1: what is left is the slope alone.
void MeasureTest::noCoefficientIsNegative() {
    const engine::Fit fit = engine::fitSeconds({{{1.0, 2.0}, 1.0}, {{1.0, 4.0}, 3.0}, {{1.0, 8.0}, 7.0}});
    QCOMPARE(fit.coefficients[0], 0.0);
    QVERIFY(fit.coefficients[1] > 0.5 && fit.coefficients[1] < 0.9);
    QVERIFY(fit.r2 < 1.0);
    QVERIFY(engine::fitSeconds({}).coefficients.empty());
}

void MeasureTest::linksAreFitted() {
    std::vector<engine::LinkSample> samples;
    for (double bytes = 256; bytes <= 4e6; bytes *= 4)
        samples.push_back({bytes, 20e-6 + bytes / 2e9});
    const engine::LinkFit fit = engine::fitLink(samples);
    QVERIFY(std::abs(fit.latencySeconds - 20e-6) < 1e-11);
    QVERIFY(std::abs(fit.bytesPerSecond - 2e9) < 1e3);
    QVERIFY(fit.r2 > 0.999999);
    QCOMPARE(engine::fitLink({{1, 1}}).bytesPerSecond, 0.0);
}

void MeasureTest::theSlowestWorkerCounts() {
    const double rate = engine::slowestRate(2, 0.05, [](std::int64_t worker) {
        std::this_thread::sleep_for(std::chrono::milliseconds(worker == 0 ? 1 : 10));
        return 1.0;
    });
    QVERIFY2(rate > 0 && rate <= 100, qPrintable(QString::number(rate)));
}

void MeasureTest::everyKernelIsMeasured() {
    const engine::MeasuredKernels measured = engine::measureKernels(1);
    const contract::KernelRates& k = measured.rates;
    QVERIFY(k.productSecondsPerFlop + k.productSecondsPerElement + k.productSeconds > 0);
    QVERIFY(k.attentionSecondsPerFlop + k.attentionSecondsPerElement > 0);
    for (const double seconds :
         {k.normSecondsPerElement, k.geluSecondsPerElement, k.siluGateSecondsPerElement, k.rotarySecondsPerElement,
          k.embeddingSecondsPerElement, k.lossSecondsPerLogit, k.updateSecondsPerByte})
        QVERIFY(seconds > 0 && seconds < 1e-3);
    QVERIFY(measured.productR2 <= 1 && measured.attentionR2 <= 1);
}

void MeasureTest::ringsAreMeasuredAloneAndBesideComputing_data() {
    QTest::addColumn<int>("ranks");
    QTest::addColumn<bool>("isCrowded");
    QTest::newRow("two, idle") << 2 << false;
    QTest::newRow("two, computing") << 2 << true;
    QTest::newRow("three, computing") << 3 << true;
}
void MeasureTest::ringsAreMeasuredAloneAndBesideComputing() {
    QFETCH(int, ranks);
    QFETCH(bool, isCrowded);
    const auto samples = engine::measureRing(ranks, isCrowded);
    QVERIFY2(samples.has_value(), samples ? "" : samples.error().message.c_str());
    QCOMPARE(samples->size(), std::size_t{8});
    double bytes = 0;
    for (const engine::RingSample& sample : *samples) {
        QVERIFY(sample.link.bytes > bytes);
        bytes = sample.link.bytes;
        QVERIFY(sample.secondsAlone > 0 && sample.secondsAlone < 1);
        // Beside computing a message takes at least what it takes alone; on an idle machine just that.
        QVERIFY(isCrowded ? sample.link.seconds >= sample.secondsAlone : sample.link.seconds == sample.secondsAlone);
    }
}

QTEST_GUILESS_MAIN(MeasureTest)
#include "tst_measure.moc"
