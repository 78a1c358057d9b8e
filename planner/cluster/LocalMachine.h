// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <cstdint>

namespace shardscope::planner {

/// Processor cores that this process may use, at least 1.
std::int64_t usableCores();

/// Bytes that new processes can take without swapping: MemAvailable, or less where a control group says so. At least 1.
std::int64_t availableMemoryBytes();

/// What one of `devices` processes may take: an equal share of what is available, less 10 %.
std::int64_t memoryPerDevice(std::int64_t availableBytes, std::int64_t devices);

} // namespace shardscope::planner
