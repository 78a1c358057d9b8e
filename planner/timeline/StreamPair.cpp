// SPDX-License-Identifier: GPL-3.0-or-later
#include "planner/timeline/StreamPair.h"

namespace shardscope::planner {

namespace {

constexpr std::int64_t kMillion = 1'000'000;
constexpr std::size_t kMostFinished = 1024; // finished jobs that stay in front of the queue

/// floor(time x millionths / 10^6) without overflow.
std::int64_t scaled(std::int64_t time, std::int32_t millionths) {
    return time / kMillion * millionths + time % kMillion * millionths / kMillion;
}

/// The shortest time in which `work` is done at a reduced rate. The caller knows that it is done within `most`.
std::int64_t timeFor(std::int64_t work, std::int32_t millionths, std::int64_t most) {
    std::int64_t low = work; // no rate is above full rate
    std::int64_t high = most;
    while (low < high) {
        const std::int64_t middle = low + (high - low) / 2;
        if (scaled(middle, millionths) >= work)
            high = middle;
        else
            low = middle + 1;
    }
    return low;
}

} // namespace

void StreamPair::begin() {
    if (m_running)
        return;
    m_running = true;
    m_began = m_now;
    m_remaining = m_queue[m_head].work;
    m_observer.jobBegan(m_queue[m_head], m_now);
}

void StreamPair::finish() {
    m_running = false;
    m_observer.jobEnded(m_queue[m_head], m_began, m_now);
    ++m_finished;
    ++m_head;
    // Drop what is done, seldom enough that each job is moved at most once.
    if (m_head == m_queue.size() || (m_head >= kMostFinished && 2 * m_head >= m_queue.size())) {
        m_queue.erase(m_queue.begin(), m_queue.begin() + static_cast<std::ptrdiff_t>(m_head));
        m_head = 0;
    }
}

StreamPair::Ticket StreamPair::post(const Job& job) {
    m_queue.push_back(job);
    return ++m_posted;
}

void StreamPair::compute(std::int64_t picoseconds) {
    const std::int64_t end = m_now + picoseconds;
    while (m_finished < m_posted && m_now < end && m_overlap > 0) {
        begin();
        const std::int64_t left = end - m_now;
        const std::int64_t possible = scaled(left, m_overlap);
        if (possible < m_remaining) {
            m_remaining -= possible;
            break;
        }
        m_now += timeFor(m_remaining, m_overlap, left);
        finish();
    }
    m_now = end;
}

void StreamPair::wait(Ticket ticket) {
    while (m_finished < ticket) {
        begin();
        m_now += m_remaining;
        m_observer.jobExposed(m_queue[m_head], m_remaining);
        finish();
    }
}

} // namespace shardscope::planner
