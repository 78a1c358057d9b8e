// SPDX-License-Identifier: GPL-3.0-or-later
#include "planner/readers/Bundle.h"
#include "planner/readers/Readers.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <filesystem>
#include <system_error>

namespace shardscope::planner {

namespace {

namespace fs = std::filesystem;
using contract::badInput;

constexpr std::int64_t kMaximumConfigBytes = 16 << 20;

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
        return file.stem().string();
    const std::string repository = cachedRepository(folder);
    return repository.empty() ? folder.filename().string() : repository;
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

/// What other kinds of files hold, for those that this version does not read.
std::string foreignKind(const fs::path& path) {
    const std::string file = path.filename().string();
    if (file.ends_with(".safetensors") || file.ends_with(".safetensors.index.json"))
        return "safetensors";
    if (file.ends_with(".onnx"))
        return "ONNX";
    if (file.ends_with(".gguf"))
        return "GGUF";
    if (file.ends_with(".bin") || file.ends_with(".pt") || file.ends_with(".pth") || file.ends_with(".ckpt"))
        return "PyTorch checkpoint";
    return {};
}

contract::Result<GraphPointer> openFolder(const fs::path& folder, std::int64_t sequence) {
    const fs::path config = folder / "config.json";
    std::error_code error;
    if (!fs::exists(config, error))
        return badInput(
            fmt::format("{}: the folder has no config.json, from which this version reads a graph", folder.string()));
    return openConfigFile(config.string(), nameOf(config), {}, sequence);
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
    if (const std::string kind = foreignKind(path); !kind.empty())
        return badInput(
            fmt::format("{}: is a {} file; this version reads the config.json of a Hugging Face folder, so name "
                        "that folder or its config.json",
                        argument, kind));
    return openConfigFile(argument, nameOf(path), {}, sequence);
}

} // namespace shardscope::planner
