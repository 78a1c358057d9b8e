// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "planner/search/KnapsackMath.h"
#include "planner/search/ThresholdTable.h"

#include <cstdint>
#include <functional>
#include <vector>

namespace shardscope::planner {

/// A part of a threshold's choices. What the linear relaxation gets most wrong is a fraction of something large: of the
/// state of an embedding or a head, or of the activations of a block that is half recomputed. Both are given here, and
/// what is left is small.
struct Branch {
    struct Fixed {
        std::size_t group = 0;
        UnitOption option;
    };
    static constexpr std::int32_t kOpen = -1;

    std::vector<Fixed> fixed; ///< options of the largest bundles outside blocks
    std::vector<std::int32_t>
        recomputed;         ///< [group of the threshold's table] how many of its blocks are recomputed, or kOpen
    std::int64_t bytes = 0; ///< of what is fixed
    std::int64_t bound = 0; ///< picoseconds of the whole step
    Slope multiplier;       ///< of the relaxation of what is left
};

/// `capacity`: bytes of state and kept activations. The branches whose bound `interesting` accepts, those with the best
/// bound first. Together they hold every choice with a time that it accepts.
std::vector<Branch> makeBranches(const ThresholdTable& table, std::int64_t capacity,
                                 const std::function<bool(std::int64_t)>& interesting);

} // namespace shardscope::planner
