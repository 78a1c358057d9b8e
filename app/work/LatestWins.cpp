// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/work/LatestWins.h"

#include <utility>

namespace shardscope::app {

LatestWins::LatestWins() : m_thread([this](const std::stop_token& stop) { run(stop); }) {}

LatestWins::~LatestWins() {
    cancel();
    m_thread.request_stop();
    m_thread.join();
}

void LatestWins::submit(Job job) {
    const std::lock_guard lock(m_mutex);
    m_running.request_stop();
    m_waiting = std::move(job);
    m_wake.notify_all();
}

void LatestWins::cancel() {
    const std::lock_guard lock(m_mutex);
    m_waiting = nullptr;
    m_running.request_stop();
}

bool LatestWins::isIdle() const {
    const std::lock_guard lock(m_mutex);
    return !m_busy && !m_waiting;
}

void LatestWins::run(const std::stop_token& stop) {
    while (!stop.stop_requested()) {
        Job job;
        std::stop_token token;
        {
            std::unique_lock lock(m_mutex);
            if (!m_wake.wait(lock, stop, [this] { return static_cast<bool>(m_waiting); }))
                return;
            job = std::exchange(m_waiting, nullptr);
            m_running = std::stop_source();
            token = m_running.get_token();
            m_busy = true;
        }
        job(token);
        job = nullptr;
        const std::lock_guard lock(m_mutex);
        m_busy = false;
    }
}

} // namespace shardscope::app
