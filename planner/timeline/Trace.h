// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "planner/timeline/Timeline.h"

#include <string>

namespace shardscope::planner {

/// A recorded timeline in the Trace Event Format, JSON object form, that ui.perfetto.dev and chrome://tracing open:
/// complete events ("X") on one thread per stream, counters ("C") of the bytes in use per ledger category, metadata
/// ("M") with their names. Timestamps in microseconds, exact to the picosecond. Deterministic.
std::string formatTrace(const PlannedStep& step, const Timeline& timeline);

} // namespace shardscope::planner
