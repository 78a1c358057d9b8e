// SPDX-License-Identifier: GPL-3.0-or-later
#include "runtime/launch/DeviceMonitor.h"

#include <condition_variable>
#include <mutex>
#include <thread>
#include <utility>

namespace shardscope::engine {

struct DeviceMonitor::State {
    std::mutex mutex;
    std::condition_variable changed;
    Teller teller;
    std::chrono::milliseconds period{};
    bool stopping = false;
    bool ended = false;
};

DeviceMonitor::DeviceMonitor(Reader reader, Teller teller, std::chrono::milliseconds period) {
    if (!reader)
        return;
    m_state = std::make_shared<State>();
    m_state->teller = std::move(teller);
    m_state->period = period;
    std::thread([state = m_state, reader = std::move(reader)] { run(state, reader); }).detach();
}

DeviceMonitor::~DeviceMonitor() {
    if (!m_state)
        return;
    std::unique_lock lock(m_state->mutex); // and with it the end of a line that is being told
    m_state->stopping = true;
    m_state->changed.notify_all();
    m_state->changed.wait_for(lock, std::chrono::milliseconds(500), [this] { return m_state->ended; });
}

void DeviceMonitor::run(const std::shared_ptr<State>& state, const Reader& reader) {
    for (;;) {
        const contract::DeviceEvent event = reader();
        std::unique_lock lock(state->mutex);
        if (!state->stopping && !event.isEmpty())
            state->teller(event);
        state->changed.wait_for(lock, state->period, [&] { return state->stopping; });
        if (state->stopping) {
            state->ended = true;
            state->changed.notify_all();
            return;
        }
    }
}

} // namespace shardscope::engine
