// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "runtime/data/WeightFiles.h"
#include "runtime/execute/Executor.h"

namespace shardscope::engine {

/// Where each tensor of a plan's network is found in weights from elsewhere, which name it as in the state dict, with
/// or without the family's prefix ("transformer.", "model."). A head with a storage of its own may be missing where the
/// file holds a tied one: it then begins as a copy of the token embedding.
/// Errors: BadInput, naming the first tensor that is missing or has another shape.
contract::Result<void> checkInitialWeights(const PlanSetup& setup, const WeightFiles& files);
/// Fills this rank's weights. Errors: as checkInitialWeights().
contract::Result<void> loadInitialWeights(Executor& executor, const PlanSetup& setup, const WeightFiles& files);

} // namespace shardscope::engine
