// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "runtime/contract/Result.h"

#include <cstdint>
#include <string>

namespace shardscope::engine {

struct MeasureOptions {
    std::int64_t workers = 0;   ///< 0: one per core
    std::string device = "cpu"; ///< or "cuda"
    std::string output;         ///< empty: the cache folder's local.cluster.json
    bool json = false;
};

/// Measures compute rate and memory bandwidth with all workers busy, and the ring between them; writes a cluster file.
contract::Result<void> runMeasure(const MeasureOptions& options);

} // namespace shardscope::engine
