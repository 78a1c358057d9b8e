// SPDX-License-Identifier: GPL-3.0-or-later
#include "planner/cluster/LocalMachine.h"

#include <algorithm>
#include <fstream>
#include <limits>
#include <optional>
#include <sched.h>
#include <string>
#include <string_view>
#include <thread>

namespace shardscope::planner {

namespace {

constexpr std::int64_t kUnknownMemoryBytes = std::int64_t{1} << 30;

/// The number after `key` in a file of "key value" lines, in the unit of that file.
std::optional<std::int64_t> numberAfter(const std::string& path, std::string_view key) {
    std::ifstream file(path);
    std::string word;
    std::int64_t value = 0;
    while (file >> word) {
        if (word == key && file >> value)
            return value;
        file.clear();
        file.ignore(std::numeric_limits<std::streamsize>::max(), '\n');
    }
    return std::nullopt;
}

/// The only number of a file, or nothing for "max" or no file.
std::optional<std::int64_t> numberIn(const std::string& path) {
    std::ifstream file(path);
    std::int64_t value = 0;
    if (file >> value)
        return value;
    return std::nullopt;
}

/// What a control group (version 2, as containers see their own) still allows; file cache that can be dropped counts.
std::optional<std::int64_t> controlGroupAvailable() {
    const std::string folder = "/sys/fs/cgroup/";
    const auto limit = numberIn(folder + "memory.max");
    const auto used = numberIn(folder + "memory.current");
    if (!limit || !used)
        return std::nullopt;
    const std::int64_t cache = numberAfter(folder + "memory.stat", "inactive_file").value_or(0);
    return std::max<std::int64_t>(*limit - *used + cache, 1);
}

} // namespace

std::int64_t usableCores() {
    cpu_set_t set;
    CPU_ZERO(&set);
    if (::sched_getaffinity(0, sizeof(set), &set) == 0)
        return std::max(CPU_COUNT(&set), 1);
    return std::max(std::thread::hardware_concurrency(), 1U);
}

std::int64_t availableMemoryBytes() {
    const auto kibibytes = numberAfter("/proc/meminfo", "MemAvailable:");
    const std::int64_t machine = kibibytes ? *kibibytes * 1024 : kUnknownMemoryBytes;
    return std::max<std::int64_t>(std::min(machine, controlGroupAvailable().value_or(machine)), 1);
}

std::int64_t memoryPerDevice(std::int64_t availableBytes, std::int64_t devices) {
    return std::max<std::int64_t>(availableBytes / devices / 10 * 9, 1);
}

} // namespace shardscope::planner
