// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "app/document/Choices.h"

#include <QString>

namespace shardscope::app {

/// The command line that asks the planner the same question, quoted for a POSIX shell. What the command line cannot say
/// (forbidden placements, another prefetch depth) follows as a comment.
QString equivalentCommand(const Choices& choices);

} // namespace shardscope::app
