// SPDX-License-Identifier: GPL-3.0-or-later
// What is said where there is no GPU to train on, and which collectives ranks agree on. No GPU is needed.
#include "runtime/collective/Sharing.h"
#include "runtime/device/cuda/OpenCuda.h"

#include <QtTest/QtTest>

using namespace shardscope;
using engine::CudaProbe;

class CudaProbeTest : public QObject {
    Q_OBJECT

private Q_SLOTS:
    void everyReasonIsOneSentence_data();
    void everyReasonIsOneSentence();
    void aUsableDeviceIsFine();
    void thisMachineIsAnswered();
    void ranksAgreeOnCollectives();
};

void CudaProbeTest::everyReasonIsOneSentence_data() {
    QTest::addColumn<CudaProbe>("probe");
    QTest::addColumn<QString>("sentence");
    CudaProbe good;
    good.driverVersion = 13010;
    good.neededVersion = 13000;
    good.devices = 2;
    good.ordinal = 1;
    good.name = "GPU Model";
    good.architecture = 75;
    good.builtFor = "80, 90";
    good.freeBytes = 1 << 20;
    CudaProbe probe = good;
    probe.built = false;
    QTest::newRow("built without") << probe
                                   << "--device cuda: this program was built without CUDA; run it with --device cpu";
    probe = good;
    probe.driverVersion = 0;
    QTest::newRow("no driver") << probe
                               << "--device cuda: there is no NVIDIA driver on this machine; run it with --device cpu";
    probe = good;
    probe.driverVersion = 12080;
    QTest::newRow("old driver")
        << probe
        << "--device cuda: the NVIDIA driver serves CUDA 12.8; this program needs 13.0: a newer driver is right";
    probe = good;
    probe.devices = 0;
    QTest::newRow("no device")
        << probe << "--device cuda: this machine has no GPU that CUDA can use (or CUDA_VISIBLE_DEVICES hides it)";
    probe.failure = "unknown error";
    QTest::newRow("a driver in trouble") << probe << "--device cuda: the driver shows no GPU: unknown error";
    probe = good;
    probe.hasKernels = false;
    QTest::newRow("architecture")
        << probe << "--device cuda: GPU 1 (GPU Model) has compute capability 7.5; this program has kernels for 80, 90";
    probe = good;
    probe.failure = "out of memory";
    QTest::newRow("a device in trouble") << probe << "--device cuda: GPU 1 (GPU Model) cannot be used: out of memory";
    probe = good;
    probe.neededBytes = 3 << 20;
    QTest::newRow("memory") << probe
                            << "--device cuda: GPU 1 (GPU Model) has 1.0 MiB (1048576 bytes) free; the plan needs "
                               "3.0 MiB (3145728 bytes)";
}

void CudaProbeTest::everyReasonIsOneSentence() {
    QFETCH(const CudaProbe, probe);
    QFETCH(const QString, sentence);
    const auto judged = engine::judgeCuda(probe);
    QVERIFY(!judged);
    QCOMPARE(QString::fromStdString(judged.error().message), sentence);
    QCOMPARE(contract::exitCode(judged.error().kind), 5);
}

void CudaProbeTest::aUsableDeviceIsFine() {
    CudaProbe probe;
    probe.driverVersion = probe.neededVersion = 13000;
    probe.devices = 1;
    probe.freeBytes = probe.neededBytes = 1 << 30;
    QVERIFY(engine::judgeCuda(probe).has_value());
}

/// Whatever this machine has, there is an answer and no crash; opening says the same as looking.
void CudaProbeTest::thisMachineIsAnswered() {
    const CudaProbe probe = engine::probeCuda(0, engine::ProbeDepth::Usable);
    const auto judged = engine::judgeCuda(probe);
    if (judged)
        QSKIP("this machine has a GPU; tests labelled cuda use it");
    const auto opened = engine::openCuda(0, 5);
    QVERIFY(!opened);
    QCOMPARE(opened.error().message, judged.error().message);
    const auto checked = engine::checkCuda();
    QVERIFY(!checked);
    QCOMPARE(checked.error().message, judged.error().message);
}

void CudaProbeTest::ranksAgreeOnCollectives() {
    using engine::whyNotShared;
    QCOMPARE(whyNotShared({{0, "a/1", "22809"}, {1, "a/2", "22809"}}), std::string());
    QCOMPARE(whyNotShared({{0, "a/1", "22809"}, {1, "a/2", "22809"}, {2, "a/1", "22809"}}),
             std::string("ranks 0 and 2 share a GPU, which NCCL refuses"));
    QCOMPARE(whyNotShared({{0, "a/1", "22809"}, {1, "b/1", ""}}), std::string("rank 1 has no NCCL"));
    QCOMPARE(whyNotShared({{0, "a/1", "22809"}, {1, "b/1", "22700"}}),
             std::string("rank 1 has NCCL 22700 and rank 0 has 22809"));
}

QTEST_APPLESS_MAIN(CudaProbeTest)
#include "tst_cuda_probe.moc"
