// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "runtime/contract/Telemetry.h"

#include <chrono>
#include <functional>
#include <memory>

namespace shardscope::engine {

/// Asks how a device is, once a second, on a thread of its own, and tells it. A device that does not answer any more
/// holds up nobody: the thread is left to itself.
class DeviceMonitor {
public:
    /// See Device::statusReader(). Called on the monitor's thread only, and destroyed there; it may outlive the
    /// monitor.
    using Reader = std::function<contract::DeviceEvent()>;
    /// Called on the monitor's thread, never after the monitor is gone.
    using Teller = std::function<void(const contract::DeviceEvent&)>;

    /// Does nothing where `reader` is none.
    DeviceMonitor(Reader reader, Teller teller, std::chrono::milliseconds period = std::chrono::seconds(1));
    /// Waits for a reading that is under way, but not for long.
    ~DeviceMonitor();
    DeviceMonitor(const DeviceMonitor&) = delete;
    DeviceMonitor& operator=(const DeviceMonitor&) = delete;

private:
    struct State;
    static void run(const std::shared_ptr<State>& state, const Reader& reader);
    std::shared_ptr<State> m_state;
};

} // namespace shardscope::engine
