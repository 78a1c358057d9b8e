// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "runtime/contract/Result.h"

#include <cstdint>
#include <string>

namespace shardscope::engine {

struct SampleOptions {
    std::string runDirectory;
    std::string prompt;
    std::int64_t tokens = 200;
    double temperature = 0.8; ///< 0: always the most likely token
    std::uint64_t seed = 1;
    bool json = false;
};

/// Continues a prompt with the weights of a run's newest checkpoint, on one rank, and prints it. For networks trained
/// on bytes. Errors: BadInput when there is no checkpoint, or the prompt is empty.
contract::Result<void> runSample(const SampleOptions& options);

} // namespace shardscope::engine
