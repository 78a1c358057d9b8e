// SPDX-License-Identifier: GPL-3.0-or-later
#include "runtime/device/HostMemory.h"

#include <algorithm>
#include <fstream>
#include <thread>
#include <unistd.h>
#include <vector>

namespace shardscope::engine {

namespace {

std::int64_t memoryInfo(const std::string& key) {
    std::ifstream file("/proc/meminfo");
    std::string name;
    std::int64_t kibibytes = 0;
    std::string rest;
    while (file >> name >> kibibytes && std::getline(file, rest))
        if (name == key + ":")
            return kibibytes * 1024;
    return 0;
}

/// The first number of a file, or `otherwise` ("max", no such file).
std::int64_t numberIn(const char* path, std::int64_t otherwise) {
    std::ifstream file(path);
    std::int64_t value = 0;
    return file >> value ? value : otherwise;
}

} // namespace

std::int64_t availableMemoryBytes() {
    const std::int64_t available = memoryInfo("MemAvailable");
    const std::int64_t limit = numberIn("/sys/fs/cgroup/memory.max", 0);
    if (limit <= 0)
        return available;
    return std::min(available, std::max<std::int64_t>(0, limit - numberIn("/sys/fs/cgroup/memory.current", 0)));
}

std::int64_t totalMemoryBytes() {
    return memoryInfo("MemTotal");
}

std::int64_t residentBytes() {
    std::ifstream file("/proc/self/statm");
    std::int64_t size = 0;
    std::int64_t resident = 0;
    file >> size >> resident;
    return resident * sysconf(_SC_PAGESIZE);
}

std::string processorName() {
    std::ifstream file("/proc/cpuinfo");
    std::string line;
    while (std::getline(file, line))
        if (line.starts_with("model name"))
            if (const auto colon = line.find(": "); colon != std::string::npos)
                return line.substr(colon + 2);
    return "CPU";
}

int processorCount() {
    return static_cast<int>(std::max(1U, std::thread::hardware_concurrency()));
}

} // namespace shardscope::engine
