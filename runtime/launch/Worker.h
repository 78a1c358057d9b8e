// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "runtime/launch/RunOptions.h"

namespace shardscope::engine {

/// One rank, from start to exit code. Telemetry goes to standard output; without a coordinator rank 0 also keeps
/// RUN_DIR/run.ndjson and serves the rendezvous.
int runWorker(RunOptions options);

} // namespace shardscope::engine
