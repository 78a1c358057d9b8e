// SPDX-License-Identifier: GPL-3.0-or-later
#include "planner/readers/Bundle.h"
#include "planner/readers/GraphFile.h"
#include "planner/readers/OnnxReader.h"
#include "planner/readers/Readers.h"
#include "planner/readers/WeightGraph.h"
#include "runtime/contract/Utf8.h"

#include <fmt/format.h>

#include <filesystem>
#include <system_error>

namespace shardscope::planner {

namespace {

namespace fs = std::filesystem;
using contract::badInput;

constexpr std::int64_t kMaximumConfigBytes = 4 << 20; // the labels of 21,000 classes take half of that

/// The repository of a folder in the Hugging Face cache, "models--OWNER--NAME/snapshots/HASH": NAME; else nothing.
std::string cachedRepository(const fs::path& folder) {
    const std::string repository = folder.parent_path().parent_path().filename().string();
    if (folder.parent_path().filename() != "snapshots" || !repository.starts_with("models--"))
        return {};
    return repository.substr(repository.rfind("--") + 2);
}

/// The name of what holds the configuration: its folder for a config.json, else the file without its extension.
std::string nameOf(const fs::path& file) {
    std::error_code error;
    const fs::path folder = fs::absolute(file, error).lexically_normal().parent_path();
    if (file.filename() != "config.json" || folder.filename().empty())
        return contract::toUtf8(file.stem().string());
    const std::string repository = cachedRepository(folder);
    return contract::toUtf8(repository.empty() ? folder.filename().string() : repository);
}

/// "model.safetensors" of a folder is named by the folder, "vae.safetensors" by itself.
std::string weightsName(const fs::path& path) {
    const std::string file = path.filename().string();
    const std::string stem = file.substr(0, file.find(".safetensors"));
    return stem == "model" ? nameOf(path.parent_path() / "config.json") : contract::toUtf8(stem);
}

contract::Result<GraphPointer> openConfigFile(const std::string& path, const std::string& name,
                                              const std::string& title, std::int64_t sequence) {
    const auto text = contract::readTextFile(path, kMaximumConfigBytes);
    if (!text)
        return tl::unexpected(text.error());
    auto graph = readConfig(*text, name, path, sequence);
    if (!graph || title.empty())
        return graph;
    auto titled = std::make_shared<Graph>(**graph);
    titled->title = title;
    return GraphPointer(std::move(titled));
}

/// A configuration's graph with the counts of the weights beside it and notes of where they differ.
contract::Result<GraphPointer> openConfigWithWeights(const std::string& config, const std::string& name,
                                                     const std::string& weightsPath, std::int64_t sequence) {
    const auto graph = openConfigFile(config, name, {}, sequence);
    if (!graph)
        return graph;
    const auto weights = openWeights(weightsPath);
    if (!weights)
        return tl::unexpected(weights.error());
    auto compared = std::make_shared<Graph>(**graph);
    compareWithWeights(*compared, *weights);
    return GraphPointer(std::move(compared));
}

contract::Result<GraphPointer> openFolder(const fs::path& folder, std::int64_t sequence) {
    const fs::path config = folder / "config.json";
    const auto weights = findWeights(folder.string());
    std::error_code error;
    if (fs::exists(config, error))
        return weights ? openConfigWithWeights(config.string(), nameOf(config), *weights, sequence)
                       : openConfigFile(config.string(), nameOf(config), {}, sequence);
    if (!weights)
        return badInput(fmt::format("{}: the folder has neither a config.json nor safetensors, from which this version "
                                    "reads a graph",
                                    folder.string()));
    const auto opened = openWeights(*weights);
    if (!opened)
        return tl::unexpected(opened.error());
    return readWeightGraph(*opened, nameOf(config), sequence);
}

/// Weights that were named themselves. A config.json beside them says more, if they are the weights of that network.
contract::Result<GraphPointer> openWeightFile(const fs::path& path, std::int64_t sequence) {
    const auto weights = openWeights(path.string());
    if (!weights)
        return tl::unexpected(weights.error());
    const fs::path config = path.parent_path() / "config.json";
    std::error_code error;
    if (!fs::exists(config, error))
        return readWeightGraph(*weights, weightsName(path), sequence);
    const auto graph = openConfigFile(config.string(), nameOf(config), {}, sequence);
    if (graph) {
        auto compared = std::make_shared<Graph>(**graph);
        if (compareWithWeights(*compared, *weights))
            return GraphPointer(std::move(compared));
    }
    auto alone = readWeightGraph(*weights, weightsName(path), sequence);
    if (!alone)
        return alone;
    auto noted = std::make_shared<Graph>(**alone);
    noted->warnings.push_back(graph ? std::string("the config.json beside the file is of another network")
                                    : "the config.json beside the file is not used: " + graph.error().message);
    return GraphPointer(std::move(noted));
}

bool isWeightFile(const fs::path& path) {
    const std::string file = path.filename().string();
    return file.ends_with(".safetensors") || file.ends_with(".safetensors.index.json");
}

/// What other kinds of files hold, for those that this version does not read.
std::string foreignKind(const fs::path& path) {
    const std::string file = path.filename().string();
    if (file.ends_with(".gguf"))
        return "GGUF";
    if (file.ends_with(".bin") || file.ends_with(".pt") || file.ends_with(".pth") || file.ends_with(".ckpt"))
        return "PyTorch checkpoint";
    return {};
}

} // namespace

std::vector<ZooEntry> bundledGraphs() {
    return readBundleIndex("graphs", "/config.json");
}

contract::Result<GraphPointer> openGraph(const std::string& argument, std::int64_t sequence) {
    const std::vector<ZooEntry> bundled = bundledGraphs();
    // A bundled name means the bundled graph wherever it is said; a folder of the same name is "./gpt2".
    if (const auto entry = findEntry(bundled, argument))
        return openConfigFile(entry->path, entry->name, entry->title, sequence);
    if (argument.empty())
        return badInput("no graph is named; bundled are " + listNames(bundled));
    if (argument.find('\0') != std::string::npos)
        return badInput("the graph's path holds a zero byte");
    const fs::path path(argument);
    std::error_code error;
    const fs::file_status status = fs::status(path, error);
    if (status.type() == fs::file_type::not_found || status.type() == fs::file_type::none)
        return badInput(fmt::format("{}: is neither a file, a folder nor a bundled graph; bundled are {}", argument,
                                    listNames(bundled)));
    if (fs::is_directory(status))
        return openFolder(path, sequence);
    if (argument.ends_with(".graph.json"))
        return readGraphFile(argument, sequence);
    if (path.filename().string().ends_with(".onnx"))
        return readOnnx(argument, contract::toUtf8(path.stem().string()), sequence);
    if (isWeightFile(path))
        return openWeightFile(path, sequence);
    if (const std::string kind = foreignKind(path); !kind.empty())
        return badInput(fmt::format("{}: is a {} file; this version reads config.json, safetensors, ONNX and "
                                    "*.graph.json",
                                    argument, kind));
    return openConfigFile(argument, nameOf(path), {}, sequence);
}

} // namespace shardscope::planner
