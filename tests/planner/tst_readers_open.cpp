// SPDX-License-Identifier: GPL-3.0-or-later
#include "planner/readers/Readers.h"

#include <QtTest>

#include <filesystem>
#include <fstream>
#include <sys/stat.h>
#include <unistd.h>

using namespace shardscope;
namespace fs = std::filesystem;

/// What may be named on a command line.
class tst_readers_open : public QObject {
    Q_OBJECT

    QTemporaryDir m_folder;
    std::string m_root;

    std::string write(const std::string& relative, const std::string& text) const {
        const fs::path path = fs::path(m_root) / relative;
        fs::create_directories(path.parent_path());
        std::ofstream(path) << text;
        return path.string();
    }
    static std::string messageOf(const std::string& argument) {
        const auto graph = planner::openGraph(argument);
        return graph ? std::string("opened") : graph.error().message;
    }
    static void expectMessage(const std::string& argument, const std::vector<std::string>& parts) {
        const std::string message = messageOf(argument);
        for (const std::string& part : parts)
            QVERIFY2(message.find(part) != std::string::npos, message.c_str());
    }

private slots:
    void initTestCase() { m_root = m_folder.path().toStdString(); }

    void foldersAndFilesOpen() {
        const std::string file =
            write("tiny/config.json", R"({"model_type":"gpt2","n_embd":64,"n_layer":2,"n_head":4})");
        for (const std::string& argument : {file, m_root + "/tiny", m_root + "/tiny/", m_root + "/other/../tiny"}) {
            fs::create_directories(m_root + "/other");
            const auto graph = planner::openGraph(argument);
            QVERIFY2(graph, graph ? "" : graph.error().message.c_str());
            QCOMPARE((*graph)->name, std::string("tiny"));
            QCOMPARE((*graph)->blockCount(), 2);
        }
        const auto named = planner::openGraph(write("small-one.json", R"({"model_type":"gpt2","n_layer":1})"));
        QVERIFY(named);
        QCOMPARE((*named)->name, std::string("small-one"));
    }

    void aNameOfOtherBytesIsShownAsText() {
        // A file's name may be any bytes; a graph's name is written into JSON.
        const char* config = R"({"model_type":"gpt2","n_layer":1})";
        for (const std::string& argument : {write("\xff"
                                                  "dir/config.json",
                                                  config),
                                            write("\xff.json", config),
                                            m_root + "/\xff"
                                                     "dir"}) {
            const auto graph = planner::openGraph(argument);
            QVERIFY(graph);
            QVERIFY2((*graph)->name.starts_with("\xef\xbf\xbd"), (*graph)->name.c_str());
            QCOMPARE((*graph)->source.find("\xff") != std::string::npos, true);
        }
    }

    void aCachedSnapshotIsNamedByItsRepository() {
        write("hub/models--openai-community--gpt2/snapshots/607a30d/config.json", R"({"model_type":"gpt2"})");
        const auto graph = planner::openGraph(m_root + "/hub/models--openai-community--gpt2/snapshots/607a30d");
        QVERIFY(graph);
        QCOMPARE((*graph)->name, std::string("gpt2"));
    }

    void bundledNamesWinAndPathsAreSaidWithASlash() {
        write("here/gpt2/config.json", R"({"model_type":"gpt2","n_layer":1})");
        const fs::path before = fs::current_path();
        fs::current_path(m_root + "/here");
        const auto bundled = planner::openGraph("gpt2");
        const auto local = planner::openGraph("./gpt2");
        fs::current_path(before);
        QVERIFY(bundled && local);
        QCOMPARE((*bundled)->blockCount(), 12);
        QCOMPARE((*local)->blockCount(), 1);
    }

    void whatIsNotThereIsSaid() {
        expectMessage("gpt5", {"gpt5", "neither a file, a folder nor a bundled graph", "gpt2-xl", "demo-small"});
        expectMessage("", {"no graph is named", "gpt2-xl"});
        expectMessage(m_root + "/nothing/config.json", {"/nothing/config.json", "bundled"});
        expectMessage(std::string("gpt2\0x", 6), {"zero byte"});
        expectMessage(std::string(10000, 'a'), {"neither"});
        expectMessage("../graphs/gpt2", {"neither"});
    }

    void foldersWithoutConfigurationAreSaid() {
        fs::create_directories(m_root + "/empty");
        expectMessage(m_root + "/empty", {"/empty", "neither a config.json nor safetensors"});
        fs::create_directories(m_root + "/folder/config.json");
        expectMessage(m_root + "/folder", {"/folder/config.json", "not a regular file"});
    }

    void filesThatCannotBeReadAreSaid() {
        const std::string pipe = m_root + "/pipe.json";
        QCOMPARE(::mkfifo(pipe.c_str(), 0600), 0);
        expectMessage(pipe, {"pipe.json", "not a regular file"});
        expectMessage("/dev/zero", {"/dev/zero", "not a regular file"});
        expectMessage(write("empty.json", ""), {"empty.json", "not valid JSON"});
        fs::create_symlink(m_root + "/loop.json", m_root + "/loop.json");
        QVERIFY(messageOf(m_root + "/loop.json").find("loop.json") != std::string::npos);
        const std::string large = write("large.json", "{}");
        fs::resize_file(large, std::uintmax_t{1} << 30);
        expectMessage(large, {"large.json", "more than"});
        if (::geteuid() != 0) {
            const std::string secret = write("secret.json", "{}");
            fs::permissions(secret, fs::perms::none);
            expectMessage(secret, {"secret.json", "cannot be opened"});
        }
    }

    void otherFormatsAreRefusedInWords() {
        for (const char* name : {"a.gguf", "pytorch_model.bin", "a.pt", "a.ckpt"})
            expectMessage(write(name, "x"), {name, "this version reads config.json"});
    }

    void filesThatAreNotWhatTheirNamesSayAreRefused() {
        expectMessage(write("a.safetensors", "x"), {"a.safetensors", "too short for a safetensors file"});
        expectMessage(write("model.safetensors.index.json", "x"), {"model.safetensors.index.json", "not valid JSON"});
        expectMessage(write("a.onnx", "x"), {"a.onnx", "ONNX"});
        expectMessage(write("a.graph.json", "{}"), {"a.graph.json", "format is missing"});
    }

    void theModelsFolderCanBeChosen() {
        const std::string usual = planner::modelsFolder();
        QVERIFY(fs::exists(usual + "/graphs/index.json"));
        write(
            "models/graphs/index.json",
            R"({"entries":[{"name":"mine","title":"Mine"},{"name":"../escape","title":"x"},{"name":"a/b","title":"x"}]})");
        write("models/graphs/mine/config.json", R"({"model_type":"gpt2","n_layer":1})");
        qputenv("SHARDSCOPE_MODELS", QByteArray::fromStdString(m_root + "/models"));
        const auto entries = planner::bundledGraphs();
        const auto mine = planner::openGraph("mine");
        const std::string other = messageOf("gpt2-xl");
        qputenv("SHARDSCOPE_MODELS", QByteArray::fromStdString(m_root + "/nowhere"));
        const std::string none = messageOf("gpt2-xl");
        qunsetenv("SHARDSCOPE_MODELS");
        QCOMPARE(entries.size(), std::size_t(1));
        QVERIFY(mine);
        QCOMPARE((*mine)->title, std::string("Mine"));
        QVERIFY(other.find("bundled are mine") != std::string::npos);
        QVERIFY(none.find("SHARDSCOPE_MODELS") != std::string::npos);
    }
};

QTEST_GUILESS_MAIN(tst_readers_open)
#include "tst_readers_open.moc"
