// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "runtime/contract/Telemetry.h"
#include "runtime/execute/TrainingListener.h"

#include <array>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

namespace shardscope::engine {

/// Seconds of the machine's monotonic clock, common to all processes of it.
double monotonicSeconds();

/// Writes one rank's telemetry to a file descriptor. Steps and traced instructions go through a queue to a thread of
/// their own, so that a reader who does not read never holds up a step; when the queue is full, instructions are
/// dropped.
class TelemetryWriter : public TrainingListener {
public:
    /// `epoch`: the monotonic time that is 0 in the lines; `descriptors` are not closed.
    TelemetryWriter(int rank, double epoch, std::vector<int> descriptors, std::vector<std::string> operatorNames);
    ~TelemetryWriter() override;

    void onStep(const contract::StepEvent& event) override;
    void onInstruction(const TracedInstruction& instruction, double secondsBeforeNow) override;
    void onEvent(const contract::EventBody& body) override;
    /// Waits until everything queued is written.
    void flush();

private:
    struct Item {
        double t = 0;
        bool isStep = false;
        contract::StepEvent step;
        TracedInstruction instruction;
    };
    static constexpr std::size_t kCapacity = 4096;
    void run();
    bool push(const Item& item);
    void write(double t, const contract::EventBody& body);
    contract::EventBody bodyOf(const Item& item) const;

    int m_rank;
    double m_epoch;
    std::vector<int> m_descriptors;
    std::vector<std::string> m_names;
    std::mutex m_writing;
    std::int64_t m_sequence = 0;
    std::mutex m_mutex;
    std::condition_variable m_changed;
    std::vector<Item> m_queue;
    std::size_t m_begin = 0;
    std::size_t m_end = 0; ///< both count up for ever
    bool m_stopping = false;
    std::thread m_thread;
};

/// Writes all of a text, whatever a single write() takes. False when the reader is gone.
bool writeAll(int descriptor, std::string_view text);

} // namespace shardscope::engine
