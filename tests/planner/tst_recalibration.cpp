// SPDX-License-Identifier: GPL-3.0-or-later
#include "planner/cluster/Clusters.h"
#include "planner/cluster/Recalibration.h"

#include <QtTest/QtTest>
#include <nlohmann/json.hpp>

#include <cmath>
#include <limits>

using namespace shardscope;

class RecalibrationTest : public QObject {
    Q_OBJECT
private Q_SLOTS:
    void ratesFollowTheRatios() {
        contract::Cluster before = *planner::openCluster("2x8-h100");
        contract::KernelRates kernels;
        kernels.productSecondsPerFlop = 3e-11;
        kernels.normSecondsPerElement = 2e-9;
        before.kernels = kernels;
        before.measured = contract::OrderedJson{{"kernels", contract::toJson(kernels)}, {"r2", 0.99}}.dump();
        const auto after = planner::recalibrated(before, {2, 0.5}, "recalibrated: step 3 of the run x");
        QVERIFY(after.has_value());
        QCOMPARE(after->device.flopsBf16, before.device.flopsBf16 / 2);
        QCOMPARE(after->device.flopsFp32, before.device.flopsFp32 / 2);
        QCOMPARE(after->device.memoryBandwidth, before.device.memoryBandwidth / 2);
        QCOMPARE(after->device.peakFlopsBf16, before.device.peakFlopsBf16);
        QCOMPARE(after->device.memoryBytes, before.device.memoryBytes);
        QCOMPARE(after->inside.bytesPerSecond, before.inside.bytesPerSecond * 2);
        QCOMPARE(after->between.latencySeconds, before.between.latencySeconds / 2);
        QCOMPARE(after->hostSecondsPerCollective, before.hostSecondsPerCollective / 2);
        QCOMPARE(after->kernels->productSecondsPerFlop, 6e-11);
        QCOMPARE(after->kernels->normSecondsPerElement, 4e-9);
        QCOMPARE(after->reserve, before.reserve);
        // The file holds the same, and what else was measured.
        const contract::Json json = contract::Json::parse(contract::toJson(*after).dump());
        const contract::JsonCursor cursor(json, "x");
        const contract::Cluster read = contract::readCluster(cursor);
        QVERIFY(!cursor.failed());
        QVERIFY(read.kernels == after->kernels);
        QCOMPARE(contract::OrderedJson::parse(read.measured)["r2"].get<double>(), 0.99);
        QCOMPARE(read.source, std::string("recalibrated: step 3 of the run x"));
    }
    void ratiosOfOneChangeNothing() {
        const contract::Cluster before = *planner::openCluster("8x-a100-80g");
        auto after = planner::recalibrated(before, {}, before.source);
        QVERIFY(after.has_value());
        QVERIFY(*after == before);
    }
    void nonsenseIsRefused() {
        const contract::Cluster before = *planner::openCluster("8x-a100-80g");
        for (const double bad :
             {0.0, -1.0, 1e9, std::numeric_limits<double>::quiet_NaN(), std::numeric_limits<double>::infinity()}) {
            QVERIFY(!planner::recalibrated(before, {bad, 1}, "").has_value());
            QVERIFY(!planner::recalibrated(before, {1, bad}, "").has_value());
        }
    }
};

QTEST_GUILESS_MAIN(RecalibrationTest)
#include "tst_recalibration.moc"
