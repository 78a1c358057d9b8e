// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "app/work/Answer.h"

#include <QString>

namespace shardscope::app {

/// "Sharded: saves 123 MiB, costs 3.1 ms a step. Kept from 16.21 GiB up."
QString reasonText(const contract::Placement& placement, bool isPinned, const std::vector<planner::Reason>& reasons);

} // namespace shardscope::app
