// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <condition_variable>
#include <functional>
#include <mutex>
#include <stop_token>
#include <thread>

namespace shardscope::app {

/// One thread that runs the newest job: submitting replaces a job that waits and asks the running one to stop.
/// Destroying it stops and joins.
class LatestWins {
public:
    using Job = std::function<void(std::stop_token)>;

    LatestWins();
    ~LatestWins();
    LatestWins(const LatestWins&) = delete;
    LatestWins& operator=(const LatestWins&) = delete;

    void submit(Job job);
    /// Drops the waiting job and asks the running one to stop.
    void cancel();
    bool isIdle() const;

private:
    void run(const std::stop_token& stop);

    mutable std::mutex m_mutex;
    std::condition_variable_any m_wake;
    Job m_waiting;
    std::stop_source m_running;
    bool m_busy = false;
    std::jthread m_thread; ///< last: starts when everything else exists
};

} // namespace shardscope::app
