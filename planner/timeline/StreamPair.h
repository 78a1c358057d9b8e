// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "runtime/contract/StepProgram.h"

#include <cstdint>
#include <vector>

namespace shardscope::planner {

/// Two streams that share a clock, as a rank of the runtime has them: a compute thread, and a communication lane that
/// runs what is handed to it first-in first-out.
///
/// Compute always runs at full rate. Beside it communication advances at the overlap efficiency, alone at full rate, so
/// communication G beside compute F costs max(0, G - efficiency F) more: cost-model "Overlap". With efficiency 0
/// nothing overlaps. All times are integer picoseconds.
class StreamPair {
public:
    /// Counts jobs; 0 is "nothing to wait for".
    using Ticket = std::size_t;

    struct Job {
        contract::StepInstruction instruction;
        std::int32_t microStep = 0;
        std::int64_t work = 0;      ///< picoseconds at full rate
        std::int64_t fixedWork = 0; ///< of them, whatever the bytes
        std::int64_t bytes = 0;
    };

    /// Called in the order of time.
    class Observer {
    public:
        virtual ~Observer() = default;
        virtual void jobBegan(const Job& job, std::int64_t at) = 0;
        virtual void jobEnded(const Job& job, std::int64_t began, std::int64_t at) = 0;
        /// The compute thread stood still for `picoseconds` while this job ran.
        virtual void jobExposed(const Job& job, std::int64_t picoseconds) = 0;
    };

    StreamPair(std::int32_t overlapMillionths, Observer& observer)
        : m_overlap(overlapMillionths), m_observer(observer) {}

    std::int64_t now() const { return m_now; }
    /// Hands over a job; it cannot begin before now.
    Ticket post(const Job& job);
    /// The compute thread works.
    void compute(std::int64_t picoseconds);
    /// The compute thread waits for a job and all before it.
    void wait(Ticket ticket);
    void drain() { wait(m_posted); }

private:
    void begin();
    void finish();

    std::int32_t m_overlap;
    Observer& m_observer;
    std::int64_t m_now = 0;
    std::vector<Job> m_queue; ///< jobs m_finished .. m_posted - 1, from m_head on
    std::size_t m_head = 0;
    Ticket m_posted = 0;
    Ticket m_finished = 0;
    std::int64_t m_remaining = 0; ///< work of the job at the head once it has begun
    std::int64_t m_began = 0;
    bool m_running = false;
};

} // namespace shardscope::planner
