// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "runtime/ops/shared/Portable.h"

namespace shardscope::engine::shared {

/// The gradient of the table row of token `t`: the sum of dy over all tokens of its id, in their order, added to what
/// is there. The first token of an id does it for all of them: no atomics, and each element is rounded once.
template<typename E, typename G, typename Team>
SHARDSCOPE_SHARED void embeddingGradientRow(const Team& team, const std::int32_t* ids, std::int64_t tokens,
                                            std::int64_t t, std::int64_t firstRow, std::int64_t endRow, const E* dy,
                                            std::int64_t stride, std::int64_t hidden, G* table) {
    const std::int32_t id = ids[t];
    if (id < firstRow || id >= endRow)
        return;
    float earlier = 0;
    for (std::int64_t u = team.rank(); u < t; u += team.size())
        earlier = ids[u] == id ? 1.0F : earlier;
    if (team.maximum(earlier) > 0)
        return;
    for (std::int64_t c = team.rank(); c < hidden; c += team.size()) {
        float sum = 0;
        for (std::int64_t u = t; u < tokens; ++u)
            if (ids[u] == id)
                sum += load(dy + u * stride + c);
        write(table + (id - firstRow) * hidden + c, sum, true);
    }
}

/// The gradient of a position's row at one column: the sum over the sequences.
template<typename E, typename G>
SHARDSCOPE_SHARED void positionGradientAt(std::int64_t position, std::int64_t column, std::int64_t sequence,
                                          std::int64_t tokens, std::int64_t firstRow, const E* dy, std::int64_t stride,
                                          std::int64_t hidden, G* table) {
    float sum = 0;
    for (std::int64_t t = position; t < tokens; t += sequence)
        sum += load(dy + t * stride + column);
    write(table + (position - firstRow) * hidden + column, sum, true);
}

} // namespace shardscope::engine::shared
