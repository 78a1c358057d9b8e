// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "runtime/contract/Ledger.h"

#include <QString>

#include <array>
#include <cstdint>

namespace shardscope::app {

/// The ledger's categories as bars show them, in stacking order.
enum class MemoryPart { Parameters, Gradients, Optimizer, Activations, Logits, Slots, Other, Reserve };
inline constexpr int kMemoryPartCount = 8;

using MemoryParts = std::array<std::int64_t, kMemoryPartCount>;

MemoryPart partOf(contract::Category category);
MemoryParts partsOf(const contract::Ledger& ledger);
QString partName(MemoryPart part);

} // namespace shardscope::app
