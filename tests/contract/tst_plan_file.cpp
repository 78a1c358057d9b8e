// SPDX-License-Identifier: GPL-3.0-or-later
// The plan file: a golden file, and what is refused with which JSON path.
#include "runtime/contract/Plan.h"
#include "runtime/contract/Preset.h"
#include "runtime/contract/StepProgram.h"

#include <QFile>
#include <QtTest>
#include <nlohmann/json.hpp>

using namespace shardscope::contract;

namespace {

const char* kGolden = SHARDSCOPE_SOURCE_DIR "/tests/contract/golden/plan.json";

/// A plan with every placement, a recomputed block and two micro-steps.
Plan smallPlan() {
    Architecture a;
    a.family = "gpt2";
    a.layers = 2;
    a.hidden = 12;
    a.heads = a.kvHeads = 3;
    a.headDim = 4;
    a.intermediate = 48;
    a.vocabulary = 259;
    a.positions = 16;
    a.attentionBias = a.attentionOutputBias = a.mlpBias = true;
    Plan plan;
    plan.createdBy = "golden";
    plan.graph = {"small", "gpt2", sha256("small"), a};
    plan.cluster.name = plan.cluster.title = "two cores";
    plan.cluster.devicesPerNode = 2;
    plan.cluster.isCpu = true;
    plan.cluster.source = "assumed";
    plan.cluster.device = {"core", std::int64_t{1} << 30, 5e10, 0, 1e11, 0, 1e10};
    plan.cluster.inside = plan.cluster.between = {2e-5, 1e9};
    plan.cluster.reserve = {{"context", 1 << 20, "assumed"}};
    plan.training.sequence = 16;
    plan.training.microBatch = 3;
    plan.training.accumulate = 2;
    plan.training.globalBatch = 12;
    plan.parallel.data = 2;
    plan.limitBytes = 123456789;
    const std::vector<Operator> operators = *lowerArchitecture(a, 16);
    const char* placements[] = {"shard:4:2", "keep", "shard", "replicate", "shard:3", "keep"};
    std::vector<OperatorDecision> decisions;
    for (std::size_t i = 0; i < operators.size(); ++i) {
        Placement placement = *parsePlacement(placements[i % 6]);
        if (operators[i].maximumSlices() == 1 && placement.isSharded())
            placement = *parsePlacement("shard");
        if (operators[i].isTied())
            placement = decisions.front().placement;
        decisions.push_back({placement, operators[i].block == 1});
        plan.operators.push_back({operators[i].name, placement, operators[i].block == 1, operators[i].tiedTo});
    }
    const Preset preset = *findPreset("fp32-adam");
    plan.buffers = buildBufferTable({operators, decisions, 2, 2, preset, plan.training, 1},
                                    buildStepProgram(operators, decisions, 1));
    plan.predicted.peakBytes = plan.buffers.totalBytes() + (1 << 20);
    plan.predicted.ledger = plan.buffers.ledger();
    plan.predicted.stepSeconds = 0.5;
    plan.predicted.samplesPerSecond = 24;
    plan.certificate.provenOptimal = true;
    plan.certificate.value = plan.certificate.upperBound = 24;
    return plan;
}

std::string readGolden() {
    QFile file(kGolden);
    return file.open(QIODevice::ReadOnly) ? file.readAll().toStdString() : std::string();
}

} // namespace

class TestPlanFile : public QObject {
    Q_OBJECT

private slots:
    void theGoldenFileIsWrittenByteForByte() {
        const std::string text = formatPlan(smallPlan());
        if (qEnvironmentVariableIsSet("SHARDSCOPE_REGENERATE")) {
            QFile file(kGolden);
            QVERIFY(file.open(QIODevice::WriteOnly));
            file.write(QByteArray::fromStdString(text));
        }
        QCOMPARE(QByteArray::fromStdString(text), QByteArray::fromStdString(readGolden()));
    }

    void theGoldenFileReadsBackEqual() {
        const auto plan = parsePlan(readGolden(), "plan.json");
        QVERIFY2(plan.has_value(), plan ? "" : plan.error().message.c_str());
        QVERIFY(*plan == smallPlan());
    }

    void slotsAndOverlaysStayInsideTheirArenas() {
        const Plan plan = smallPlan();
        const auto extents = plan.buffers.arenaBytes();
        std::map<Arena, std::int64_t> sums;
        for (const Buffer& buffer : plan.buffers.buffers) {
            QCOMPARE(buffer.offset % 256, 0);
            QCOMPARE(buffer.bytes % 256, 0);
            QVERIFY(buffer.first <= buffer.last);
            sums[buffer.arena] += buffer.bytes;
        }
        for (const auto& [arena, sum] : sums)
            QCOMPARE(sum, extents[static_cast<std::size_t>(arena)]);
    }

    void faultsAreRefusedWithTheirPath_data() {
        QTest::addColumn<QString>("pointer");
        QTest::addColumn<QString>("value"); // empty: the member is removed
        QTest::addColumn<QString>("message");
        const auto row = [](const char* pointer, const char* value, const char* message) {
            QTest::newRow(qPrintable(QString("%1 = %2").arg(pointer, value))) << pointer << value << message;
        };
        row("/format", "\"other\"", "format is \"other\"");
        row("/version", "2", "version is 2; this version reads 1");
        row("/version", "", "version is missing");
        row("/target", "\"tpu\"", "target is \"tpu\"");
        row("/mode", "\"fast\"", "mode is \"fast\"");
        row("/operators/3", "", "operators has");
        row("/operators/0/placement", "\"split\"", "operators[0].placement is \"split\"");
        row("/operators/0/slices", "0", "operators[0].slices is 0");
        row("/operators/0/slices", "1e30", "operators[0].slices");
        row("/operators/0/sharded_slices", "9", "operators[0].sharded_slices is 9");
        row("/operators/1/slices", "2", "operators[1].slices");
        row("/operators/0/group", "\"rack\"", "operators[0].group");
        row("/operators/2/name", "\"h.0.ln_9\"", "operators[2].name is \"h.0.ln_9\"");
        row("/operators/2/recompute", "true", "recompute");
        row("/operators/0/recompute", "1", "operators[0].recompute must be true or false");
        row("/operators/15/tied_to", "null", "operators[15].tied_to");
        row("/buffers/0/category", "\"weights\"", "buffers[0].category is \"weights\"");
        row("/buffers/0/arena", "\"heap\"", "buffers[0].arena is \"heap\"");
        row("/buffers/1/offset", "-256", "buffers[1].offset is -256");
        row("/buffers/1/offset", "100", "buffers[1].offset is 100");
        row("/buffers/1/bytes", "9223372036854775807", "buffers[1].bytes");
        row("/buffers/1/name", "\"wte.weight.0\"", "buffers[1].name occurs twice");
        row("/training/precision", "\"fp4\"", "training.precision is \"fp4\"");
        row("/training/global_batch", "13", "training.global_batch is 13");
        row("/training/sequence", "17", "training.sequence");
        row("/training/optimizer/name", "\"sgd\"", "training.optimizer.name is \"sgd\"");
        row("/training/optimizer/learning_rate", "-1", "training.optimizer.learning_rate");
        row("/training/optimizer/betas", "[0.9]", "training.optimizer.betas");
        row("/training/recompute", "\"maybe\"", "training.recompute");
        row("/graph/architecture/heads", "6", "heads 6 does not divide");
        row("/graph/architecture/layers", "1e30", "graph.architecture.layers");
        row("/graph/architecture/layers", "-1", "graph.architecture.layers is -1");
        row("/graph/architecture/norm/kind", "\"batch\"", "graph.architecture.norm.kind");
        row("/cluster/device/memory_bytes", "\"24GB\"", "cluster.device.memory_bytes must be an integer");
        row("/cluster/links/inside/bytes_per_second", "0", "cluster.links.inside.bytes_per_second");
        row("/cluster/reserve", "", "cluster.reserve is missing");
        row("/parallel/data", "0", "parallel.data is 0");
        row("/predicted/ledger/optimizer", "", "predicted.ledger.optimizer is missing");
        row("/certificate/gap", "null", "certificate.gap must be a number");
    }
    void faultsAreRefusedWithTheirPath() {
        QFETCH(QString, pointer);
        QFETCH(QString, value);
        QFETCH(QString, message);
        Json document = Json::parse(readGolden());
        const Json::json_pointer at(pointer.toStdString());
        QVERIFY2(document.contains(at), "the row names nothing");
        if (value.isEmpty()) {
            Json& parent = document.at(at.parent_pointer());
            if (parent.is_array())
                parent.erase(std::stoul(at.back()));
            else
                parent.erase(at.back());
        } else {
            document.at(at) = Json::parse(value.toStdString());
        }
        const auto plan = parsePlan(document.dump(), "plan.json");
        QVERIFY(!plan);
        const QString text = QString::fromStdString(plan.error().message);
        QVERIFY2(text.startsWith("plan.json: ") && text.contains(message), qPrintable(text));
        QCOMPARE(exitCode(plan.error().kind), 3);
    }

    void everyTruncationIsRefused() {
        const std::string golden = readGolden();
        for (std::size_t length = 0; length + 2 < golden.size(); length += 97)
            QVERIFY(!parsePlan(std::string_view(golden).substr(0, length), "plan.json"));
    }

    void sha256IsTheStandardOne() {
        QCOMPARE(sha256("abc"), std::string("ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"));
    }
};

QTEST_APPLESS_MAIN(TestPlanFile)
#include "tst_plan_file.moc"
