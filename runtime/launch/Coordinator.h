// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "runtime/launch/RunOptions.h"

namespace shardscope::engine {

/// For the first moment of a coordinator: a stop signal that arrives while the program starts is remembered.
void catchEarlyStops();

/// Runs a plan with one worker process per rank on this machine: checks everything before anything is written, starts
/// the workers, passes on their telemetry, names the first cause of a failure, restarts. Returns the exit code.
int runCoordinator(RunOptions options);

} // namespace shardscope::engine
