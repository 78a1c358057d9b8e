// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "runtime/contract/Result.h"

#include <cstdint>
#include <optional>
#include <string>

namespace shardscope::engine {

struct ExportOptions {
    std::string runDirectory;
    std::string output;               ///< the folder to be made
    std::optional<std::int64_t> step; ///< of the checkpoint; none: the newest that is whole
    std::string dtype = "fp32";       ///< or "bf16"
    bool force = false;               ///< replace a folder of files
    bool json = false;
};

/// Writes a Hugging Face folder, which the transformers library loads, from a checkpoint of a run: config.json,
/// model.safetensors, and tokenizer.json where the run had one that is still there. The folder appears whole or not at
/// all. Errors: Usage when the output is in the way; BadInput when there is no such run or checkpoint; RunFailed when
/// the folder cannot be written; Interrupted.
contract::Result<void> runExport(const ExportOptions& options);

} // namespace shardscope::engine
