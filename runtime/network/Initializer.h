// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "runtime/contract/Operator.h"
#include "runtime/device/Device.h"
#include "runtime/network/StateLayout.h"
#include "runtime/ops/shared/Portable.h"

#include <cstdint>
#include <functional>
#include <string_view>

namespace shardscope::engine {

/// The source of all randomness here.
constexpr std::uint64_t mixBits(std::uint64_t x) {
    return shared::mix(x);
}

/// The random stream of one tensor.
std::uint64_t tensorKey(std::uint64_t seed, std::string_view tensor);
/// Element `index` of a stream of standard normal numbers.
float normalAt(std::uint64_t key, std::uint64_t index);

/// Puts `valueAt(element of the whole tensor)` into `to`, which holds a part's tensor or this rank's shard of it.
void fillElements(const TensorState& tensor, std::int64_t rank, Device& device, Elements to, bool sharded,
                  const std::function<float(std::int64_t)>& valueAt);
/// The same for a part's weights and, where there is one, their float32 master.
void fillWeights(const TensorState& tensor, std::int64_t rank, Device& device,
                 const std::function<float(std::int64_t)>& valueAt);

/// Fills this rank's weights as the family's reference does: normal(0, 0.02), for GPT-2 residual projections scaled by
/// 1 / sqrt(2 L), biases 0, norm gains 1. A value depends on seed, tensor name and element only, not on placements or
/// ranks.
void initializeWeights(const contract::Architecture& architecture, const std::vector<contract::Operator>& operators,
                       std::uint64_t seed, std::int64_t rank, const StateLayout& layout, Device& device);

} // namespace shardscope::engine
