// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "runtime/ops/shared/Portable.h"

namespace shardscope::engine::shared {

/// A matrix whose element (row, column) lies at row * rowStep + column * columnStep.
template<typename E> struct Stepped {
    const E* data;
    std::int64_t rowStep, columnStep;
    SHARDSCOPE_SHARED float at(std::int64_t row, std::int64_t column) const {
        return load(data + row * rowStep + column * columnStep);
    }
};

/// (a b)(row, column), for products that no library takes.
template<typename E>
SHARDSCOPE_SHARED float productAt(const Stepped<E>& a, const Stepped<E>& b, std::int64_t inner, std::int64_t row,
                                  std::int64_t column) {
    float sum = 0;
    for (std::int64_t i = 0; i < inner; ++i)
        sum += a.at(row, i) * b.at(i, column);
    return sum;
}

} // namespace shardscope::engine::shared
