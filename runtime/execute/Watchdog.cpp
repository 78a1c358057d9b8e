// SPDX-License-Identifier: GPL-3.0-or-later
#include "runtime/execute/Watchdog.h"

#include <algorithm>
#include <chrono>
#include <pthread.h>
#include <utility>

namespace shardscope::engine {

namespace {
constexpr double kLongestSteps = 10;
constexpr double kPatienceAtStart = 12;
constexpr double kLooksPerLimit = 8;
} // namespace

Watchdog::Watchdog(const Executor& executor, double seconds, Alarm alarm)
    : m_executor(executor), m_seconds(seconds), m_alarm(std::move(alarm)), m_thread([this] { run(); }) {}

Watchdog::~Watchdog() {
    {
        const std::lock_guard lock(m_mutex);
        m_stopping = true;
    }
    m_changed.notify_all();
    m_thread.join();
}

double Watchdog::limitSeconds() const {
    const double longest = m_executor.longestStepSeconds();
    return longest > 0 ? std::max(m_seconds, kLongestSteps * longest) : kPatienceAtStart * m_seconds;
}

void Watchdog::run() {
    using Clock = std::chrono::steady_clock;
    pthread_setname_np(pthread_self(), "watchdog");
    Executor::Pulse last = m_executor.pulse();
    Clock::time_point since = Clock::now();
    std::unique_lock lock(m_mutex);
    while (!m_changed.wait_for(lock, std::chrono::duration<double>(m_seconds / kLooksPerLimit),
                               [this] { return m_stopping; })) {
        const Executor::Pulse pulse = m_executor.pulse();
        if (pulse.instructions != last.instructions || !pulse.computing) {
            last = pulse;
            since = Clock::now();
            continue;
        }
        const double stuck = std::chrono::duration<double>(Clock::now() - since).count();
        if (stuck < limitSeconds())
            continue;
        m_alarm(m_executor.describe(pulse.instruction), stuck);
        return;
    }
}

} // namespace shardscope::engine
