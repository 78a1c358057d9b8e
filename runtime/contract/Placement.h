// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "runtime/contract/Result.h"

#include <compare>
#include <cstdint>
#include <string>
#include <string_view>

namespace shardscope::contract {

enum class PlacementKind {
    Replicate, ///< plain data parallel: everything on every rank
    Keep,      ///< weights whole, gradients and optimizer sharded (ZeRO-2); held: gradients whole (ZeRO-1)
    Shard,     ///< everything sharded, gathered before use, freed after (ZeRO-3 / FSDP)
};

/// Which ranks share the shards of an operator.
enum class ShardGroup {
    World, ///< all data-parallel ranks
    Node,  ///< the devices of one node; gradients are all-reduced across nodes (HSDP)
};

/// Where the state of one operator lives. `slices` and `shardedSlices` only mean something for Shard:
/// the operator is cut along its output rows into `slices` slices of which the first `shardedSlices` are sharded and
/// used one after the other; the rest behaves as replicated.
struct Placement {
    PlacementKind kind = PlacementKind::Replicate;
    std::int32_t slices = 1;
    std::int32_t shardedSlices = 1;
    ShardGroup group = ShardGroup::World;
    /// Only for Keep: the gradient stays whole over all micro-steps and is reduced once per step.
    bool held = false;

    bool isSharded() const { return kind == PlacementKind::Shard; }
    bool isSplit() const { return isSharded() && slices > 1; }
    auto operator<=>(const Placement&) const = default;
};

/// "replicate", "keep", "keep-held", "shard", "shard:4", "shard:4:2", each with "@node" for ShardGroup::Node.
std::string formatPlacement(const Placement& placement);
/// Errors: Usage, saying what is allowed.
Result<Placement> parsePlacement(std::string_view text);

} // namespace shardscope::contract
