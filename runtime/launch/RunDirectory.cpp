// SPDX-License-Identifier: GPL-3.0-or-later
#include "runtime/launch/RunDirectory.h"

#include "runtime/contract/Json.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <filesystem>

namespace shardscope::engine {

namespace fs = std::filesystem;

contract::Result<void> checkRunDirectory(const RunOptions& options) {
    const fs::path folder = options.runDirectory;
    const std::string settings = (folder / "run.json").string();
    const bool holdsRun = fs::exists(folder / "run.ndjson") || fs::exists(folder / "checkpoints");
    if (!options.resume) {
        // Forgetting one option must not cost a training run.
        if (holdsRun)
            return contract::usageError(fmt::format(
                "--run-dir \"{}\": holds an earlier run; add --resume to go on with it, or name another folder",
                options.runDirectory));
        return contract::writeFileAtomically(settings,
                                             contract::OrderedJson{{"data", options.data}, {"seed", options.seed}}.dump(
                                                 2, ' ', false, contract::OrderedJson::error_handler_t::replace) +
                                                 "\n");
    }
    if (!holdsRun)
        return contract::badInput(fmt::format("--run-dir \"{}\": holds no run to resume", options.runDirectory));
    if (!fs::exists(settings))
        return {}; // started under another launcher
    const auto document = contract::readJsonFile(settings, 1 << 20);
    if (!document)
        return tl::unexpected(document.error());
    const contract::JsonCursor root(*document, settings);
    const std::string data = root.at("data").text();
    const std::int64_t seed = root.at("seed").integer();
    if (root.failed())
        return root.error();
    if (data != options.data)
        return contract::usageError(
            fmt::format("--data \"{}\": the run to resume was started with --data \"{}\"", options.data, data));
    const RunOptions defaults;
    if (options.seed != defaults.seed && static_cast<std::int64_t>(options.seed) != seed)
        return contract::usageError(
            fmt::format("--seed {}: the run to resume was started with --seed {}", options.seed, seed));
    return {};
}

} // namespace shardscope::engine
