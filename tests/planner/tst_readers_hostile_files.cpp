// SPDX-License-Identifier: GPL-3.0-or-later
#include "planner/readers/Readers.h"
#include "support/HostileFiles.h"

#include <QtTest>

#include <filesystem>
#include <fstream>

using namespace shardscope;
namespace fs = std::filesystem;

/// Weights, ONNX graphs and graph files that are wrong: each is refused as bad input, by file and field.
class tst_readers_hostile_files : public QObject {
    Q_OBJECT

    QTemporaryDir m_folder;

    std::string write(const std::string& name, std::string_view bytes) const {
        const fs::path path = fs::path(m_folder.path().toStdString()) / name;
        std::ofstream(path, std::ios::binary).write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
        return path.string();
    }
    static bool hasOnnx() {
        const auto graph = planner::openGraph(std::string(SHARDSCOPE_SOURCE_DIR) + "/tests/absent.onnx");
        return graph.error().message.find("without the onnx library") == std::string::npos;
    }

private slots:
    void wrongFilesAreRefusedByField_data() {
        QTest::addColumn<int>("index");
        const auto& files = test::hostileFiles();
        QVERIFY(files.size() >= 60);
        for (std::size_t i = 0; i < files.size(); ++i)
            QTest::newRow((files[i].name + ": " + files[i].what).c_str()) << static_cast<int>(i);
    }
    void wrongFilesAreRefusedByField() {
        QFETCH(int, index);
        const test::HostileFile& file = test::hostileFiles()[static_cast<std::size_t>(index)];
        const std::string path = write(file.name, file.bytes);
        const auto graph = planner::openGraph(path);
        fs::remove(path);
        QVERIFY(!graph);
        if (file.name.ends_with(".onnx") && graph.error().message.find("without the onnx library") != std::string::npos)
            QSKIP("this build has no onnx library");
        const std::string& message = graph.error().message;
        QVERIFY2(message.find(file.expected) != std::string::npos, message.c_str());
        QVERIFY2(message.find(m_folder.path().toStdString()) != std::string::npos, message.c_str());
        QVERIFY2(message.size() < 2000, message.c_str());
        QVERIFY(graph.error().kind == contract::ErrorKind::BadInput);
    }

    void everyTruncationIsRefused_data() {
        QTest::addColumn<QString>("name");
        QTest::addColumn<QByteArray>("whole");
        const std::string weights = test::withHeader(
            R"({"h.0.up.weight":{"dtype":"F32","shape":[2,3],"data_offsets":[0,24]}})", std::string(24, '\0'));
        const auto row = [](const char* name, const std::string& whole) {
            QTest::newRow(name) << QString(name) << QByteArray::fromStdString(whole);
        };
        row("t.safetensors", weights);
        write("shard.safetensors", weights);
        row("model.safetensors.index.json", R"({"weight_map":{"h.0.up.weight":"shard.safetensors"}})");
        row("config.json", R"({"model_type":"gpt2","n_embd":8,"n_head":2,"n_layer":1})");
        row("t.graph.json",
            R"({"format":"shardscope-graph","version":1,"name":"x","family":"x","sequence":8,"operators":)"
            R"([{"name":"a","kind":"linear","tensors":[],"flops_forward":1,"kept":[]}]})");
    }
    void everyTruncationIsRefused() {
        QFETCH(QString, name);
        QFETCH(QByteArray, whole);
        const auto openPart = [&](int length) {
            return planner::openGraph(write(name.toStdString(), whole.left(length).toStdString()));
        };
        const auto graph = openPart(static_cast<int>(whole.size()));
        QVERIFY2(graph, graph ? "" : graph.error().message.c_str());
        for (int length = 0; length < whole.size(); ++length) {
            const auto part = openPart(length);
            QVERIFY2(!part, std::to_string(length).c_str());
            QVERIFY2(part.error().message.find(name.toStdString()) != std::string::npos, part.error().message.c_str());
        }
    }

    void everyTruncationOfOnnxIsReadOrRefused() {
        if (!hasOnnx())
            QSKIP("this build has no onnx library");
        const std::string whole = test::onnx_text::linear();
        const auto graph = planner::openGraph(write("t.onnx", whole));
        QVERIFY2(graph, graph ? "" : graph.error().message.c_str());
        QCOMPARE(qint64((*graph)->countParameters().unique), qint64(32));
        // The format does not say where a graph ends: one cut off between two fields is a smaller one.
        for (std::size_t length = 0; length < whole.size(); ++length)
            QVERIFY(!planner::openGraph(write("t.onnx", std::string_view(whole).substr(0, length))));
    }

    void everyChangedByteIsReadOrRefused() {
        const std::string file = test::withHeader(
            R"({"h.0.up.weight":{"dtype":"F32","shape":[2,3],"data_offsets":[0,24]}})", std::string(24, '\0'));
        for (const auto& [name, whole] :
             {std::pair<std::string, std::string>{"c.safetensors", file}, {"c.onnx", test::onnx_text::linear()}}) {
            for (std::size_t i = 0; i < whole.size(); ++i) {
                for (const char change : {'\x01', '\x80', '\x7f', '\xff'}) {
                    std::string changed = whole;
                    changed[i] = static_cast<char>(changed[i] ^ change);
                    const auto graph = planner::openGraph(write(name, changed));
                    QVERIFY(graph || graph.error().kind == contract::ErrorKind::BadInput);
                }
            }
        }
    }

    void linksOutOfTheFolderAreNotFollowed() {
        if (!hasOnnx())
            QSKIP("this build has no onnx library");
        using namespace test::onnx_text;
        fs::create_directories(m_folder.path().toStdString() + "/inside");
        write("secret.data", std::string(128, 'x'));
        fs::create_symlink(m_folder.path().toStdString() + "/secret.data",
                           m_folder.path().toStdString() + "/inside/w.data");
        const std::string path = write("inside/x.onnx", model(node("MatMul", {"x", "w"}, {"y"}) + input("x", {2, 4}) +
                                                              tensor("w", {4, 8}, {}, 1, external("w.data"))));
        const auto graph = planner::openGraph(path);
        QVERIFY(!graph);
        QVERIFY2(graph.error().message.find("external_data location") != std::string::npos,
                 graph.error().message.c_str());
    }
};

QTEST_GUILESS_MAIN(tst_readers_hostile_files)
#include "tst_readers_hostile_files.moc"
