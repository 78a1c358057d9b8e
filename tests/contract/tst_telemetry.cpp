// SPDX-License-Identifier: GPL-3.0-or-later
#include "runtime/contract/Telemetry.h"

#include <QtTest>
#include <nlohmann/json.hpp>

#include <cmath>

using namespace shardscope::contract;

namespace {

/// One of each event with the line it is written as.
const std::vector<std::pair<Event, std::string>>& golden() {
    static const std::vector<std::pair<Event, std::string>> kLines{
        {{{0, -1, 0}, HelloEvent{1, "ab", 2, "/run", 7, 200}},
         R"({"type":"hello","t":0.0,"rank":-1,"seq":0,"version":1,"plan_sha256":"ab","world":2,"run_dir":"/run","pid":7,"steps":200})"},
        {{{0.5, 1, 0}, ReadyEvent{8, "cpu"}}, R"({"type":"ready","t":0.5,"rank":1,"seq":0,"pid":8,"device":"cpu"})"},
        {{{1, 0, 2}, StepEvent{3, 5.5, 0.001, 1.25, 64, 0.25, 0.2, 0.05, 256}},
         R"({"type":"step","t":1.0,"rank":0,"seq":2,"step":3,"loss":5.5,"learning_rate":0.001,"gradient_norm":1.25,"tokens":64,"step_seconds":0.25,"compute_seconds":0.2,"exposed_communication_seconds":0.05,"tokens_per_second":256.0})"},
        {{{1, 0, 3}, EvaluationEvent{3, 5.5, std::nullopt}},
         R"({"type":"evaluation","t":1.0,"rank":0,"seq":3,"step":3,"loss":5.5,"accuracy":null})"},
        {{{1, 0, 4}, OperatorEvent{"wte", "forward", "compute", 0.5, 0.75}},
         R"({"type":"operator","t":1.0,"rank":0,"seq":4,"name":"wte","phase":"forward","stream":"compute","start":0.5,"end":0.75})"},
        {{{1, 0, 5}, CollectiveEvent{"all-gather", 4096, 0.5}},
         R"({"type":"collective","t":1.0,"rank":0,"seq":5,"kind":"all-gather","bytes":4096,"seconds":0.5})"},
        {{{1, 1, 6}, DeviceEvent{0.75, 1024, 300.5, 61, 2000, 1000, std::nullopt, std::nullopt}},
         R"({"type":"device","t":1.0,"rank":1,"seq":6,"utilization":0.75,"memory_used":1024,"power_watts":300.5,"temperature_celsius":61.0,"pcie_received_bytes_per_second":2000.0,"pcie_sent_bytes_per_second":1000.0,"nvlink_received_bytes_per_second":null,"nvlink_sent_bytes_per_second":null})"},
        {{{1, 0, 6}, CheckpointEvent{50, "checkpoint-50"}},
         R"({"type":"checkpoint","t":1.0,"rank":0,"seq":6,"step":50,"path":"checkpoint-50"})"},
        {{{2, 1, 7}, FailureEvent{12, "all-gather", "peer closed", true}},
         R"({"type":"failure","t":2.0,"rank":1,"seq":7,"step":12,"phase":"all-gather","cause":"peer closed","first":true})"},
        {{{3, -1, 8}, RestartEvent{10, 1, 2}},
         R"({"type":"restart","t":3.0,"rank":-1,"seq":8,"step":10,"attempt":1,"world":2})"},
        {{{3, -1, 9}, LogEvent{"warning", "slow"}},
         R"({"type":"log","t":3.0,"rank":-1,"seq":9,"level":"warning","message":"slow"})"},
        {{{4, -1, 10}, ByeEvent{"done", 200, ""}},
         R"({"type":"bye","t":4.0,"rank":-1,"seq":10,"status":"done","steps":200,"reason":""})"},
    };
    return kLines;
}

} // namespace

class TestTelemetry : public QObject {
    Q_OBJECT

private slots:
    void everyEventHasItsGoldenLine() {
        for (const auto& [event, line] : golden())
            QCOMPARE(QByteArray::fromStdString(formatEvent(event)), QByteArray::fromStdString(line));
    }

    void everyLineReadsBack() {
        for (const auto& [event, line] : golden()) {
            const auto read = parseEvent(line);
            QVERIFY2(read.has_value(), read ? "" : read.error().message.c_str());
            QCOMPARE(read->body.index(), event.body.index());
            QCOMPARE(QByteArray::fromStdString(formatEvent(*read)), QByteArray::fromStdString(line));
        }
    }

    void memoryCarriesBothLedgers() {
        MemoryEvent memory;
        memory.predicted[Category::Parameters] = 100;
        memory.allocated[Category::Slack] = 7;
        memory.peakAllocated = 5;
        memory.resident = 6;
        const auto read = parseEvent(formatEvent({{1, 0, 0}, memory}));
        QVERIFY(read.has_value());
        const auto& body = std::get<MemoryEvent>(read->body);
        QVERIFY(body.predicted == memory.predicted && body.allocated == memory.allocated);
        const Json json = Json::parse(formatEvent({{1, 0, 0}, memory}));
        QCOMPARE(json["predicted"]["ledger"]["parameters"].get<int>(), 100);
        QCOMPARE(json["allocated"]["ledger"]["slack"].get<int>(), 7);
    }

    void aDivergedLossSurvivesTheJourney() {
        StepEvent step;
        step.loss = std::nan("");
        const auto read = parseEvent(formatEvent({{1, 0, 0}, step}));
        QVERIFY(read.has_value());
        QVERIFY(std::isnan(std::get<StepEvent>(read->body).loss));
    }

    void unknownTypesAreSkippedNotRefused() {
        const auto read = parseEvent(R"({"type":"weather","t":0,"rank":0,"seq":0,"rain":true})");
        QVERIFY(read.has_value());
        QCOMPARE(std::get<UnknownEvent>(read->body).type, std::string("weather"));
    }

    void garbageIsRefused() {
        for (const char* line :
             {"", "garbage", "[]", "{}", "{\"type\":\"step\"}",
              "{\"type\":\"step\",\"t\":0,\"rank\":0,\"seq\":0,\"step\":1}",
              "{\"type\":5,\"t\":0,\"rank\":0,\"seq\":0}", "{\"type\":\"bye\",\"t\":\"x\",\"rank\":0,\"seq\":0}",
              "{\"type\":\"step\",\"t\":1.0,\"rank\":0,\"seq\":2,\"step\":3,\"lo"})
            QVERIFY2(!parseEvent(line), line);
    }

    void foreignBytesInACauseDoNotStopTheReport() {
        const std::string line = formatEvent({{0, 0, 0}, FailureEvent{1, "load", "bad \xff byte", true}});
        QVERIFY(parseEvent(line).has_value());
    }
};

QTEST_APPLESS_MAIN(TestTelemetry)
#include "tst_telemetry.moc"
