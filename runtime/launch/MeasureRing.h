// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "runtime/contract/Result.h"

#include <cstdint>
#include <vector>

namespace shardscope::engine {

/// Least squares of t = latency + bytes / bytesPerSecond on relative errors, so that small messages count as much as
/// large ones.
struct LinkFit {
    double latencySeconds = 0;
    double bytesPerSecond = 0;
    double r2 = 0;
};
struct LinkSample {
    double bytes = 0;
    double seconds = 0;
};
LinkFit fitLink(const std::vector<LinkSample>& samples);

/// What one ring step of one message size takes.
struct RingSample {
    LinkSample link;         ///< what a step that has it is longer
    double secondsAlone = 0; ///< of the message on an otherwise idle machine
};
/// Ring steps between `ranks` threads of this machine, by rising message size. `isCrowded`: every core computes while
/// messages are on their way; then a sample is what computing with the message beside it takes longer than computing
/// alone, since both want the same cores.
contract::Result<std::vector<RingSample>> measureRing(std::int64_t ranks, bool isCrowded);

} // namespace shardscope::engine
