// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "runtime/contract/Operator.h"

#include <string>

namespace shardscope::planner {

/// Slices cut all tensors of an operator at the same rows. Where the tensors have different rows, none is cut.
void alignSplitAxes(contract::Operator& op);

/// The repeated block that a module's name tells: "layers.3" of "layers.3.mlp.up_proj"; empty when it is in none.
std::string blockOf(const std::string& module);

} // namespace shardscope::planner
