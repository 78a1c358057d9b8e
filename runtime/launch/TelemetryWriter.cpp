// SPDX-License-Identifier: GPL-3.0-or-later
#include "runtime/launch/TelemetryWriter.h"

#include <cerrno>
#include <chrono>
#include <unistd.h>
#include <utility>

namespace shardscope::engine {

double monotonicSeconds() {
    return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

bool writeAll(int descriptor, std::string_view text) {
    while (!text.empty()) {
        const ssize_t count = write(descriptor, text.data(), text.size());
        if (count < 0 && errno == EINTR)
            continue;
        if (count <= 0)
            return false;
        text.remove_prefix(static_cast<std::size_t>(count));
    }
    return true;
}

TelemetryWriter::TelemetryWriter(int rank, double epoch, std::vector<int> descriptors,
                                 std::vector<std::string> operatorNames)
    : m_rank(rank), m_epoch(epoch), m_descriptors(std::move(descriptors)), m_names(std::move(operatorNames)),
      m_queue(kCapacity), m_thread([this] { run(); }) {}

TelemetryWriter::~TelemetryWriter() {
    {
        const std::lock_guard lock(m_mutex);
        m_stopping = true;
    }
    m_changed.notify_all();
    m_thread.join();
}

bool TelemetryWriter::push(const Item& item) {
    const std::lock_guard lock(m_mutex);
    // The last places are for steps.
    if (m_end - m_begin >= (item.isStep ? kCapacity : kCapacity - 64))
        return false;
    m_queue[m_end % kCapacity] = item;
    ++m_end;
    m_changed.notify_all();
    return true;
}

void TelemetryWriter::onStep(const contract::StepEvent& event) {
    Item item;
    item.t = monotonicSeconds() - m_epoch;
    item.isStep = true;
    item.step = event;
    push(item);
}

void TelemetryWriter::onInstruction(const TracedInstruction& instruction, double secondsBeforeNow) {
    Item item;
    item.t = monotonicSeconds() - m_epoch;
    item.instruction = instruction;
    const double stepStart = item.t - secondsBeforeNow;
    item.instruction.start += stepStart;
    item.instruction.end += stepStart;
    push(item);
}

void TelemetryWriter::onEvent(const contract::EventBody& body) {
    flush(); // lines stay in the order in which things happened
    write(monotonicSeconds() - m_epoch, body);
}

void TelemetryWriter::flush() {
    std::unique_lock lock(m_mutex);
    m_changed.wait(lock, [this] { return m_begin == m_end; });
}

contract::EventBody TelemetryWriter::bodyOf(const Item& item) const {
    if (item.isStep)
        return item.step;
    const contract::StepInstruction& instruction = item.instruction.instruction;
    contract::OperatorEvent event;
    event.name = instruction.op >= 0 ? m_names[static_cast<std::size_t>(instruction.op)] : "";
    event.phase = contract::stepCodeName(instruction.code);
    event.stream = item.instruction.communication ? "communication" : "compute";
    event.start = item.instruction.start;
    event.end = item.instruction.end;
    return event;
}

void TelemetryWriter::write(double t, const contract::EventBody& body) {
    const std::lock_guard lock(m_writing);
    const std::string line = contract::formatEvent({{t, m_rank, m_sequence++}, body}) + "\n";
    for (const int descriptor : m_descriptors)
        writeAll(descriptor, line);
}

void TelemetryWriter::run() {
    std::unique_lock lock(m_mutex);
    for (;;) {
        m_changed.wait(lock, [this] { return m_stopping || m_begin != m_end; });
        if (m_begin == m_end)
            return;
        const Item item = m_queue[m_begin % kCapacity];
        lock.unlock();
        write(item.t, bodyOf(item));
        lock.lock();
        ++m_begin; // only now: flush() waits for written lines
        m_changed.notify_all();
    }
}

} // namespace shardscope::engine
