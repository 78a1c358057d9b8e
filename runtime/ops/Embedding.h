// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "runtime/contract/Sizing.h"
#include "runtime/ops/Linear.h"

#include <cstdint>

namespace shardscope::engine {

/// Copies (or adds) row ids[t] of the table into row t of y (T, H), for the ids inside `rows`; `table` starts at
/// rows.begin.
void embeddingForward(const std::int32_t* ids, contract::RowRange rows, const float* table, Matrix y, Write write);
/// Adds row t of dy (T, H) to row ids[t] of the table's gradient, which starts at rows.begin.
void embeddingBackward(const std::int32_t* ids, contract::RowRange rows, ConstMatrix dy, float* tableGradient);

/// The same with the position of each token inside its sequence as the id.
void positionForward(std::int64_t sequence, contract::RowRange rows, const float* table, Matrix y);
void positionBackward(std::int64_t sequence, contract::RowRange rows, ConstMatrix dy, float* tableGradient);

} // namespace shardscope::engine
