// SPDX-License-Identifier: GPL-3.0-or-later
#include "runtime/collective/Lane.h"

#include <chrono>
#include <pthread.h>
#include <utility>

namespace shardscope::engine {

Lane::Lane(Handler handler) : m_handler(std::move(handler)), m_thread([this] { run(); }) {}

Lane::~Lane() {
    {
        const std::lock_guard lock(m_mutex);
        m_stopping = true;
    }
    m_changed.notify_all();
    m_thread.join();
}

Lane::Ticket Lane::post(const Job& job) {
    std::unique_lock lock(m_mutex);
    if (m_posted - m_finished >= kCapacity) {
        m_isWaitedFor = true;
        m_done.wait(lock, [this] { return m_posted - m_finished < kCapacity; });
        m_isWaitedFor = false;
    }
    m_queue[m_posted % kCapacity] = job;
    ++m_posted;
    m_changed.notify_one();
    return m_posted;
}

bool Lane::wait(Ticket ticket) {
    std::unique_lock lock(m_mutex);
    if (m_finished < ticket) {
        const auto start = std::chrono::steady_clock::now();
        m_isWaitedFor = true;
        m_done.wait(lock, [&] { return m_finished >= ticket; });
        m_isWaitedFor = false;
        m_waitedSeconds += std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    }
    return !m_failure;
}

std::optional<contract::Error> Lane::failure() const {
    const std::lock_guard lock(m_mutex);
    return m_failure;
}

Lane::Job Lane::failedJob() const {
    const std::lock_guard lock(m_mutex);
    return m_failedJob;
}

void Lane::run() {
    pthread_setname_np(pthread_self(), "communication");
    std::unique_lock lock(m_mutex);
    for (;;) {
        m_changed.wait(lock, [this] { return m_stopping || m_finished < m_posted; });
        if (m_finished == m_posted)
            return;
        const Job job = m_queue[m_finished % kCapacity];
        if (!m_failure) {
            lock.unlock();
            auto done = m_handler(job);
            lock.lock();
            if (!done) {
                m_failure = std::move(done.error());
                m_failedJob = job;
            }
        }
        ++m_finished;
        m_done.notify_all();
    }
}

} // namespace shardscope::engine
