// SPDX-License-Identifier: GPL-3.0-or-later
#include "fuzz/HeapWatch.h"

#include <algorithm>
#include <atomic>

#if defined(__SANITIZE_ADDRESS__)
#define SHARDSCOPE_COUNTS_ALLOCATIONS 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define SHARDSCOPE_COUNTS_ALLOCATIONS 1
#endif
#endif

#ifdef SHARDSCOPE_COUNTS_ALLOCATIONS
#include <sanitizer/allocator_interface.h>
#endif

namespace shardscope::fuzz {

namespace {

std::atomic<std::size_t> s_largest = 0;
std::atomic<std::size_t> s_peak = 0;
// Memory from before begin() may be freed after it: then this is negative.
std::atomic<std::ptrdiff_t> s_alive = 0;

#ifdef SHARDSCOPE_COUNTS_ALLOCATIONS
void allocated(const volatile void*, std::size_t bytes) {
    s_largest = std::max(s_largest.load(), bytes);
    const std::ptrdiff_t alive = s_alive += static_cast<std::ptrdiff_t>(bytes);
    if (alive > 0)
        s_peak = std::max(s_peak.load(), static_cast<std::size_t>(alive));
}

void freed(const volatile void* memory) {
    if (memory != nullptr)
        s_alive -= static_cast<std::ptrdiff_t>(__sanitizer_get_allocated_size(memory));
}
#endif

} // namespace

void HeapWatch::begin() {
#ifdef SHARDSCOPE_COUNTS_ALLOCATIONS
    [[maybe_unused]] static const int installed = __sanitizer_install_malloc_and_free_hooks(allocated, freed);
#endif
    s_largest = 0;
    s_peak = 0;
    s_alive = 0;
}

std::size_t HeapWatch::largest() {
    return s_largest;
}

std::size_t HeapWatch::peak() {
    return s_peak;
}

} // namespace shardscope::fuzz
