// SPDX-License-Identifier: GPL-3.0-or-later
#include "planner/readers/Bundle.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <cstdlib>
#include <filesystem>
#include <system_error>

namespace shardscope::planner {

namespace {

namespace fs = std::filesystem;

constexpr int kParentsSearched = 4;

bool holdsModels(const fs::path& folder) {
    std::error_code ignored;
    return fs::is_regular_file(folder / "graphs" / "index.json", ignored);
}

/// Names become parts of paths, so an index cannot lead out of its folder.
bool isPlainName(const std::string& name) {
    return !name.empty() && name.front() != '.' && name.find_first_of("/\\") == std::string::npos;
}

} // namespace

std::string modelsFolder() {
    if (const char* chosen = std::getenv("SHARDSCOPE_MODELS"); chosen && *chosen)
        return chosen;
    std::error_code error;
    fs::path folder = fs::read_symlink("/proc/self/exe", error).parent_path();
    for (int i = 0; !error && i <= kParentsSearched && !folder.empty(); ++i) {
        for (const fs::path& candidate : {folder / "models", folder / "share" / "shardscope" / "models"}) {
            if (holdsModels(candidate))
                return candidate.string();
        }
        if (folder == folder.root_path())
            break;
        folder = folder.parent_path();
    }
    return "models";
}

std::vector<ZooEntry> readBundleIndex(std::string_view kind, std::string_view suffix) {
    const fs::path folder = fs::path(modelsFolder()) / kind;
    const std::string file = (folder / "index.json").string();
    const auto document = contract::readJsonFile(file, 1 << 20);
    if (!document)
        return {};
    const contract::JsonCursor cursor(*document, file);
    const contract::JsonCursor list = cursor.at("entries");
    const std::size_t count = list.arraySize(10000);
    std::vector<ZooEntry> entries;
    for (std::size_t i = 0; i < count && !cursor.failed(); ++i) {
        const contract::JsonCursor entry = list.element(i);
        const std::string name = entry.at("name").text(256);
        const std::string title = entry.at("title").text(256);
        if (!cursor.failed() && isPlainName(name))
            entries.push_back({name, title, (folder / (name + std::string(suffix))).string()});
    }
    return entries;
}

std::optional<ZooEntry> findEntry(const std::vector<ZooEntry>& entries, std::string_view name) {
    for (const ZooEntry& entry : entries) {
        if (entry.name == name)
            return entry;
    }
    return std::nullopt;
}

std::string listNames(const std::vector<ZooEntry>& entries) {
    std::string list;
    for (const ZooEntry& entry : entries)
        list += (list.empty() ? "" : ", ") + entry.name;
    return list.empty() ? fmt::format("none, as {} holds no index.json (set SHARDSCOPE_MODELS)", modelsFolder()) : list;
}

} // namespace shardscope::planner
