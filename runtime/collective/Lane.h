// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "runtime/contract/Result.h"
#include "runtime/contract/StepProgram.h"

#include <array>
#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>
#include <optional>
#include <thread>

namespace shardscope::engine {

/// The communication thread of a rank: runs jobs one after the other in the order in which they were handed over.
/// Handing over and waiting allocate nothing.
class Lane {
public:
    using Job = contract::StepInstruction;
    using Handler = std::function<contract::Result<void>(const Job&)>;
    /// Counts jobs; waiting for a ticket waits for that job and all before it. 0 is "nothing to wait for".
    using Ticket = std::uint64_t;

    explicit Lane(Handler handler);
    ~Lane();
    Lane(const Lane&) = delete;
    Lane& operator=(const Lane&) = delete;

    /// Blocks while the queue is full. After a failure jobs are dropped.
    Ticket post(const Job& job);
    /// False when a job failed; see failure().
    bool wait(Ticket ticket);
    bool drain() { return wait(m_posted); }
    /// The first failure, and the job that failed.
    std::optional<contract::Error> failure() const;
    Job failedJob() const;
    /// Whether the calling thread is waiting just now. May be asked by any thread.
    bool isWaitedFor() const { return m_isWaitedFor; }
    /// Time the calling thread has spent in wait().
    double waitedSeconds() const { return m_waitedSeconds; }

private:
    static constexpr std::size_t kCapacity = 1024;
    void run();

    Handler m_handler;
    mutable std::mutex m_mutex;
    std::condition_variable m_changed; ///< a job was posted
    std::condition_variable m_done;    ///< a job was finished
    std::array<Job, kCapacity> m_queue{};
    Ticket m_posted = 0;
    Ticket m_finished = 0;
    std::optional<contract::Error> m_failure;
    Job m_failedJob;
    bool m_stopping = false;
    double m_waitedSeconds = 0;
    std::atomic<bool> m_isWaitedFor{false};
    std::thread m_thread;
};

} // namespace shardscope::engine
