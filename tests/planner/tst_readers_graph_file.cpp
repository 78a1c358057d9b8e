// SPDX-License-Identifier: GPL-3.0-or-later
#include "planner/graph/PaperFamilies.h"
#include "planner/readers/GraphFile.h"
#include "planner/readers/Readers.h"
#include "runtime/contract/Sizing.h"

#include <QtTest>

#include <algorithm>

using namespace shardscope;
using planner::GraphPointer;

/// Our own graph files, and the networks of the paper.
class tst_readers_graph_file : public QObject {
    Q_OBJECT

    QTemporaryDir m_folder;

    GraphPointer writtenAndRead(const planner::Graph& graph, std::int64_t sequence = 0) const {
        const std::string path = m_folder.path().toStdString() + "/" + graph.name + ".graph.json";
        if (!contract::writeFileAtomically(path, planner::graphFileText(graph)))
            qFatal("cannot write");
        const auto read = planner::openGraph(path, sequence);
        if (!read)
            qFatal("%s", read.error().message.c_str());
        return *read;
    }

    static void compareOperators(const planner::Graph& first, const planner::Graph& second) {
        QCOMPARE(second.operators.size(), first.operators.size());
        const contract::Preset preset = *contract::findPreset("bf16-adam");
        for (std::size_t i = 0; i < first.operators.size(); ++i) {
            const contract::Operator& a = first.operators[i];
            const contract::Operator& b = second.operators[i];
            QCOMPARE(b.name, a.name);
            QCOMPARE(b.kind, a.kind);
            QCOMPARE(b.block, a.block);
            QCOMPARE(b.blockName, a.blockName);
            QCOMPARE(b.tiedTo, a.tiedTo);
            QCOMPARE(b.sharedStorage, a.sharedStorage);
            QCOMPARE(b.flopsForward, a.flopsForward);
            QCOMPARE(b.parameters(), a.parameters());
            QCOMPARE(b.maximumSlices(), a.maximumSlices());
            QCOMPARE(b.experts, a.experts);
            QCOMPARE(b.activeExperts, a.activeExperts);
            for (const bool recomputed : {false, true})
                QCOMPARE(contract::keptBytes(b, preset, 1, recomputed), contract::keptBytes(a, preset, 1, recomputed));
        }
        const auto live = [&](const planner::Graph& graph) {
            return contract::sizeLive(graph.operators, preset, 2, {true}).total() +
                   contract::sizeBase(graph.operators, graph.sequence, 2, 1, 4, preset).total();
        };
        QCOMPARE(live(second), live(first));
    }

private slots:
    void everyBundledGraphSurvives_data() {
        QTest::addColumn<QString>("name");
        for (const planner::ZooEntry& entry : planner::bundledGraphs())
            QTest::newRow(entry.name.c_str()) << QString::fromStdString(entry.name);
    }
    void everyBundledGraphSurvives() {
        QFETCH(QString, name);
        const GraphPointer graph = *planner::openGraph(name.toStdString());
        const GraphPointer read = writtenAndRead(*graph);
        QCOMPARE(read->name, graph->name);
        QCOMPARE(read->title, graph->title);
        QCOMPARE(read->family, graph->family);
        QCOMPARE(read->sequence, graph->sequence);
        QCOMPARE(read->maximumSequence, graph->maximumSequence);
        QCOMPARE(read->sha256(), graph->sha256());
        QVERIFY2(read->unknownKeys.empty(), read->unknownKeys.empty() ? "" : read->unknownKeys.front().c_str());
        const auto before = graph->countParameters();
        const auto after = read->countParameters();
        QCOMPARE(qint64(after.unique), qint64(before.unique));
        QCOMPARE(qint64(after.active), qint64(before.active));
        compareOperators(*graph, *read);
        if (graph->architecture)
            QCOMPARE(qint64(writtenAndRead(*graph, 16)->sequence), qint64(16));
        else
            QVERIFY(!planner::withSequence(read, 16));
    }

    void anotherLengthOfAFixedGraphIsRefusedByField() {
        const GraphPointer bert = *planner::openGraph("bert-base-uncased", 32);
        writtenAndRead(*bert, 32);
        const auto other = planner::openGraph(m_folder.filePath("bert-base-uncased.graph.json").toStdString(), 16);
        QVERIFY(!other);
        const std::string& message = other.error().message;
        QVERIFY2(message.find("bert-base-uncased.graph.json: sequence is 32 and 16 tokens are asked for") !=
                     std::string::npos,
                 message.c_str());
    }

    void keysThatAreNotKnownAreSaidAndIgnored() {
        const std::string path = m_folder.filePath("typo.graph.json").toStdString();
        const auto opened = [&](const char* text) {
            if (!contract::writeFileAtomically(path, text))
                qFatal("cannot write");
            const auto graph = planner::openGraph(path);
            if (!graph)
                qFatal("%s", graph.error().message.c_str());
            if ((*graph)->warnings != (*graph)->unknownKeys)
                qFatal("a graph file's keys are not among its warnings");
            return (*graph)->unknownKeys;
        };
        // One for each object that a graph file has.
        const std::vector<std::pair<std::string, std::string>> expected{{"maximum_sequense", "maximum_sequence"},
                                                                        {"operators[0].attention.key", "keys"},
                                                                        {"operators[0].experts.actve", "active"},
                                                                        {"operators[0].kept[0].fp23", "fp32"},
                                                                        {"operators[0].live.scratch", "scratch_bytes"},
                                                                        {"operators[0].tensors[0].row", "rows"},
                                                                        {"operators[0].tied", "tied_to"}};
        std::vector<std::string> found = opened(
            R"({"format":"shardscope-graph","version":1,"name":"x","family":"x","sequence":8,"maximum_sequense":9,)"
            R"("operators":[{"name":"a","kind":"linear","flops_forward":1,"tied":"b",)"
            R"("tensors":[{"name":"w","shape":[2,2],"row":1},{"name":"v","shape":[2],"row":1}],)"
            R"("kept":[{"name":"x","elements":1,"fp23":true}],)"
            R"("live":{"activation_elements":0,"wide_elements":0,"scratch_bytes":0,"scratch":1},)"
            R"("attention":{"heads":1,"kv_heads":1,"head_dim":1,"keys":1,"key":1},)"
            R"("experts":{"count":1,"active":1,"actve":1}}]})");
        std::sort(found.begin(), found.end());
        QCOMPARE(found.size(), expected.size());
        for (std::size_t i = 0; i < expected.size(); ++i) {
            QVERIFY2(found[i].starts_with(path + ": " + expected[i].first + " "), found[i].c_str());
            QVERIFY2(found[i].ends_with(" is \"" + expected[i].second + "\""), found[i].c_str());
        }
        QVERIFY(found[5].find(", as are 1 more like it") != std::string::npos);

        found =
            opened(R"({"format":"shardscope-graph","version":1,"name":"x","family":"gpt2","sequence":8,"architecture":)"
                   R"({"family":"gpt2","layers":1,"hidden":8,"heads":2,"kv_heads":2,"head_dim":4,"intermediate":32,)"
                   R"("vocabulary":16,"positions":8,"norm":{"kind":"layer_norm","epsilon":1e-5,"eps":1},)"
                   R"("activation":"gelu_tanh","attention":"fused","rope":null,"sliding_windows":{},)"
                   R"("biases":{"attention":true,"attention_output":true,"mlp":true,"head":true},)"
                   R"("qk_norm":false,"tied":true}})");
        QCOMPARE(found.size(), std::size_t(3));
        QVERIFY(found[0].find("architecture.sliding_windows") != std::string::npos);
        QVERIFY(found[1].find("architecture.norm.eps") != std::string::npos);
        QVERIFY(found[2].find("architecture.biases.head") != std::string::npos);
    }

    void thePapersFamiliesAreMade() {
        const auto narrow = planner::makePaperFamily({"narrow-deep", 96, {1024}}, 0);
        QVERIFY(narrow);
        QCOMPARE((*narrow)->name, std::string("narrow-deep-96x1024"));
        QCOMPARE((*narrow)->blockCount(), 96);
        QCOMPARE(qint64((*narrow)->countParameters().unique),
                 qint64(96) * (12 * 1024 * 1024 + 13 * 1024) + (50257 + 1024 + 2) * qint64(1024));
        const auto wide = planner::makePaperFamily({"wide-shallow", 0, {}}, 0);
        QVERIFY(wide);
        QCOMPARE((*wide)->blockCount(), 4);
        const auto mixed = planner::makePaperFamily({"inconsistent", 5, {128, 256}, 100, 64}, 32);
        QVERIFY(mixed);
        QCOMPARE(qint64((*mixed)->sequence), qint64(32));
        const auto block = [](qint64 h) { return 12 * h * h + 13 * h; };
        QCOMPARE(qint64((*mixed)->countParameters().unique),
                 (100 + 64) * 128 + 2 * block(128) + 128 * 256 + 3 * block(256) + 2 * 256 + 100 * 256);
        QVERIFY(planner::withSequence(*mixed, 64));
        compareOperators(**mixed, *writtenAndRead(**mixed));
    }

    void wrongFamiliesAreRefused_data() {
        QTest::addColumn<QString>("name");
        QTest::addColumn<qint64>("layers");
        QTest::addColumn<QList<qint64>>("hidden");
        QTest::addColumn<QString>("expected");
        QTest::newRow("name") << "deep" << qint64(2) << QList<qint64>{64} << "narrow-deep, wide-shallow, inconsistent";
        QTest::newRow("width") << "narrow-deep" << qint64(2) << QList<qint64>{100} << "multiple of 64";
        QTest::newRow("widths") << "narrow-deep" << qint64(2) << QList<qint64>{64, 128} << "one width";
        QTest::newRow("layers") << "inconsistent" << qint64(1) << QList<qint64>{64, 128} << "--layers 1";
        QTest::newRow("size") << "wide-shallow" << qint64(16384) << QList<qint64>{1048576} << "too large";
    }
    void wrongFamiliesAreRefused() {
        QFETCH(QString, name);
        QFETCH(qint64, layers);
        QFETCH(QList<qint64>, hidden);
        QFETCH(QString, expected);
        const auto graph = planner::makePaperFamily(
            {name.toStdString(), layers, std::vector<std::int64_t>(hidden.begin(), hidden.end())}, 0);
        QVERIFY(!graph);
        QVERIFY2(graph.error().message.find(expected.toStdString()) != std::string::npos,
                 graph.error().message.c_str());
        QVERIFY(graph.error().kind == contract::ErrorKind::Usage);
    }
};

QTEST_GUILESS_MAIN(tst_readers_graph_file)
#include "tst_readers_graph_file.moc"
