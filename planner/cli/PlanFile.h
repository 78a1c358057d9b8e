// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "planner/timeline/PlannedStep.h"
#include "planner/timeline/Waterfall.h"
#include "runtime/contract/Json.h"
#include "runtime/contract/Plan.h"

#include <string>

namespace shardscope::planner::cli {

struct OpenedPlan {
    contract::Plan plan;
    PlannedStep step;
};

/// Reads and checks a plan file. Where it has no architecture, the operators come from `graph` (a path or a bundled
/// name), or from the bundled graph of the plan's name, if it is the same graph. Errors: BadInput, naming the file and
/// the field.
contract::Result<OpenedPlan> openPlan(const std::string& path, const std::string& graph);

/// "12.31 ms", "-3.2 us": a duration for people.
std::string durationText(double seconds);

/// Seconds by cause, with the keys of causeName().
contract::OrderedJson waterfallJson(const Waterfall& waterfall);

} // namespace shardscope::planner::cli
