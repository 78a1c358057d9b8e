// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "runtime/contract/Result.h"

#include <cstdint>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

namespace shardscope::engine {

/// Calls `runRank(int rank)` on a thread for every rank and waits for all. Errors: that of a rank which failed.
template<typename RunRank> contract::Result<void> runOnEveryRank(std::int64_t ranks, const RunRank& runRank) {
    std::mutex mutex;
    std::optional<contract::Error> failure;
    std::vector<std::thread> threads;
    for (int rank = 0; rank < ranks; ++rank)
        threads.emplace_back([&, rank] {
            if (auto done = runRank(rank); !done) {
                const std::lock_guard lock(mutex);
                failure = done.error();
            }
        });
    for (std::thread& thread : threads)
        thread.join();
    if (failure)
        return tl::unexpected(*failure);
    return {};
}

} // namespace shardscope::engine
