// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "runtime/contract/Training.h"

#include <cstdint>

namespace shardscope::engine {

/// Learning rate of step `step` (the first is 1) of `steps`: a linear warm-up, then constant, or half a cosine down to
/// the minimum at the last step.
double learningRateAt(const contract::Optimizer& optimizer, std::int64_t step, std::int64_t steps);

} // namespace shardscope::engine
