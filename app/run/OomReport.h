// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "planner/search/Planner.h"

#include <QString>

#include <cstdint>
#include <optional>
#include <vector>

namespace shardscope::app {

/// What an out-of-memory message of PyTorch says; bytes, nothing where it does not say.
struct OomReport {
    std::int64_t requested = 0;
    std::optional<std::int64_t> device; ///< index of the GPU
    std::optional<std::int64_t> capacity;
    std::optional<std::int64_t> free;
    std::optional<std::int64_t> inUse;     ///< by this process, with what is not PyTorch's
    std::optional<std::int64_t> allocated; ///< tensors
    std::optional<std::int64_t> cached;    ///< reserved by the allocator but not allocated

    /// What of the process is not PyTorch's: context, libraries, collective buffers.
    std::optional<std::int64_t> outside() const;
    /// What neither this process uses nor is free: other processes.
    std::optional<std::int64_t> others() const;
};

/// Reads the message out of any text, such as a whole traceback: the wordings of PyTorch 1.x ("already allocated",
/// "reserved in total") and 2.x ("Of the allocated memory ..."). Nothing for other texts.
std::optional<OomReport> parseOom(const QString& text);

/// One line of the message beside what the plan expects.
struct OomLine {
    QString what;
    std::int64_t measured = 0;
    std::int64_t planned = 0; ///< -1: the plan says nothing
};

/// The message laid against a plan.
struct OomComparison {
    std::vector<OomLine> lines;
    QString request;               ///< what the failed request probably was: "the logits of lm_head (1.96 GiB planned)"
    std::int64_t surplusBytes = 0; ///< how much more was held than the plan expects where it can be told, 0 or more
    std::int64_t capacityBytes = 0; ///< the device's memory if the plan's differs by over 1 %, else 0
};

/// Builds the plan's buffer table to find the request in it: tens of milliseconds for large plans, on a thread.
OomComparison compareOom(const OomReport& report, const planner::PlanResult& plan);

} // namespace shardscope::app
