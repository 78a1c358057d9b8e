// SPDX-License-Identifier: GPL-3.0-or-later
// Gives wrong files to the program itself: it must refuse each with exit code 3, by file and field, within a second and
// 200 MiB. The longest time is said.
#include "support/HostileFiles.h"

#include <QtTest>

#include <algorithm>
#include <array>
#include <fcntl.h>
#include <filesystem>
#include <fstream>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

using namespace shardscope;
namespace fs = std::filesystem;

namespace {

struct Outcome {
    int exitCode = -1;
    std::string errors;
    double seconds = 0; ///< of processor time, so that a busy machine does not count
    std::int64_t residentBytes = 0;
};

Outcome plan(std::vector<std::string> words) {
    words.insert(words.begin(), std::string(SHARDSCOPE_BIN_DIR) + "/shardscope-plan");
    std::vector<char*> arguments;
    for (std::string& word : words)
        arguments.push_back(word.data());
    arguments.push_back(nullptr);
    std::array<int, 2> channel{};
    if (::pipe2(channel.data(), O_CLOEXEC) != 0)
        qFatal("no pipe");
    const pid_t child = ::fork();
    if (child == 0) {
        const int nothing = ::open("/dev/null", O_WRONLY);
        ::dup2(nothing, STDOUT_FILENO);
        ::dup2(channel[1], STDERR_FILENO);
        ::execv(arguments.front(), arguments.data());
        ::_exit(127);
    }
    ::close(channel[1]);
    Outcome outcome;
    std::array<char, 4096> buffer{};
    for (ssize_t count = 0; (count = ::read(channel[0], buffer.data(), buffer.size())) > 0;)
        outcome.errors.append(buffer.data(), static_cast<std::size_t>(count));
    ::close(channel[0]);
    int status = 0;
    rusage usage{};
    ::wait4(child, &status, 0, &usage);
    outcome.exitCode = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
    const auto seconds = [](const timeval& time) {
        return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) * 1e-6;
    };
    outcome.seconds = seconds(usage.ru_utime) + seconds(usage.ru_stime);
    outcome.residentBytes = usage.ru_maxrss * 1024;
    return outcome;
}

} // namespace

class tst_hostile_files : public QObject {
    Q_OBJECT

    QTemporaryDir m_folder;
    int m_files = 0;
    double m_seconds = 0;
    std::int64_t m_residentBytes = 0;

    static std::vector<std::string> reading(const std::string& path) {
        if (path.ends_with(".cluster.json"))
            return {"solve", "demo-small", "--cluster", path, "--json"};
        return {"inspect", path, "--json"};
    }

    /// What a program is said to have taken includes what this one holds when it starts it: the file's bytes are let
    /// go.
    void expectRefusal(test::HostileFile file) {
        const fs::path path = fs::path(m_folder.path().toStdString()) / file.name;
        std::ofstream(path, std::ios::binary).write(file.bytes.data(), static_cast<std::streamsize>(file.bytes.size()));
        std::string().swap(file.bytes);
        expectRefusalOf(path.string(), file.expected);
        fs::remove(path);
    }

    void expectRefusalOf(const std::string& path, const std::string& expected) {
        const Outcome outcome = plan(reading(path));
        QVERIFY2(outcome.exitCode == 3, outcome.errors.c_str());
        const bool cannotRead = outcome.errors.find("without the onnx library") != std::string::npos;
        QVERIFY2(outcome.errors.find(expected) != std::string::npos || cannotRead, outcome.errors.c_str());
        QVERIFY2(outcome.errors.find(m_folder.path().toStdString()) != std::string::npos, outcome.errors.c_str());
        QVERIFY2(outcome.errors.size() < 2000, std::to_string(outcome.errors.size()).c_str());
        m_seconds = std::max(m_seconds, outcome.seconds);
        m_residentBytes = std::max(m_residentBytes, outcome.residentBytes);
        ++m_files;
        QVERIFY2(outcome.seconds < 1, std::to_string(outcome.seconds).c_str());
        QVERIFY2(outcome.residentBytes < std::int64_t{200} << 20, std::to_string(outcome.residentBytes).c_str());
    }

private slots:
    void everyWrongFileIsRefusedByTheProgram() {
        const auto& files = test::hostileFiles();
        QVERIFY(files.size() >= 60);
        for (const test::HostileFile& file : files) {
            expectRefusal(file);
            if (QTest::currentTestFailed()) {
                qWarning("%s: %s", file.name.c_str(), file.what.c_str());
                return;
            }
        }
    }

    void everyWrongClusterIsRefusedByTheProgram() {
        const std::string right = m_folder.filePath("right.cluster.json").toStdString();
        std::ofstream(right) << test::clusterText();
        const Outcome outcome = plan(reading(right));
        QVERIFY2(outcome.exitCode == 0 && outcome.errors.empty(), outcome.errors.c_str());
        for (const test::HostileFile& file : test::hostileClusters()) {
            expectRefusal(file);
            if (QTest::currentTestFailed()) {
                qWarning("%s: %s", file.name.c_str(), file.what.c_str());
                return;
            }
        }
    }

    void largeFilesOfNothingTakeNoMemory() {
        // Headers and documents as large as may be, of the smallest values there are.
        std::string zeros = "[0";
        while (zeros.size() < (4U << 20) - 64)
            zeros += ",0";
        expectRefusal({"a long list", "config.json", R"({"model_type":"bert","id2label":)" + zeros + "]}", "id2label"});
        expectRefusal(
            {"a header of zeros", "x.safetensors", test::withHeader(R"({"a":)" + zeros + "]}"), "out of place"});
        const auto repeated = [](std::string_view value, std::size_t bytes) {
            std::string list = "[" + std::string(value);
            while (list.size() < bytes)
                list.append(",").append(value);
            return list + "]";
        };
        const auto keys = [](std::size_t bytes) {
            std::string object = "{\"k\":0";
            for (int i = 0; object.size() < bytes; ++i)
                object += ",\"k" + std::to_string(i) + "\":0";
            return object + "}";
        };
        constexpr std::size_t kMebibyte = std::size_t{1} << 20;
        expectRefusal({"labels", "config.json",
                       R"({"model_type":"bert","id2label":1,"x":)" + keys(4 * kMebibyte - 64) + "}", "id2label"});
        for (const char* value : {"0", "{}", "[]", "\"\"", "\"sixteen letters.\""})
            expectRefusal({"a graph of nothing", "x.graph.json",
                           R"({"format":"shardscope-graph","version":2,"x":)" + repeated(value, 30 * kMebibyte) + "}",
                           "has more than"});
        expectRefusal({"a graph of keys", "x.graph.json", keys(30 * kMebibyte), "has more than"});
        expectRefusal(
            {"one long text", "x.graph.json",
             R"({"format":"shardscope-graph","version":2,"x":)" + ('"' + std::string(30 * kMebibyte, 'x')) + "\"}",
             "version is 2"});
        expectRefusal({"an index of nothing", "model.safetensors.index.json",
                       R"({"weight_map":)" + keys(31 * kMebibyte) + "}", "has more than"});
        expectRefusal({"a list beside an index", "model.safetensors.index.json",
                       R"({"weight_map":{},"x":)" + repeated("0", 31 * kMebibyte) + "}", "has more than"});
        std::string zero(std::size_t{80} << 20, '\0');
        zero[3] = 4; // a header of 64 MiB
        expectRefusal({"a header of zero bytes", "x.safetensors", std::move(zero), "must begin with"});
    }

    void whatIsNoFileIsRefusedByTheProgram() {
        const fs::path folder = m_folder.path().toStdString();
        for (const char* name : {"n.config.json", "n.safetensors", "n.safetensors.index.json", "n.onnx", "n.graph.json",
                                 "n.cluster.json"}) {
            const fs::path path = folder / name;
            QCOMPARE(::mkfifo(path.c_str(), 0600), 0); // nobody will ever write into it
            expectRefusalOf(path.string(), "is not a regular file");
            fs::remove(path);
            fs::create_symlink("/dev/zero", path);
            expectRefusalOf(path.string(), "is not a regular file");
            fs::remove(path);
            fs::create_symlink(path, path); // leads to itself
            expectRefusalOf(path.string(), name);
            fs::remove(path);
            fs::create_symlink(folder / "nowhere", path);
            expectRefusalOf(path.string(), name);
            fs::remove(path);
            fs::create_directory(path);
            expectRefusalOf(path.string(), name);
            fs::remove(path);
            if (QTest::currentTestFailed())
                return;
        }
        // In a folder, as what belongs to it.
        for (const char* name : {"config.json", "model.safetensors", "model.safetensors.index.json"}) {
            const fs::path inside = folder / "model";
            fs::create_directory(inside);
            if (std::string_view(name) != "config.json")
                std::ofstream(inside / "config.json") << R"({"model_type":"gpt2","n_layer":1})";
            QCOMPARE(::mkfifo((inside / name).c_str(), 0600), 0);
            expectRefusalOf(inside.string(), std::string(name) + ": is not a regular file");
            fs::remove_all(inside);
        }
    }

    void everyTruncationIsRefusedByTheProgram() {
        const std::string weights =
            test::withHeader(R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}})", std::string(4, '\0'));
        for (const auto& [name, whole] : std::vector<std::pair<std::string, std::string>>{
                 {"config.json", R"({"model_type":"gpt2"})"},
                 {"t.safetensors", weights},
                 {"t.onnx", test::onnx_text::linear()},
                 {"t.graph.json", R"({"format":"shardscope-graph","version":1})"},
                 {"t.cluster.json", test::clusterText()}}) {
            for (std::size_t length = 0; length < whole.size(); ++length) {
                expectRefusal({"cut off", name, whole.substr(0, length), name});
                if (QTest::currentTestFailed())
                    return;
            }
        }
    }

    void cleanupTestCase() {
        qInfo("%d files refused, the worst in %.3f s of processor time, and with %lld KiB", m_files, m_seconds,
              static_cast<long long>(m_residentBytes / 1024));
    }
};

QTEST_GUILESS_MAIN(tst_hostile_files)
#include "tst_hostile_files.moc"
