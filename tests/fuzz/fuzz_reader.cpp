// SPDX-License-Identifier: GPL-3.0-or-later
// One libFuzzer program for all readers; which one is said by its name: fuzz_config, fuzz_onnx, ...
#include "fuzz/HeapWatch.h"
#include "fuzz/Targets.h"

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <ctime>

#ifndef SHARDSCOPE_FUZZ_TARGET
#error "the build names the reader"
#endif

namespace {

using shardscope::fuzz::HeapWatch;
using shardscope::fuzz::Target;

const Target& chosenTarget() {
    for (const Target& known : shardscope::fuzz::targets()) {
        if (known.name == SHARDSCOPE_FUZZ_TARGET)
            return known;
    }
    std::abort();
}

/// Of this process, so that a busy machine does not count.
double processorSeconds() {
    return static_cast<double>(std::clock()) / CLOCKS_PER_SEC;
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    static const Target& target = [&]() -> const Target& {
        const Target& chosen = chosenTarget();
        chosen.read(chosen.right);
        return chosen;
    }();
    constexpr double kMaximumSeconds = 5; // under sanitizers; a fraction of one without
    const double start = processorSeconds();
    HeapWatch::begin();
    target.read({reinterpret_cast<const char*>(data), size});
    const std::size_t largest = HeapWatch::largest();
    const std::size_t peak = HeapWatch::peak();
    if (largest > target.largestAllocation(size) || peak > target.largestHeap(size)) {
        std::fprintf(stderr,
                     "%zu bytes of file: one allocation of %zu bytes (%zu allowed), %zu at a time (%zu allowed)\n",
                     size, largest, target.largestAllocation(size), peak, target.largestHeap(size));
        std::abort();
    }
    if (const double seconds = processorSeconds() - start; seconds > kMaximumSeconds) {
        std::fprintf(stderr, "%zu bytes of file: %.1f s\n", size, seconds);
        std::abort();
    }
    return 0;
}
