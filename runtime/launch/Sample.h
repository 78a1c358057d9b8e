// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "runtime/contract/Result.h"

#include <cstdint>
#include <string>

namespace shardscope::engine {

struct SampleOptions {
    std::string runDirectory;
    std::string prompt;
    std::string tokenizer; ///< where the run's lies now; empty: where it lay
    std::int64_t tokens = 200;
    double temperature = 0.8; ///< 0: always the most likely token
    std::uint64_t seed = 1;
    bool json = false;
};

/// Continues a prompt with the weights of a run's newest checkpoint, on one rank, and prints it, in the tokens that the
/// run was made with, or in bytes. Errors: Usage when the prompt is empty; BadInput when there is no checkpoint, or the
/// run's tokenizer is gone or changed.
contract::Result<void> runSample(const SampleOptions& options);

} // namespace shardscope::engine
