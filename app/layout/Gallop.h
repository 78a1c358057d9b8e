// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <algorithm>
#include <iterator>

namespace shardscope::app {

/// As std::partition_point, for an end of the partition that is near `first`: looks at elements ever further away, so
/// that a hundred thousand elements are passed in steps of a hundred without touching memory far from them.
template<typename Iterator, typename Predicate> Iterator gallop(Iterator first, Iterator last, Predicate isBefore) {
    for (auto step = std::distance(first, first) + 1; first != last; step *= 2) {
        const Iterator probe = std::distance(first, last) > step ? std::next(first, step) : last;
        if (probe == last || !isBefore(*probe))
            return std::partition_point(first, probe, isBefore);
        first = probe;
    }
    return last;
}

} // namespace shardscope::app
