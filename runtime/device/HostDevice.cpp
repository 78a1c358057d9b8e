// SPDX-License-Identifier: GPL-3.0-or-later
#include "runtime/device/HostDevice.h"

#include "runtime/collective/Collectives.h"
#include "runtime/contract/Bytes.h"
#include "runtime/device/HostMemory.h"

#include <fmt/format.h>

#include <cerrno>
#include <cstring>
#include <sys/mman.h>
#include <unistd.h>

namespace shardscope::engine {

contract::Result<std::unique_ptr<Collectives>> Device::connect(Group&, const RingMembers&, std::string& why) {
    why = "the device has none";
    return std::unique_ptr<Collectives>();
}

std::string HostDevice::name() const {
    return processorName();
}

contract::Result<std::byte*> HostDevice::allocate(std::int64_t bytes, std::string_view what) {
    void* const base =
        mmap(nullptr, static_cast<std::size_t>(bytes), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (base == MAP_FAILED)
        return contract::runFailed(
            fmt::format("cannot map {} for {}: {}", contract::describeBytes(bytes), what, std::strerror(errno)));
    const auto page = static_cast<std::int64_t>(sysconf(_SC_PAGESIZE));
    auto* const memory = static_cast<std::byte*>(base);
    for (std::int64_t at = 0; at < bytes; at += page)
        *static_cast<volatile std::byte*>(memory + at) = std::byte{0};
    return memory;
}

void HostDevice::release(std::byte* memory, std::int64_t bytes) {
    munmap(memory, static_cast<std::size_t>(bytes));
}

void HostDevice::upload(Elements to, const float* from, std::int64_t count) {
    uploadBytes(to.at, from, count * elementBytes(to.type));
}
void HostDevice::download(float* to, ConstElements from, std::int64_t count) {
    std::memcpy(to, from.at, static_cast<std::size_t>(count * elementBytes(from.type)));
}
void HostDevice::uploadBytes(void* to, const void* from, std::int64_t bytes) {
    std::memcpy(to, from, static_cast<std::size_t>(bytes));
}
void HostDevice::clearBytes(std::byte* memory, std::int64_t bytes) {
    std::memset(memory, 0, static_cast<std::size_t>(bytes));
}

void HostDevice::copyOnLane(Elements to, ConstElements from, std::int64_t count) {
    uploadBytes(to.at, from.at, count * elementBytes(to.type));
}
void HostDevice::addOnLane(Elements into, ConstElements from, std::int64_t count) {
    float* const sum = into.floats();
    const float* const addend = from.floats();
    for (std::int64_t i = 0; i < count; ++i)
        sum[i] += addend[i];
}

} // namespace shardscope::engine
