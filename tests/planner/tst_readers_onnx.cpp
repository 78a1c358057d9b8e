// SPDX-License-Identifier: GPL-3.0-or-later
#include "planner/readers/Readers.h"
#include "runtime/contract/Json.h"
#include "support/OnnxText.h"

#include <QtTest>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <map>

using namespace shardscope;
using namespace shardscope::test::onnx_text;
namespace fs = std::filesystem;

namespace {

const std::string kFixtures = std::string(SHARDSCOPE_SOURCE_DIR) + "/tests/planner/data/onnx/";

const contract::Operator* findOperator(const planner::Graph& graph, const std::string& name) {
    for (const contract::Operator& op : graph.operators) {
        if (op.name == name)
            return &op;
    }
    return nullptr;
}

using HandCount = std::map<std::string, double>;

/// Of every module that may be among the ten largest of an exported network, FLOPs of one sample counted on paper from
/// the shapes in tests/pytorch/onnx_fixtures.py: 2 a multiplied pair. Attention is charged to the last of the
/// projections before it, 4 tokens^2 width, and 5 a score: scaling, and softmax's difference, exponential, sum and
/// quotient.
HandCount countByHand(const std::string& name) {
    HandCount count;
    const auto attention = [](double tokens, double width, double heads) {
        return tokens * tokens * (4 * width + 5 * heads);
    };
    const auto layers = [&](const std::string& prefix, int first, int last, const HandCount& modules) {
        for (int layer = first; layer <= last; ++layer) {
            for (const auto& [module, flops] : modules)
                count[prefix + std::to_string(layer) + "." + module] = flops;
        }
    };
    if (name == "resnet50") {
        // 2 x in x out x kernel area x output area. A 3x3 convolution is the same in every stage: twice the width, half
        // the sides. The first block of a stage widens at the side before it was halved.
        count["conv1"] = 2.0 * 3 * 64 * 49 * 112 * 112;
        const double square = 2.0 * 64 * 64 * 9 * 56 * 56;
        layers("layer1.", 0, 2, {{"conv2", square}});
        layers("layer2.", 0, 3, {{"conv2", square}});
        layers("layer3.", 0, 5, {{"conv2", square}});
        layers("layer4.", 0, 2, {{"conv2", square}});
    } else if (name == "gpt2") {
        count["lm_head"] = 2.0 * 256 * 768 * 50257;
        layers("h.", 0, 2,
               {{"attn.c_attn", 2.0 * 256 * 768 * 3 * 768 + attention(256, 768, 12)},
                {"mlp.c_fc", 2.0 * 256 * 768 * 3072},
                {"mlp.c_proj", 2.0 * 256 * 3072 * 768}});
    } else if (name == "bert-base") {
        const double square = 2.0 * 128 * 768 * 768;
        layers("encoder.layer.", 0, 2,
               {{"intermediate.dense", 2.0 * 128 * 768 * 3072},
                {"output.dense", 2.0 * 128 * 3072 * 768},
                {"attention.self.value", square + attention(128, 768, 12)},
                {"attention.self.query", square},
                {"attention.self.key", square},
                {"attention.output.dense", square}});
    } else if (name == "vit-base") {
        const double square = 2.0 * 197 * 768 * 768; // 14 x 14 patches and the class
        layers("vit.encoder.layer.", 0, 2,
               {{"intermediate.dense", 2.0 * 197 * 768 * 3072},
                {"output.dense", 2.0 * 197 * 3072 * 768},
                {"attention.attention.query", square + attention(197, 768, 12)},
                {"attention.attention.key", square},
                {"attention.attention.value", square},
                {"attention.output.dense", square}});
    } else if (name == "llama-stack") {
        layers("layers.", 0, 2,
               {{"mlp.gate_proj", 2.0 * 256 * 1024 * 2816},
                {"mlp.up_proj", 2.0 * 256 * 1024 * 2816},
                {"mlp.down_proj", 2.0 * 256 * 2816 * 1024},
                {"self_attn.q_proj", 2.0 * 256 * 1024 * 1024},
                {"self_attn.o_proj", 2.0 * 256 * 1024 * 1024}});
    } else if (name == "lstm") {
        // Four gates of 512 from the input and from the state, in two directions; 256 wide, then both directions' 512.
        const auto layer = [](double inputs) { return 2 * 2.0 * (4 * 512) * (inputs + 512); };
        count["lstm"] = 64 * (layer(256) + layer(2 * 512));
        count["fc"] = 2.0 * 64 * 1024 * 50;
    }
    return count;
}

} // namespace

/// ONNX graphs: exported ones, and small ones written by hand.
class tst_readers_onnx : public QObject {
    Q_OBJECT

    QTemporaryDir m_folder;
    contract::Json m_expected;

    std::string write(const std::string& name, const std::string& bytes) const {
        const fs::path path = fs::path(m_folder.path().toStdString()) / name;
        std::ofstream(path, std::ios::binary) << bytes;
        return path.string();
    }
    static planner::GraphPointer open(const std::string& path, std::int64_t sequence = 0) {
        const auto graph = planner::openGraph(path, sequence);
        if (!graph)
            qFatal("%s", graph.error().message.c_str());
        return *graph;
    }

private slots:
    void initTestCase() {
        const auto absent = planner::openGraph(kFixtures + "absent.onnx");
        if (absent.error().message.find("without the onnx library") != std::string::npos)
            QSKIP("this build has no onnx library");
        const auto document = contract::readJsonFile(kFixtures + "expected.json");
        QVERIFY2(document, document ? "" : document.error().message.c_str());
        m_expected = *document;
        QVERIFY(m_expected.size() >= 7);
    }

    void exportedNetworksHaveTheParametersOfPyTorch_data() {
        QTest::addColumn<QString>("name");
        for (const char* name : {"resnet50", "gpt2", "bert-base", "vit-base", "llama-stack", "lstm", "tied-tiny"})
            QTest::newRow(name) << QString(name);
    }
    void exportedNetworksHaveTheParametersOfPyTorch() {
        QFETCH(QString, name);
        const auto graph = open(kFixtures + name.toStdString() + ".onnx");
        const contract::Json& expected = m_expected.at(name.toStdString());
        QCOMPARE(qint64(graph->countParameters().unique), expected.at("parameters").get<qint64>());
        if (name == "tied-tiny")
            return; // so narrow that its activations cost as much as its products
        // The ten largest modules that multiply by a weight, counted by hooks from the shapes that pass through.
        std::vector<std::pair<double, std::string>> modules;
        for (const auto& [module, flops] : expected.at("flops").items())
            modules.emplace_back(flops.get<double>(), module);
        std::sort(modules.rbegin(), modules.rend());
        const double attention = expected.value("attention_flops", 0.0);
        for (std::size_t i = 0; i < modules.size() && i < 10; ++i) {
            const contract::Operator* op = findOperator(*graph, modules[i].second);
            QVERIFY2(op, modules[i].second.c_str());
            // Attention is charged to the projection before it.
            const double own = op->flopsForward;
            const bool near = std::abs(own / modules[i].first - 1) < 0.01 ||
                              (attention > 0 && std::abs((own - attention) / modules[i].first - 1) < 0.01);
            QVERIFY2(near,
                     (modules[i].second + ": " + std::to_string(own) + " and not " + std::to_string(modules[i].first))
                         .c_str());
        }
    }

    void theTenLargestOperatorsHaveTheWorkCountedByHand_data() {
        QTest::addColumn<QString>("name");
        for (const char* name : {"resnet50", "gpt2", "bert-base", "vit-base", "llama-stack", "lstm"})
            QTest::newRow(name) << QString(name);
    }
    void theTenLargestOperatorsHaveTheWorkCountedByHand() {
        QFETCH(QString, name);
        const HandCount expected = countByHand(name.toStdString());
        std::vector<contract::Operator> operators = open(kFixtures + name.toStdString() + ".onnx")->operators;
        std::sort(operators.begin(), operators.end(),
                  [](const auto& a, const auto& b) { return a.flopsForward > b.flopsForward; });
        // An embedding only looks up: it is the third operator of the LSTM tagger.
        const std::size_t count = name == "lstm" ? 2 : 10;
        QVERIFY(operators.size() > count);
        for (std::size_t i = 0; i < count; ++i) {
            const contract::Operator& op = operators[i];
            QVERIFY2(expected.contains(op.name), op.name.c_str());
            const double ratio = op.flopsForward / expected.at(op.name);
            QVERIFY2(std::abs(ratio - 1) < 0.01, (op.name + " has " + std::to_string(ratio) + " of it").c_str());
        }
        if (name == "lstm")
            QCOMPARE(operators[2].flopsForward, 0.0);
    }

    void repeatedLayersAreBlocks() {
        for (const char* name : {"gpt2", "bert-base", "vit-base", "llama-stack"})
            QCOMPARE(open(kFixtures + name + ".onnx")->blockCount(), 3);
        QCOMPARE(open(kFixtures + "resnet50.onnx")->blockCount(), 16);
    }

    void aHeadThatIsStoredAgainIsTied() {
        const auto graph = open(kFixtures + "tied-tiny.onnx");
        const contract::Operator* head = findOperator(*graph, "lm_head");
        QVERIFY(head);
        QCOMPARE(head->tiedTo, std::string("wte"));
        QVERIFY(graph->countParameters().stored > graph->countParameters().unique);
    }

    void shapesFollowTheSequence() {
        const std::string path =
            write("free.onnx",
                  model(node("MatMul", {"x", "fc.weight"}, {"y"}, "/fc/MatMul") + node("Relu", {"y"}, {"z"}) +
                        tensor("fc.weight", {4, 8}, std::string(128, '\1')) + input("x", {-1, -1, 4}) + output("z")));
        const auto graph = open(path, 100);
        QCOMPARE(qint64(graph->sequence), qint64(100));
        QCOMPARE(graph->operators.size(), std::size_t(1));
        QCOMPARE(graph->operators[0].name, std::string("fc"));
        QCOMPARE(graph->operators[0].flopsForward, 2.0 * 100 * 4 * 8 + 100 * 8);
        QCOMPARE(qint64(graph->operators[0].tensors[0].rows), qint64(8)); // output features
        QCOMPARE(graph->operators[0].kept.size(), std::size_t(2));        // x, and the result of relu
        QCOMPARE(qint64(graph->operators[0].kept[0].elementsPerSample), qint64(400));
        const auto longer = planner::withSequence(graph, 200);
        QVERIFY(longer);
        QCOMPARE((*longer)->operators[0].flopsForward, 2 * graph->operators[0].flopsForward);
        QCOMPARE((*longer)->sha256(), graph->sha256());
    }

    void constantsAreNoParameters() {
        const std::string path = write(
            "constants.onnx",
            model(tensor("fc.weight", {4, 4}, std::string(64, '\1')) + tensor("scale", {}, std::string(4, '\1')) +
                  tensor("axes", {2}, std::string(16, '\0'), 7) + tensor("mask", {1, 1, 4, 4}, std::string(64, '\0')) +
                  tensor("unused", {100}, std::string(400, '\0')) + node("Transpose", {"fc.weight"}, {"t"}) +
                  node("MatMul", {"x", "t"}, {"y"}, "/fc/MatMul") + node("Mul", {"y", "scale"}, {"z"}) +
                  node("Add", {"z", "mask"}, {"v"}) + input("x", {1, 4, 4}) + output("v")));
        const auto graph = open(path);
        QCOMPARE(qint64(graph->countParameters().unique), qint64(16));
        QCOMPARE(qint64(graph->countParameters().stored), qint64(16 + 1 + 2 + 16 + 100));
        QCOMPARE(qint64(graph->weights->bufferElements), qint64(119));
    }

    void sizesAreThoseOfOneSample() {
        const auto graph = open(
            write("batch.onnx", model(tensor("fc.weight", {4, 8}, std::string(128, '\1')) +
                                      node("MatMul", {"x", "fc.weight"}, {"y"}, "/fc/MatMul") + input("x", {16, 4}))));
        QCOMPARE(graph->operators[0].flopsForward, 2.0 * 4 * 8);
        QVERIFY(graph->warnings.back().find("16 samples") != std::string::npos);
    }

    void externalDataIsNotNeededForShapes() {
        const std::string graph = node("MatMul", {"x", "w"}, {"y"}, "/fc/MatMul") + input("x", {1, 4});
        const auto absent =
            open(write("absent.onnx", model(graph + tensor("w", {4, 8}, {}, 1, external("no.data", "0", "128")))));
        QCOMPARE(qint64(absent->countParameters().unique), qint64(32));
        QVERIFY(absent->warnings.front().find("no.data is not there") != std::string::npos);
        write("there.data", std::string(200, '\0'));
        const auto there =
            open(write("there.onnx", model(graph + tensor("w", {4, 8}, {}, 1, external("there.data", "72", "128")))));
        QVERIFY(there->warnings.empty());
        // A table of 8 GiB takes no memory here.
        const auto large = open(
            write("large.onnx", model(node("Gather", {"w", "x"}, {"y"}, "/table/Gather") + input("x", {1, 4}, 7) +
                                      tensor("w", {1 << 20, 2048}, {}, 1, external("no.data", "0", "8589934592")))));
        QCOMPARE(qint64(large->countParameters().unique), qint64(1) << 31);
    }

    void workThatIsNotKnownIsSaid() {
        const auto graph = open(write("unknown.onnx", model(tensor("w", {4, 8}, std::string(128, '\1')) +
                                                            node("MatMul", {"x", "w"}, {"y"}, "/fc/MatMul") +
                                                            node("Xyzzy", {"y"}, {"z"}) + input("x", {1, 4}))));
        QVERIFY(std::any_of(graph->warnings.begin(), graph->warnings.end(), [](const std::string& text) {
            return text.find("the work of Xyzzy is not counted") != std::string::npos;
        }));
    }

    void tenThousandNodesAreOpened() {
        std::string text = input("x0", {1, 64, 32});
        for (int i = 0; i < 5000; ++i) {
            const std::string n = std::to_string(i);
            text += tensor("layers." + n + ".fc.weight", {32, 32}, std::string(4096, '\1')) +
                    node("MatMul", {"x" + n, "layers." + n + ".fc.weight"}, {"y" + n}, "/layers." + n + "/fc/MatMul") +
                    node("Relu", {"y" + n}, {"x" + std::to_string(i + 1)}, "/layers." + n + "/act/Relu");
        }
        const std::string path = write("large.onnx", model(text + output("x5000")));
        const std::clock_t start = std::clock(); // processor time: a busy machine does not count
        const auto graph = open(path);
        const auto milliseconds = (std::clock() - start) * 1000 / CLOCKS_PER_SEC;
        QCOMPARE(graph->operators.size(), std::size_t(5000));
        QCOMPARE(graph->blockCount(), 5000);
        QCOMPARE(graph->flopsForward(), 5000 * (2.0 * 64 * 32 * 32 + 64 * 32));
        qInfo("10,000 nodes opened in %lld ms", static_cast<long long>(milliseconds));
    }
};

QTEST_GUILESS_MAIN(tst_readers_onnx)
#include "tst_readers_onnx.moc"
