// SPDX-License-Identifier: GPL-3.0-or-later
// How a GPU is, as its driver's library says it, over a library of our own; and that one that is missing, broken or
// stuck harms nobody.
#include "runtime/device/HostDevice.h"
#include "runtime/device/Nvml.h"
#include "runtime/launch/DeviceMonitor.h"
#include "runtime/launch/TelemetryWriter.h"

#include <QtCore/QElapsedTimer>
#include <QtCore/QFile>
#include <QtCore/QTemporaryDir>
#include <QtTest/QtTest>

#include <atomic>
#include <chrono>
#include <thread>

using namespace shardscope;
using namespace std::chrono_literals;
using engine::DeviceMonitor;
using engine::Nvml;
using engine::NvmlLibrary;

namespace {

constexpr const char* kAddress = "0000:65:00.0";

Nvml open(const char* file, const char* address = kAddress) {
    return Nvml(address, std::make_shared<const NvmlLibrary>(file));
}
DeviceMonitor::Reader readerOf(const char* file) {
    return [nvml = std::make_shared<Nvml>(open(file))] { return nvml->read(); };
}

} // namespace

class DeviceMonitorTest : public QObject {
    Q_OBJECT

private Q_SLOTS:
    void cleanup() { qunsetenv("FAKE_NVML"); }
    void everythingIsRead();
    void nvlinkIsARate();
    void whatAnOldLibraryCannotSayIsLeftOut();
    void aLibraryThatDoesNotWorkSaysNothing_data();
    void aLibraryThatDoesNotWorkSaysNothing();
    void failingCallsSayNothing();
    void readingsArriveAsTelemetry();
    void nothingIsToldAfterTheEnd();
    void aStuckLibraryHoldsUpNobody();
    void aCpuIsNotAsked();
};

void DeviceMonitorTest::everythingIsRead() {
    Nvml nvml = open(SHARDSCOPE_FAKE_NVML);
    QVERIFY(nvml.works());
    const contract::DeviceEvent event = nvml.read();
    QCOMPARE(event.utilization, 0.97);
    QCOMPARE(event.memoryUsed, std::int64_t{3} << 30);
    QCOMPARE(event.powerWatts, 412.5);
    QCOMPARE(event.temperatureCelsius, 63.0);
    QCOMPARE(event.pcieReceived, 5e8);
    QCOMPARE(event.pcieSent, 2.5e8);
    QVERIFY(!event.nvlinkReceived && !event.nvlinkSent); // nothing to compare with yet
}

void DeviceMonitorTest::nvlinkIsARate() {
    Nvml nvml = open(SHARDSCOPE_FAKE_NVML);
    nvml.read();
    QElapsedTimer timer;
    timer.start();
    std::this_thread::sleep_for(100ms);
    const contract::DeviceEvent event = nvml.read();
    const double seconds = static_cast<double>(timer.nsecsElapsed()) * 1e-9;
    QVERIFY(event.nvlinkSent && event.nvlinkReceived);
    QVERIFY(*event.nvlinkSent >= 0.99 * 0x1p30 / seconds && *event.nvlinkSent <= 0x1p30 / 0.1);
    QCOMPARE(*event.nvlinkReceived, 2 * *event.nvlinkSent);
}

void DeviceMonitorTest::whatAnOldLibraryCannotSayIsLeftOut() {
    Nvml nvml = open(SHARDSCOPE_FAKE_NVML_OLD);
    const contract::DeviceEvent event = nvml.read();
    QCOMPARE(event.memoryUsed, std::int64_t{3} << 30);
    QVERIFY(!event.utilization && !event.powerWatts && !event.temperatureCelsius && !event.pcieSent);
    QVERIFY(!nvml.read().nvlinkSent);
    QVERIFY(!nvml.ownBytes());
}

void DeviceMonitorTest::aLibraryThatDoesNotWorkSaysNothing_data() {
    QTest::addColumn<QByteArray>("file");
    QTest::addColumn<QByteArray>("fault");
    QTest::addColumn<QByteArray>("address");
    QTest::newRow("missing") << QByteArray("/nowhere/libnvidia-ml.so.1") << QByteArray() << QByteArray(kAddress);
    QTest::newRow("no library") << QByteArray(__FILE__) << QByteArray() << QByteArray(kAddress);
    QTest::newRow("another library") << QByteArray("libdl.so.2") << QByteArray() << QByteArray(kAddress);
    QTest::newRow("without a driver") << QByteArray(SHARDSCOPE_FAKE_NVML) << QByteArray("init") << QByteArray(kAddress);
    QTest::newRow("another GPU") << QByteArray(SHARDSCOPE_FAKE_NVML) << QByteArray() << QByteArray("0000:01:00.0");
}

void DeviceMonitorTest::aLibraryThatDoesNotWorkSaysNothing() {
    QFETCH(const QByteArray, file);
    QFETCH(const QByteArray, fault);
    QFETCH(const QByteArray, address);
    qputenv("FAKE_NVML", fault);
    Nvml nvml = open(file.constData(), address.constData());
    QVERIFY(!nvml.works());
    QVERIFY(nvml.read().isEmpty());
    QVERIFY(!nvml.usedBytes() && !nvml.ownBytes());
}

void DeviceMonitorTest::failingCallsSayNothing() {
    qputenv("FAKE_NVML", "errors");
    Nvml nvml = open(SHARDSCOPE_FAKE_NVML);
    QVERIFY(nvml.works());
    QVERIFY(nvml.read().isEmpty() && nvml.read().isEmpty());
    std::atomic<int> told{0};
    {
        const DeviceMonitor monitor(
            readerOf(SHARDSCOPE_FAKE_NVML), [&](const auto&) { ++told; }, 1ms);
        std::this_thread::sleep_for(50ms);
    }
    QCOMPARE(told.load(), 0); // a line without an answer is none
}

/// Beside steps, in one file, from the start on.
void DeviceMonitorTest::readingsArriveAsTelemetry() {
    const QTemporaryDir folder;
    QFile file(folder.filePath("run.ndjson"));
    QVERIFY(file.open(QIODevice::ReadWrite));
    {
        engine::TelemetryWriter writer(3, engine::monotonicSeconds(), {file.handle()}, {"wte"});
        const DeviceMonitor monitor(
            readerOf(SHARDSCOPE_FAKE_NVML), [&](const contract::DeviceEvent& event) { writer.onEvent(event); }, 20ms);
        for (int step = 1; step <= 30; ++step) {
            contract::StepEvent event;
            event.step = step;
            writer.onStep(event);
            std::this_thread::sleep_for(10ms);
        }
    }
    file.seek(0);
    int steps = 0, readings = 0;
    double first = -1;
    while (!file.atEnd()) {
        const auto event = contract::parseEvent(file.readLine().trimmed().toStdString());
        QVERIFY2(event, event ? "" : event.error().message.c_str());
        QCOMPARE(event->header.rank, 3);
        QCOMPARE(event->header.sequenceNumber, std::int64_t{steps + readings});
        if (const auto* status = std::get_if<contract::DeviceEvent>(&event->body)) {
            first = first < 0 ? event->header.t : first;
            ++readings;
            QCOMPARE(status->powerWatts, 412.5);
        } else {
            ++steps;
        }
    }
    QCOMPARE(steps, 30);
    QVERIFY2(readings >= 3 && readings <= 40, qPrintable(QString::number(readings)));
    QVERIFY(first < 0.25);
}

void DeviceMonitorTest::nothingIsToldAfterTheEnd() {
    for (int i = 0; i < 200; ++i) {
        auto alive = std::make_unique<std::atomic<bool>>(true);
        {
            const DeviceMonitor monitor(
                readerOf(SHARDSCOPE_FAKE_NVML), [&](const auto&) { QVERIFY(*alive); }, 0ms);
            if (i % 4 != 0)
                std::this_thread::sleep_for(std::chrono::microseconds(i * 5));
        }
        *alive = false;
    }
}

void DeviceMonitorTest::aStuckLibraryHoldsUpNobody() {
    qputenv("FAKE_NVML", "hangs");
    std::atomic<int> told{0};
    QElapsedTimer timer;
    timer.start();
    {
        const DeviceMonitor monitor(readerOf(SHARDSCOPE_FAKE_NVML), [&](const auto&) { ++told; });
        std::this_thread::sleep_for(50ms); // it hangs by now
    }
    QVERIFY2(timer.elapsed() < 3000, qPrintable(QString::number(timer.elapsed())));
    std::this_thread::sleep_for(5s); // and comes back
    QCOMPARE(told.load(), 0);
}

void DeviceMonitorTest::aCpuIsNotAsked() {
    const engine::HostDevice device;
    QVERIFY(!device.statusReader());
    const DeviceMonitor monitor(
        device.statusReader(), [](const auto&) { QFAIL("there is nothing to tell"); }, 0ms);
}

QTEST_GUILESS_MAIN(DeviceMonitorTest)
#include "tst_device_monitor.moc"
