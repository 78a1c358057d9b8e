// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "runtime/execute/Executor.h"

#include <condition_variable>
#include <functional>
#include <mutex>
#include <string>
#include <thread>

namespace shardscope::engine {

/// Watches from a thread of its own whether the compute thread of a rank makes progress. A rank that waits for others
/// is not hung, whoever it waits for is; so only time inside one instruction counts, not time inside a wait for
/// communication.
class Watchdog {
public:
    /// Called once, on the watchdog's thread: what the rank was doing, and for how many seconds.
    using Alarm = std::function<void(const std::string& phase, double seconds)>;

    /// An instruction may take `seconds`, or ten times the longest step so far where that is more; before the first
    /// step is done, when nothing is known about the machine yet, twelve times `seconds`.
    Watchdog(const Executor& executor, double seconds, Alarm alarm);
    ~Watchdog();
    Watchdog(const Watchdog&) = delete;
    Watchdog& operator=(const Watchdog&) = delete;

private:
    void run();
    double limitSeconds() const;

    const Executor& m_executor;
    double m_seconds;
    Alarm m_alarm;
    std::mutex m_mutex;
    std::condition_variable m_changed;
    bool m_stopping = false;
    std::thread m_thread;
};

} // namespace shardscope::engine
