// SPDX-License-Identifier: GPL-3.0-or-later
// One libFuzzer program for all readers; which one is said by its name: fuzz_config, fuzz_onnx, ...
#include "fuzz/Targets.h"

#include <cstddef>
#include <cstdint>

#ifndef SHARDSCOPE_FUZZ_TARGET
#error "the build names the reader"
#endif

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    static const auto* target = [] {
        for (const auto& known : shardscope::fuzz::targets()) {
            if (known.name == SHARDSCOPE_FUZZ_TARGET)
                return &known;
        }
        return static_cast<const shardscope::fuzz::Target*>(nullptr);
    }();
    target->read({reinterpret_cast<const char*>(data), size});
    return 0;
}
