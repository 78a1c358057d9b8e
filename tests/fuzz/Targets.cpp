// SPDX-License-Identifier: GPL-3.0-or-later
#include "fuzz/Targets.h"

#include "planner/readers/GraphFile.h"
#include "planner/readers/OnnxReader.h"
#include "planner/readers/Readers.h"
#include "planner/readers/WeightFiles.h"
#include "planner/readers/WeightGraph.h"
#include "runtime/contract/Cluster.h"
#include "support/OnnxText.h"

#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <unistd.h>

namespace shardscope::fuzz {

namespace {

namespace fs = std::filesystem;

/// A folder of this process for readers that open files; memory-backed where there is such a place.
const fs::path& folder() {
    static const fs::path made = [] {
        const fs::path shared = "/dev/shm";
        std::error_code error;
        const fs::path base = fs::is_directory(shared, error) ? shared : fs::temp_directory_path();
        fs::path path = base / ("shardscope-fuzz-" + std::to_string(::getpid()));
        fs::create_directories(path);
        static struct Remover {
            fs::path path;
            ~Remover() {
                std::error_code ignored;
                fs::remove_all(path, ignored);
            }
        } remover{path};
        return path;
    }();
    return made;
}

std::string write(const char* name, std::string_view bytes) {
    const fs::path path = folder() / name;
    std::ofstream(path, std::ios::binary).write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
    return path.string();
}

/// What is opened must be usable: counts are sums, and another length can be asked for.
void use(const contract::Result<planner::GraphPointer>& graph) {
    if (!graph)
        return;
    const auto count = (*graph)->countParameters();
    if (count.unique < 0 || count.active > count.unique || (*graph)->operators.empty() || (*graph)->sequence < 1)
        std::abort();
    (void)(*graph)->sha256();
    (void)planner::withSequence(*graph, 7);
}

void readConfig(std::string_view bytes) {
    use(planner::readConfig(bytes, "fuzz", "fuzz/config.json"));
}

void readSafetensors(std::string_view bytes) {
    const auto weights = planner::openWeights(write("fuzz.safetensors", bytes));
    if (weights)
        use(planner::readWeightGraph(*weights, "fuzz", 0));
}

void readIndex(std::string_view bytes) {
    // One right shard for indices to name.
    static const std::string shard = [] {
        const std::string header = R"({"a.weight":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}})";
        std::string text(8, '\0');
        const std::uint64_t length = header.size();
        std::memcpy(text.data(), &length, sizeof length);
        return write("a.safetensors", text + header + std::string(4, '\0'));
    }();
    (void)planner::openWeights(write("fuzz.safetensors.index.json", bytes));
}

void readOnnx(std::string_view bytes) {
    use(planner::readOnnx(write("fuzz.onnx", bytes), "fuzz", 0));
}

void readGraph(std::string_view bytes) {
    use(planner::readGraphFile(write("fuzz.graph.json", bytes), 0));
}

void readCluster(std::string_view bytes) {
    (void)contract::readClusterFile(write("fuzz.cluster.json", bytes));
}

} // namespace

const std::vector<Target>& targets() {
    constexpr std::size_t kNetwork = std::size_t{128} << 20;
    // The tables of ONNX operators are made by the first graph whose shapes are inferred.
    static const std::string graph = [] {
        using namespace test::onnx_text;
        return model(node("Relu", {"x"}, {"y"}) + input("x", {1, 4}) + output("y"));
    }();
    static const std::vector<Target> all{
        {"config", readConfig, R"({"model_type":"gpt2"})", kNetwork},
        {"safetensors", readSafetensors, "{}", 0},
        {"index", readIndex, "{}", 0},
        {"onnx", readOnnx, graph, 0},
        {"graph", readGraph, "{}", 0},
        {"cluster", readCluster, "{}", 0},
    };
    return all;
}

} // namespace shardscope::fuzz
