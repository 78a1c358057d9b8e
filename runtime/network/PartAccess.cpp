// SPDX-License-Identifier: GPL-3.0-or-later
#include "runtime/network/PartAccess.h"

namespace shardscope::engine {

PartAccess accessPart(const OperatorState& state, std::int32_t part, std::byte* slot) {
    PartAccess access;
    access.part = &state.parts[static_cast<std::size_t>(part)];
    access.first = part == 0;
    access.last = static_cast<std::size_t>(part) + 1 == state.parts.size();
    access.gradientWrite = slot != nullptr ? Write::Overwrite : Write::Add;
    const auto weight = [&](const TensorState& tensor) {
        return slot != nullptr && tensor.weightSharded ? tensor.gatheredIn(slot) : tensor.weight;
    };
    const auto gradient = [&](const TensorState& tensor) {
        return slot != nullptr ? tensor.unreducedIn(slot) : tensor.gradient;
    };
    access.weight = weight(access.part->tensors[0]);
    access.weightGradient = gradient(access.part->tensors[0]);
    if (access.part->tensors.size() > 1) {
        access.bias = weight(access.part->tensors[1]);
        access.biasGradient = gradient(access.part->tensors[1]);
    }
    return access;
}

} // namespace shardscope::engine
