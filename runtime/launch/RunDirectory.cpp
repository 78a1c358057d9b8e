// SPDX-License-Identifier: GPL-3.0-or-later
#include "runtime/launch/RunDirectory.h"

#include "runtime/contract/Json.h"
#include "runtime/data/Dataset.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <filesystem>

namespace shardscope::engine {

namespace fs = std::filesystem;

namespace {

std::string settingsFile(const std::string& runDirectory) {
    return (fs::path(runDirectory) / "run.json").string();
}

/// The same file, wherever it lies.
contract::Result<void> checkSameTokenizer(const RunSettings& settings, const Tokenizer& tokenizer) {
    const RunSettings::UsedTokenizer& used = *settings.tokenizer;
    if (tokenizer.sha256() == used.sha256)
        return {};
    return contract::badInput(fmt::format(
        "{}: is not the tokenizer that the run was made with ({}: tokenizer.sha256 is {}..., this file's is "
        "{}...); it was changed, or is another one",
        tokenizer.path(), settings.file, used.sha256.substr(0, 12), tokenizer.sha256().substr(0, 12)));
}

} // namespace

contract::Result<std::optional<RunSettings>> readRunSettings(const std::string& runDirectory) {
    const std::string file = settingsFile(runDirectory);
    std::error_code error;
    if (!fs::exists(file, error))
        return std::nullopt;
    const auto document = contract::readJsonFile(file, 1 << 20);
    if (!document)
        return tl::unexpected(document.error());
    const contract::JsonCursor root(*document, file);
    RunSettings settings;
    settings.file = file;
    settings.data = root.at("data").text();
    settings.seed = root.at("seed").integer();
    if (const auto tokenizer = root.find("tokenizer"))
        settings.tokenizer = {tokenizer->at("path").text(), tokenizer->at("sha256").text(64)};
    if (root.failed())
        return root.error();
    return settings;
}

contract::Result<void> writeRunSettings(const RunOptions& options) {
    contract::OrderedJson json{{"data", options.data}, {"seed", options.seed}};
    if (!options.tokenizer.empty()) {
        const auto tokenizer = Tokenizer::open(options.tokenizer);
        if (!tokenizer)
            return tl::unexpected(tokenizer.error());
        json["tokenizer"] = {{"path", (*tokenizer)->path()}, {"sha256", (*tokenizer)->sha256()}};
    }
    return contract::writeFileAtomically(settingsFile(options.runDirectory),
                                         json.dump(2, ' ', false, contract::OrderedJson::error_handler_t::replace) +
                                             "\n");
}

contract::Result<void> checkResumed(RunOptions& options, const RunSettings& settings) {
    if (settings.data != options.data)
        return contract::usageError(fmt::format("--data \"{}\": the run to resume was started with --data \"{}\"",
                                                options.data, settings.data));
    const RunOptions defaults;
    if (options.seed != defaults.seed && static_cast<std::int64_t>(options.seed) != settings.seed)
        return contract::usageError(
            fmt::format("--seed {}: the run to resume was started with --seed {}", options.seed, settings.seed));
    if (!settings.tokenizer) {
        if (!options.tokenizer.empty())
            return contract::usageError(
                fmt::format("--tokenizer \"{}\": the run to resume was started without one", options.tokenizer));
        return {};
    }
    constexpr std::int64_t kAnyVocabulary = std::int64_t{1} << 53; // the plan's is checked with the data
    const auto tokenizer = openRunTokenizer(settings, options.tokenizer, kAnyVocabulary);
    if (!tokenizer)
        return tl::unexpected(tokenizer.error());
    options.tokenizer = (*tokenizer)->path();
    return {};
}

contract::Result<void> checkRunDirectory(RunOptions& options) {
    const fs::path folder = options.runDirectory;
    const bool holdsRun = fs::exists(folder / "run.ndjson") || fs::exists(folder / "checkpoints");
    if (!options.resume) {
        // Forgetting one option must not cost a training run.
        if (holdsRun)
            return contract::usageError(fmt::format(
                "--run-dir \"{}\": holds an earlier run; add --resume to go on with it, or name another folder",
                options.runDirectory));
        return writeRunSettings(options);
    }
    if (!holdsRun)
        return contract::badInput(fmt::format("--run-dir \"{}\": holds no run to resume", options.runDirectory));
    const auto settings = readRunSettings(options.runDirectory);
    if (!settings)
        return tl::unexpected(settings.error());
    return *settings ? checkResumed(options, **settings) : contract::Result<void>();
}

contract::Result<std::unique_ptr<Tokenizer>> openRunTokenizer(const RunSettings& settings, const std::string& path,
                                                              std::int64_t vocabulary) {
    if (!settings.tokenizer) {
        if (!path.empty())
            return contract::usageError(
                fmt::format("--tokenizer \"{}\": the run was made without one ({})", path, settings.file));
        return nullptr;
    }
    auto tokenizer = openTokenizer(path.empty() ? settings.tokenizer->path : path, vocabulary);
    if (!tokenizer)
        return contract::badInput(
            fmt::format("{} (the run was made with this tokenizer; if it was moved, name its place with --tokenizer)",
                        tokenizer.error().message));
    if (auto same = checkSameTokenizer(settings, **tokenizer); !same)
        return tl::unexpected(same.error());
    return tokenizer;
}

} // namespace shardscope::engine
