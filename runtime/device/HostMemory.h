// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <cstdint>
#include <string>

namespace shardscope::engine {

/// Memory that can be taken without swapping: MemAvailable of /proc/meminfo, or the control group's limit if lower.
std::int64_t availableMemoryBytes();
std::int64_t totalMemoryBytes();
/// Resident memory of this process.
std::int64_t residentBytes();
std::string processorName();
int processorCount();

} // namespace shardscope::engine
