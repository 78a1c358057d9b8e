// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "runtime/contract/Architecture.h"
#include "runtime/contract/Result.h"

#include <cstdint>
#include <vector>

namespace shardscope::engine {

/// Rotary position embedding (arXiv 2104.09864) in the layout of the Llama family: element i of a head is rotated with
/// element i + head_dim / 2.
class Rotary {
public:
    /// Scaling: none, "linear", or "llama3" (frequencies of long wavelengths divided by the factor, those between
    /// blended). Errors: BadInput for another kind or a missing parameter, naming it.
    static contract::Result<Rotary> create(const contract::Rope& rope, std::int64_t headDim);
    Rotary() = default;

    enum class Direction { Forward, Backward };
    /// Rotates x (B S, heads, head_dim) in place by the position of each token in its sequence; backward by the
    /// opposite angle, which is the gradient.
    void apply(float* x, std::int64_t tokens, std::int64_t sequence, std::int64_t heads, Direction direction) const;

    const std::vector<double>& frequencies() const { return m_frequencies; }

private:
    std::vector<double> m_frequencies;   ///< radians per position, one per pair
    mutable std::vector<float> m_angles; ///< cosines, then sines, of one position
};

} // namespace shardscope::engine
