// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "runtime/execute/PlanSetup.h"
#include "runtime/launch/RunOptions.h"

#include <optional>
#include <string>
#include <vector>

namespace shardscope::engine {

/// A plan of a book: DIR/plan-W.json is the plan for W workers.
struct BookPage {
    std::string path;
    std::string text;
    PlanSetup setup;
};

/// The plan of the book for the most workers below `running.ranks` that continues the same training: the same network,
/// sequence and global batch. `skipped` receives why others were passed over. Nothing when there is none.
std::optional<BookPage> findSmallerPlan(const RunOptions& options, const PlanSetup& running,
                                        std::vector<std::string>& skipped);

} // namespace shardscope::engine
