// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "runtime/contract/Result.h"
#include "runtime/data/Tokenizer.h"
#include "runtime/launch/RunOptions.h"

#include <memory>
#include <optional>
#include <string>

namespace shardscope::engine {

/// What RUN_DIR/run.json says a run was started with.
struct RunSettings {
    struct UsedTokenizer {
        std::string path;
        std::string sha256; ///< of the file
    };
    std::string file; ///< run.json itself, for messages
    std::string data;
    std::int64_t seed = 1;
    std::optional<UsedTokenizer> tokenizer;
};

/// Nothing where the folder has no run.json, as runs of earlier versions under other launchers. Errors: BadInput.
contract::Result<std::optional<RunSettings>> readRunSettings(const std::string& runDirectory);
/// Errors: BadInput for a tokenizer that cannot be read, RunFailed when the file cannot be written.
contract::Result<void> writeRunSettings(const RunOptions& options);

/// A fresh run needs a folder without one, in which its settings are then written down; a resumed one the same data,
/// seed and tokenizer. Without --tokenizer a resumed run goes on with the one it has: `options` receives its path.
/// Errors: Usage or BadInput, naming the option.
contract::Result<void> checkRunDirectory(RunOptions& options);
/// The part of it that a rank without a coordinator checks: whether a resumed run has the settings it was started with.
contract::Result<void> checkResumed(RunOptions& options, const RunSettings& settings);

/// The tokenizer a run was made with, for its network's vocabulary; null: it has none. `path`: where it lies now, if
/// not where it lay then. Errors: BadInput, when it is gone or is not the same file any more.
contract::Result<std::unique_ptr<Tokenizer>> openRunTokenizer(const RunSettings& settings, const std::string& path,
                                                              std::int64_t vocabulary);

} // namespace shardscope::engine
