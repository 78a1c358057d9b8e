// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "planner/search/Planner.h"

namespace shardscope::test {

/// A plan of `blocks` equal blocks with two operators between an embedding and a head; made by hand, numbers are not
/// real. The first `sharded` blocks are sharded, the others kept.
planner::PlanResultPointer samplePlan(int blocks, int sharded);
planner::Frontier sampleFrontier();

} // namespace shardscope::test
