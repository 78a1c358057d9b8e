// SPDX-License-Identifier: GPL-3.0-or-later
#include "planner/cluster/Clusters.h"
#include "planner/cluster/Gpus.h"
#include "planner/cluster/Topology.h"
#include "runtime/contract/Bytes.h"

#include <QtTest>
#include <nlohmann/json.hpp>

#include <filesystem>
#include <fstream>

using namespace shardscope;
using contract::Cluster;
namespace fs = std::filesystem;

class tst_clusters : public QObject {
    Q_OBJECT

    QTemporaryDir m_folder;

    static Cluster open(const std::string& argument, const std::string& devices = "") {
        const auto cluster = planner::openCluster(argument, devices);
        if (!cluster)
            qFatal("%s", cluster.error().message.c_str());
        return *cluster;
    }

private slots:
    void initTestCase() { qputenv("XDG_CACHE_HOME", m_folder.path().toUtf8()); }

    void everyBundledClusterOpensAndReadsBack() {
        const auto entries = planner::bundledClusters();
        QVERIFY(entries.size() >= 8);
        for (const planner::ZooEntry& entry : entries) {
            const Cluster cluster = open(entry.name);
            QCOMPARE(cluster.name, entry.name);
            QCOMPARE(cluster.title, entry.title);
            QVERIFY(!cluster.isCpu);
            QVERIFY(!cluster.source.empty());
            QVERIFY(cluster.warnings.empty());
            const auto text = contract::toJson(cluster).dump();
            const auto document = contract::parseJson(text, "again");
            QVERIFY(document);
            const contract::JsonCursor cursor(*document, "again");
            QVERIFY(contract::readCluster(cursor) == cluster);
            QVERIFY(!cursor.failed());
        }
    }

    void bundledNumbersAreConsistent() {
        for (const planner::ZooEntry& entry : planner::bundledClusters()) {
            const Cluster cluster = open(entry.name);
            const contract::Device& device = cluster.device;
            QVERIFY(device.flopsFp32 <= device.peakFlopsFp32);
            QVERIFY(device.flopsBf16 <= device.peakFlopsBf16);
            QVERIFY(device.memoryBytes > 20 * contract::kGiB && device.memoryBytes < 150 * contract::kGiB);
            // A device's memory cannot be slower than its link.
            QVERIFY(device.memoryBandwidth > cluster.inside.bytesPerSecond);
            QVERIFY(cluster.inside.bytesPerSecond >= cluster.between.bytesPerSecond);
            QVERIFY(cluster.inside.latencySeconds <= cluster.between.latencySeconds);
            QCOMPARE(cluster.reserve.size(), std::size_t(cluster.devices() > 1 ? 2 : 1));
            // The name says the counts: "16x8-h100", "8x-titan-pcie3".
            const std::string counts =
                cluster.nodes > 1 ? std::to_string(cluster.nodes) + "x" + std::to_string(cluster.devicesPerNode)
                                  : std::to_string(cluster.devicesPerNode) + "x";
            QVERIFY2(cluster.name.starts_with(counts + "-"), cluster.name.c_str());
        }
        const Cluster titan = open("8x-titan-pcie3");
        QVERIFY(1 / titan.inside.bytesPerSecond >= 2.2e-10 && 1 / titan.inside.bytesPerSecond <= 2.9e-10);
        QCOMPARE(titan.inside.latencySeconds, 9e-5);
        QCOMPARE(titan.device.flopsBf16, 0.0);
    }

    void deviceCountsAreReplaced_data() {
        QTest::addColumn<QString>("cluster");
        QTest::addColumn<QString>("devices");
        QTest::addColumn<int>("nodes");
        QTest::addColumn<int>("perNode");
        QTest::newRow("kept") << "8x-a100-80g"
                              << "" << 1 << 8;
        QTest::newRow("fewer") << "8x-a100-80g"
                               << "2" << 1 << 2;
        QTest::newRow("more in one node") << "8x-a100-80g"
                                          << "16" << 1 << 16;
        QTest::newRow("nodes") << "8x-a100-80g"
                               << "2x8" << 2 << 8;
        QTest::newRow("one by one") << "8x-a100-80g"
                                    << "1x1" << 1 << 1;
        QTest::newRow("whole nodes") << "64x8-h100"
                                     << "128" << 16 << 8;
        QTest::newRow("part of a node") << "64x8-h100"
                                        << "4" << 1 << 4;
        QTest::newRow("nodes of others") << "64x8-h100"
                                         << "3x5" << 3 << 5;
        QTest::newRow("largest") << "64x8-h100"
                                 << "1024x1024" << 1024 << 1024;
    }
    void deviceCountsAreReplaced() {
        QFETCH(QString, cluster);
        QFETCH(QString, devices);
        QFETCH(int, nodes);
        QFETCH(int, perNode);
        const Cluster changed = open(cluster.toStdString(), devices.toStdString());
        QCOMPARE(int(changed.nodes), nodes);
        QCOMPARE(int(changed.devicesPerNode), perNode);
        QCOMPARE(changed.device.memoryBytes, open(cluster.toStdString()).device.memoryBytes);
    }

    void nonsenseCountsAreWrongUsage() {
        for (const char* devices : {"0",
                                    "-1",
                                    "+8",
                                    "8 ",
                                    " 8",
                                    "x",
                                    "8x",
                                    "x8",
                                    "0x8",
                                    "8x0",
                                    "2x-4",
                                    "2x4x8",
                                    "8.0",
                                    "1e3",
                                    "0x10",
                                    "abc",
                                    "2X8",
                                    "1048577",
                                    "1025x1024",
                                    "99999999999999999999",
                                    "9223372036854775807x2",
                                    "\n"}) {
            const auto cluster = planner::openCluster("8x-a100-80g", devices);
            QVERIFY2(!cluster, devices);
            QVERIFY(cluster.error().kind == contract::ErrorKind::Usage);
            QVERIFY2(cluster.error().message.find("--devices") != std::string::npos, cluster.error().message.c_str());
        }
        const auto uneven = planner::openCluster("64x8-h100", "12");
        QVERIFY(!uneven);
        QVERIFY(uneven.error().message.find("NODESxDEVICES") != std::string::npos);
    }

    void collectiveBuffersFollowTheCount() {
        QCOMPARE(open("1x-h200").reserve.size(), std::size_t(1));
        QCOMPARE(open("1x-h200", "4").reserve.size(), std::size_t(2));
        QCOMPARE(open("8x-h200", "1").reserve.size(), std::size_t(1));
        QCOMPARE(open("1x-h200", "8").reserveBytes(), open("8x-h200").reserveBytes());
        QVERIFY(open("8x-h200", "2").title != open("8x-h200").title);
        QCOMPARE(open("8x-h200", "8").title, open("8x-h200").title);
    }

    void thisMachineIsDetected() {
        const Cluster cluster = open("local-cpu");
        QCOMPARE(cluster.name, std::string("local"));
        QVERIFY(cluster.source.starts_with("detected with default rates"));
        QVERIFY(cluster.isCpu);
        QVERIFY(cluster.devices() >= 1);
        QVERIFY(cluster.device.memoryBytes > contract::kMiB);
        QVERIFY(cluster.device.flopsFp32 > 0 && cluster.device.flopsBf16 == 0);
        QVERIFY(cluster.title.starts_with("This machine, " + std::to_string(cluster.devices()) + " CPU core"));
        const auto document = contract::parseJson(contract::toJson(cluster).dump(), "local");
        QVERIFY(document);
        const contract::JsonCursor cursor(*document, "local");
        contract::readCluster(cursor);
        QVERIFY2(!cursor.failed(), cursor.failed() ? cursor.error().value().message.c_str() : "");
    }

    void gpusAreDescribedByWhatTheDriverSays() {
        QVERIFY(!planner::gpuCluster({}));
        planner::Gpu gpu;
        gpu.name = "NVIDIA H200";
        gpu.memoryBytes = 150'000'000'000;
        gpu.usedBytes = 1'000'000'000;
        gpu.computeMajor = 9;
        gpu.pcieGeneration = 5;
        gpu.pcieWidth = 16;
        const Cluster one = *planner::gpuCluster({gpu});
        QVERIFY(!one.isCpu);
        QCOMPARE(qint64(one.devices()), qint64(1));
        QCOMPARE(one.device.peakFlopsBf16, 989.4e12); // as 1x-h200 has it
        QCOMPARE(one.device.flopsFp32, open("1x-h200").device.flopsFp32);
        QVERIFY(std::abs(one.inside.bytesPerSecond / (0.4 * 63e9) - 1) < 0.01); // PCIe 5 x16
        QCOMPARE(qint64(one.reserveBytes()), (qint64(512) << 20) + 1'000'000'000);
        gpu.nvlinks = 18;
        gpu.nvlinkVersion = 4;
        planner::Gpu other = gpu;
        other.name = "NVIDIA RTX A1000"; // no A100
        const Cluster mixed = *planner::gpuCluster({gpu, gpu, other});
        QCOMPARE(qint64(mixed.devices()), qint64(2));
        QCOMPARE(mixed.inside.bytesPerSecond, open("8x-h200").inside.bytesPerSecond);
        QVERIFY(mixed.source.find("1 other cards") != std::string::npos);
        other.cores = 2304;
        other.clockHertz = 1.4e9;
        other.computeMajor = 8;
        const Cluster unknown = *planner::gpuCluster({other});
        QCOMPARE(unknown.device.peakFlopsFp32, 2 * 2304 * 1.4e9);
        QVERIFY(unknown.source.find("cores and clock") != std::string::npos);
        for (const Cluster& cluster : {one, mixed, unknown}) {
            const auto document = contract::parseJson(contract::toJson(cluster).dump(), "local");
            const contract::JsonCursor cursor(*document, "local");
            QCOMPARE(contract::readCluster(cursor), cluster);
            QVERIFY(!cursor.failed());
        }
    }

    void topologyIsSaidWhereItIsKnown() {
        const planner::Topology topology = planner::readTopology();
        if (!topology.known)
            QSKIP("this build has no hwloc");
        QVERIFY(topology.cores >= 1 && topology.threads >= topology.cores && topology.numaNodes >= 1);
        QVERIFY(topology.memoryBytes > contract::kMiB);
        QVERIFY(open("local-cpu").source.find("core") != std::string::npos);
        QCOMPARE(planner::describeTopology({2, 2, 8, 16, 1, {{"0000:3b:00.0", 1}}, true}),
                 std::string("2 packages, 2 NUMA nodes, 8 cores, 16 hardware threads, 1 display controller on PCI at "
                             "NUMA node 1"));
    }

    void cpuDevicesShareTheMachine() {
        Cluster cluster = planner::detectLocalCluster();
        cluster.devicesPerNode = 2;
        cluster.device.memoryBytes = 8 * contract::kGiB;
        const Cluster four = *planner::withDevices(cluster, "4");
        QCOMPARE(qint64(four.device.memoryBytes), qint64(4 * contract::kGiB));
        QCOMPARE(four.device.flopsFp32, cluster.device.flopsFp32 / 2);
        const Cluster one = *planner::withDevices(cluster, "1");
        QCOMPARE(qint64(one.device.memoryBytes), qint64(16 * contract::kGiB));
        QCOMPARE(one.device.flopsFp32, cluster.device.flopsFp32);
        QVERIFY(planner::withDevices(cluster, "1048576"));
    }

    void aStoredMeasurementIsUsedWhenItCanBeRead() {
        const std::string path = planner::localClusterCachePath();
        QCOMPARE(path, m_folder.path().toStdString() + "/shardscope/local.cluster.json");
        fs::create_directories(fs::path(path).parent_path());
        Cluster measured = planner::detectLocalCluster();
        measured.name = "measured-here";
        measured.source = "measured";
        measured.device.flopsFp32 = 12345678;
        measured.device.memoryBytes = 1;
        QVERIFY(contract::writeFileAtomically(path, contract::toJson(measured).dump()));
        const Cluster used = open("local");
        QCOMPARE(used.source, std::string("measured"));
        QCOMPARE(used.name, std::string("local"));
        QCOMPARE(used.device.flopsFp32, 12345678.0);
        QVERIFY(used.device.memoryBytes > contract::kMiB); // as it is now, not as it was

        std::ofstream(path) << "{ half";
        const Cluster fallback = open("local");
        QVERIFY(fallback.source.starts_with("detected with"));
        QVERIFY(fallback.source.find("cannot be read") != std::string::npos);
        fs::remove(path);
    }

    void keysThatAreNotKnownAreSaidAndIgnored() {
        auto document = contract::readJsonFile(planner::modelsFolder() + "/clusters/2x8-h100.cluster.json");
        QVERIFY(document);
        const std::string path = m_folder.filePath("typo.cluster.json").toStdString();
        (*document)["measured"] = {{"anything", {{"goes", 1}}}};
        std::ofstream(path) << document->dump();
        QVERIFY(open(path).warnings.empty());

        const auto set = [&](const char* pointer, const char* wrong) {
            const contract::Json::json_pointer place(pointer);
            contract::Json& object = (*document)[place.parent_pointer()];
            object[wrong] = object[place.back()];
            object.erase(place.back());
        };
        set("/overlap_efficiency", "overlap_eficiency");
        set("/device/peak_flops", "peak_flop");
        set("/device/flops/bf16", "bfloat16");
        (*document)["links"]["betwen"] = 1;
        (*document)["links"]["inside"]["latency"] = 1;
        (*document)["reserve"][1]["sources"] = "assumed";
        std::ofstream(path) << document->dump();
        const Cluster cluster = open(path, "2x4");
        QCOMPARE(cluster.overlapEfficiency, 1.0);
        QCOMPARE(cluster.device.flopsBf16, 0.0);
        const std::vector<std::pair<std::string, std::string>> expected{
            {"overlap_eficiency", "overlap_efficiency"}, {"device.peak_flop", "peak_flops"},
            {"device.flops.bfloat16", "bf16"},           {"links.betwen", "between"},
            {"links.inside.latency", "latency_seconds"}, {"reserve[1].sources", "source"}};
        QCOMPARE(cluster.warnings.size(), expected.size());
        for (std::size_t i = 0; i < expected.size(); ++i) {
            const std::string& warning = cluster.warnings[i];
            QVERIFY2(warning.starts_with(path + ": " + expected[i].first + " "), warning.c_str());
            QVERIFY2(warning.ends_with(" is \"" + expected[i].second + "\""), warning.c_str());
        }
    }

    void wrongArgumentsAreSaid() {
        const auto messageOf = [](const std::string& argument) {
            const auto cluster = planner::openCluster(argument);
            return cluster ? std::string("opened") : cluster.error().message;
        };
        QVERIFY(messageOf("9x-tpu").find("8x-titan-pcie3") != std::string::npos);
        QVERIFY(messageOf("9x-tpu").find("local") != std::string::npos);
        QVERIFY(messageOf("").find("no cluster is named") != std::string::npos);
        QVERIFY(messageOf(m_folder.path().toStdString()).find("not a regular file") != std::string::npos);
        const std::string graph = planner::modelsFolder() + "/graphs/gpt2/config.json";
        QVERIFY(messageOf(graph).find("config.json: format is missing") != std::string::npos);
    }

    void wrongFilesAreRefusedByField_data() {
        QTest::addColumn<QString>("pointer");
        QTest::addColumn<QString>("value");
        QTest::addColumn<QString>("expected");
        const auto row = [](const char* pointer, const char* value, const char* expected) {
            QTest::addRow("%s = %s", pointer, value) << QString(pointer) << QString(value) << QString(expected);
        };
        row("/format", R"("shardscope-plan")", "format");
        row("/version", "2", "version is 2");
        row("/nodes", "0", "nodes is 0");
        row("/nodes", "1e30", "nodes is 1e+30");
        row("/devices_per_node", "-8", "devices_per_node is -8");
        row("/devices_per_node", "1048576", "devices_per_node");
        row("/device", "[]", "device must be an object");
        row("/device/memory_bytes", "0", "device.memory_bytes is 0");
        row("/device/memory_bytes", "\"80GB\"", "device.memory_bytes must be an integer");
        row("/device/flops/fp32", "-1", "device.flops.fp32");
        row("/device/memory_bandwidth", "0", "device.memory_bandwidth");
        row("/links/inside/latency_seconds", "-1e-6", "links.inside.latency_seconds");
        row("/links/between/bytes_per_second", "0", "links.between.bytes_per_second");
        row("/overlap_efficiency", "1.5", "overlap_efficiency");
        row("/reserve/0/source", R"("guessed")", "reserve[0].source");
        row("/reserve/1/bytes", "-1", "reserve[1].bytes");
    }
    void wrongFilesAreRefusedByField() {
        QFETCH(QString, pointer);
        QFETCH(QString, value);
        QFETCH(QString, expected);
        auto document = contract::readJsonFile(planner::modelsFolder() + "/clusters/2x8-h100.cluster.json");
        QVERIFY(document);
        (*document)[contract::Json::json_pointer(pointer.toStdString())] = contract::Json::parse(value.toStdString());
        const std::string path = m_folder.filePath("wrong.cluster.json").toStdString();
        std::ofstream(path) << document->dump();
        const auto cluster = planner::openCluster(path);
        QVERIFY(!cluster);
        QVERIFY(cluster.error().kind == contract::ErrorKind::BadInput);
        const QString message = QString::fromStdString(cluster.error().message);
        QVERIFY2(message.contains(expected) && message.startsWith(QString::fromStdString(path)), qPrintable(message));
    }
};

QTEST_GUILESS_MAIN(tst_clusters)
#include "tst_clusters.moc"
