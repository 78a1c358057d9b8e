// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "runtime/network/StateLayout.h"
#include "runtime/ops/Linear.h"

namespace shardscope::engine {

/// The memory with which one part of an operator is computed: whole weights, wherever they come from, and room for the
/// whole gradients.
struct PartAccess {
    const PartState* part = nullptr;
    bool first = false; ///< the first part of its operator to be used
    bool last = false;
    ConstElements weight;
    ConstElements bias;
    Elements weightGradient;
    Elements biasGradient;
    Write gradientWrite = Write::Add; ///< slots hold nothing yet, stored gradients accumulate

    std::int64_t rowBegin() const { return part->tensors.front().firstRow; }
    std::int64_t rows() const { return part->tensors.front().rows; }
};

/// `slot` is the start of the slot the part uses, or null.
PartAccess accessPart(const OperatorState& state, std::int32_t part, std::byte* slot);

} // namespace shardscope::engine
