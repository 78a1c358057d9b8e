// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "planner/readers/ConfigFields.h"

#include <cstdint>
#include <functional>
#include <vector>

namespace shardscope::planner {

/// Which layers of a network see their last keys alone.
struct LayerWindows {
    std::int64_t keys = 0;        ///< 0: no layer has a window
    std::vector<bool> windowed{}; ///< by layer
    /// Keys that a query of `layer` sees at most; 0: all.
    std::int64_t of(std::int64_t layer) const {
        return keys > 0 && windowed[static_cast<std::size_t>(layer)] ? keys : 0;
    }
};

/// `sliding_window` for the layers that a family's rule names. What the transformers library (4.57) makes of the
/// fields: the window of mistral is 4096 when left out and those of mixtral and phi3 are off, each for every layer; the
/// Qwen families have one only with `use_sliding_window`, from layer `max_window_layers` (28) on, but qwen3_moe
/// everywhere; gemma2 has it on every other layer, gemma3_text on all but each `sliding_window_pattern`th (6). A null
/// window is none. qwen2, qwen3 and gemma may name the layers in `layer_types`.
LayerWindows readLayerWindows(const Fields& fields, std::int64_t layers);

} // namespace shardscope::planner
