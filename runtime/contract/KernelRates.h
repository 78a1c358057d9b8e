// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "runtime/contract/Json.h"

namespace shardscope::contract {

/// What operations of our own engine take on a machine, as measured: seconds of forward and backward together, of one
/// worker while all are busy. "flops" are those of forward.
struct KernelRates {
    /// y = x w^T + b with its gradients: so many seconds a floating point operation, an element of x, w and y, and in
    /// any case. Small products run at a lower rate than large ones.
    double productSecondsPerFlop = 0;
    double productSecondsPerElement = 0;
    double productSeconds = 0;
    /// Causal attention: a floating point operation (see AttentionShape::flops) and an element of the output.
    double attentionSecondsPerFlop = 0;
    double attentionSecondsPerElement = 0;
    double normSecondsPerElement = 0;
    double geluSecondsPerElement = 0;
    double siluGateSecondsPerElement = 0;
    double rotarySecondsPerElement = 0;
    double embeddingSecondsPerElement = 0;
    double lossSecondsPerLogit = 0;
    double updateSecondsPerByte = 0; ///< of the optimizer step, by the bytes that an update reads and writes
    bool operator==(const KernelRates&) const = default;
};

OrderedJson toJson(const KernelRates& rates);
KernelRates readKernelRates(const JsonCursor& cursor);

} // namespace shardscope::contract
