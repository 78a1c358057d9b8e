// SPDX-License-Identifier: GPL-3.0-or-later
#include "engine/support/PortableDevice.h"

#include <cstdlib>
#include <cstring>

namespace shardscope::testing {

using engine::ConstElements;
using engine::Elements;
using Values = PortableKernels<LoopLauncher>;

void PortableDevice::require(bool holds, const char* rule) {
    const std::lock_guard lock(m_mutex);
    if (!holds)
        m_violations.emplace_back(rule);
}

void PortableDevice::checkInside(const std::byte* at, std::int64_t bytes) {
    const std::lock_guard lock(m_mutex);
    auto after = m_memory.upper_bound(at);
    const bool inside = after != m_memory.begin() && (--after, at + bytes <= after->first + after->second);
    if (!inside)
        m_violations.emplace_back("memory outside of what was allocated is touched");
}

contract::Result<std::byte*> PortableDevice::allocate(std::int64_t bytes, std::string_view) {
    auto* const memory = static_cast<std::byte*>(std::calloc(static_cast<std::size_t>(bytes), 1));
    const std::lock_guard lock(m_mutex);
    m_memory[memory] = bytes;
    return memory;
}
void PortableDevice::release(std::byte* memory, std::int64_t) {
    {
        const std::lock_guard lock(m_mutex);
        if (m_memory.erase(memory) == 0)
            m_violations.emplace_back("memory is given back that was not allocated");
    }
    std::free(memory);
}

void PortableDevice::upload(Elements to, const float* from, std::int64_t count) {
    checkInside(to.at, count * elementBytes(to.type));
    for (std::int64_t i = 0; i < count; ++i)
        Values::put(to, i, static_cast<double>(from[i]), engine::Write::Overwrite);
}
void PortableDevice::download(float* to, ConstElements from, std::int64_t count) {
    checkInside(from.at, count * elementBytes(from.type));
    for (std::int64_t i = 0; i < count; ++i)
        to[i] = static_cast<float>(Values::read(from, i));
}
void PortableDevice::uploadBytes(void* to, const void* from, std::int64_t bytes) {
    checkInside(static_cast<std::byte*>(to), bytes);
    std::memcpy(to, from, static_cast<std::size_t>(bytes));
}
void PortableDevice::clearBytes(std::byte* memory, std::int64_t bytes) {
    checkInside(memory, bytes);
    std::memset(memory, 0, static_cast<std::size_t>(bytes));
}

void PortableDevice::jobFollowsCompute(Job job) {
    const std::lock_guard lock(m_mutex);
    if (job != m_announced + 1)
        m_violations.emplace_back("jobs are announced out of order");
    m_announced = job;
}
void PortableDevice::jobBegins(Job job) {
    const std::lock_guard lock(m_mutex);
    if (job > m_announced)
        m_violations.emplace_back("a job begins that was not put after what was computed");
    if (job != m_begun + 1)
        m_violations.emplace_back("jobs begin out of order");
    m_begun = job;
}
void PortableDevice::jobEnds(Job job) {
    require(job == m_ended + 1, "jobs end out of order");
    m_ended = job;
}
void PortableDevice::computeFollowsJob(Job job) {
    require(job <= m_ended, "computing is put after a job that has not begun");
}

void PortableDevice::copyOnLane(Elements to, ConstElements from, std::int64_t count) {
    require(to.type == from.type, "a copy between different types");
    checkInside(to.at, count * elementBytes(to.type));
    checkInside(from.at, count * elementBytes(from.type));
    std::memcpy(to.at, from.at, static_cast<std::size_t>(count * elementBytes(to.type)));
}
void PortableDevice::addOnLane(Elements into, ConstElements from, std::int64_t count) {
    checkInside(into.at, count * elementBytes(into.type));
    checkInside(from.at, count * elementBytes(from.type));
    for (std::int64_t i = 0; i < count; ++i)
        Values::put(into, i, Values::read(from, i), engine::Write::Add);
}
void PortableDevice::uploadOnLane(Elements to, const float* from, std::int64_t count) {
    require(m_begun == m_ended + 1, "the lane copies outside of a job");
    upload(to, from, count);
}
void PortableDevice::downloadOnLane(float* to, ConstElements from, std::int64_t count) {
    require(m_begun == m_ended + 1, "the lane copies outside of a job");
    download(to, from, count);
}

} // namespace shardscope::testing
