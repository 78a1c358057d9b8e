// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "runtime/contract/Result.h"

#include <string>

namespace shardscope::engine {

struct ShowOptions {
    std::string runDirectory;
    bool json = false;
};

/// Prints what RUN_DIR/run.ndjson says of a finished or running run. Errors: BadInput when there is no run.
contract::Result<void> runShow(const ShowOptions& options);

} // namespace shardscope::engine
