// SPDX-License-Identifier: GPL-3.0-or-later
#include "planner/readers/WeightFiles.h"

#include "planner/readers/RandomAccessFile.h"
#include "runtime/contract/Json.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <filesystem>
#include <map>
#include <system_error>
#include <unordered_map>

namespace shardscope::planner {

using contract::badInput;
using contract::Result;

namespace {

namespace fs = std::filesystem;

constexpr std::int64_t kMaximumIndexBytes = 32 << 20;
constexpr std::size_t kMaximumIndexValues = 1 << 19; // of 61 layers with 256 experts there are 91,000 tensors
constexpr std::size_t kMaximumShards = 4096;
constexpr std::string_view kIndexSuffix = ".safetensors.index.json";

/// A file beside the index: a path inside a file cannot leave its folder.
bool isPlainName(const std::string& name) {
    return !name.empty() && name.size() < 256 && name.front() != '.' &&
           name.find_first_of(std::string_view("/\\\0", 3)) == std::string::npos;
}

Result<WeightFiles> openIndex(const std::string& path) {
    const auto document = contract::readJsonFile(path, kMaximumIndexBytes, kMaximumIndexValues);
    if (!document)
        return tl::unexpected(document.error());
    const contract::JsonCursor cursor(*document, path);
    const contract::JsonCursor map = cursor.at("weight_map");
    if (!cursor.failed() && !map.isObject())
        map.fail("must be an object that gives a file for each tensor");
    if (cursor.failed())
        return cursor.error();
    WeightFiles weights;
    weights.source = path;
    std::map<std::string, std::int32_t> shards;
    for (const auto& [tensor, file] : map.raw().items()) {
        const std::string name = file.is_string() ? file.get<std::string>() : std::string();
        if (!isPlainName(name))
            return badInput(fmt::format("{}: weight_map.{} must name a file beside the index, not {}", path,
                                        tensor.substr(0, 256), file.dump().substr(0, 256)));
        shards.emplace(name, 0);
        if (shards.size() > kMaximumShards)
            return badInput(fmt::format("{}: weight_map names more than {} files", path, kMaximumShards));
    }
    std::unordered_map<std::string, std::int32_t> stored;
    for (auto& [name, index] : shards) {
        index = static_cast<std::int32_t>(weights.files.size());
        weights.files.push_back((fs::path(path).parent_path() / name).string());
        auto tensors = readSafetensorsHeader(weights.files.back());
        if (!tensors)
            return tl::unexpected(tensors.error());
        for (StoredTensor& tensor : *tensors) {
            if (!stored.emplace(tensor.name, index).second)
                return badInput(fmt::format("{}: {}: is in an earlier file of {} as well", weights.files.back(),
                                            tensor.name, path));
            tensor.file = index;
            weights.tensors.push_back(std::move(tensor));
        }
    }
    for (const auto& [tensor, file] : map.raw().items()) {
        const auto found = stored.find(tensor);
        if (found == stored.end() || found->second != shards.at(file.get<std::string>()))
            return badInput(
                fmt::format("{}: weight_map.{} is not in {}", path, tensor.substr(0, 256), file.get<std::string>()));
    }
    if (const std::size_t unlisted = stored.size() - map.raw().size(); unlisted > 0)
        weights.notes.push_back(fmt::format("{} tensors are in the files but not in the index", unlisted));
    return weights;
}

/// The first file of a folder, in the order of names, that ends so.
std::optional<std::string> firstFile(const std::string& folder, std::string_view suffix) {
    std::error_code error;
    std::optional<std::string> found;
    for (fs::directory_iterator it(folder, error), end; !error && it != end; it.increment(error)) {
        const std::string name = it->path().filename().string();
        if (name.ends_with(suffix) && (!found || it->path().string() < *found))
            found = it->path().string();
    }
    return found;
}

} // namespace

Result<WeightFiles> openWeights(const std::string& path) {
    if (path.ends_with(kIndexSuffix))
        return openIndex(path);
    auto tensors = readSafetensorsHeader(path);
    if (!tensors)
        return tl::unexpected(tensors.error());
    WeightFiles weights;
    weights.source = path;
    weights.files = {path};
    weights.tensors = std::move(*tensors);
    return weights;
}

std::optional<std::string> findWeights(const std::string& folder) {
    std::error_code error;
    for (const char* name : {"model.safetensors.index.json", "model.safetensors"}) {
        const fs::path path = fs::path(folder) / name;
        if (fs::exists(path, error))
            return path.string();
    }
    if (auto index = firstFile(folder, kIndexSuffix))
        return index;
    return firstFile(folder, ".safetensors");
}

bool holdSameBytes(const WeightFiles& weights, const StoredTensor& first, const StoredTensor& second) {
    constexpr std::int64_t kWhole = 1 << 20;
    constexpr std::int64_t kPlaces = 64;
    constexpr std::int64_t kPlaceBytes = 4096;
    const std::int64_t bytes = first.end - first.begin;
    if (first.dtype != second.dtype || first.shape != second.shape || bytes == 0)
        return false;
    const auto fileOf = [&](const StoredTensor& tensor) {
        return RandomAccessFile::open(weights.files.at(static_cast<std::size_t>(tensor.file)));
    };
    const auto a = fileOf(first);
    const auto b = fileOf(second);
    if (!a || !b)
        return false;
    const bool whole = bytes <= kWhole;
    const std::int64_t length = whole ? bytes : kPlaceBytes;
    const std::int64_t places = whole ? 1 : kPlaces;
    std::string left(static_cast<std::size_t>(length), '\0');
    std::string right(left);
    for (std::int64_t i = 0; i < places; ++i) {
        const std::int64_t offset = whole ? 0 : (bytes - length) / (places - 1) * i;
        if (!a->read(first.begin + offset, left.data(), left.size()) ||
            !b->read(second.begin + offset, right.data(), right.size()) || left != right)
            return false;
    }
    return true;
}

} // namespace shardscope::planner
