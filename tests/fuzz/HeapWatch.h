// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <cstddef>

namespace shardscope::fuzz {

/// What a reader took from the heap since begin(). Counts in programs built with the address sanitizer, whose hooks see
/// every allocation; elsewhere all is 0.
class HeapWatch {
public:
    static void begin();
    static std::size_t largest(); ///< bytes of one allocation
    static std::size_t peak();    ///< most bytes alive at a time
};

} // namespace shardscope::fuzz
