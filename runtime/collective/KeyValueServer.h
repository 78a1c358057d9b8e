// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "runtime/contract/Result.h"

#include <atomic>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <vector>

namespace shardscope::engine {

/// The rendezvous store: a small table of keys and values behind a TCP port, through which the ranks learn each other's
/// addresses. Served by the coordinator, or by rank 0 under another launcher.
///
/// Request: one byte 'S' (set) or 'G' (get), key length and value length (32-bit, host order), key, value.
/// Answer: one byte '1' (done, found) or '0' (not yet there), value length, value.
class KeyValueServer {
public:
    /// Port 0 takes any free port. Errors: RunFailed when the port is occupied or the address unknown.
    static contract::Result<std::unique_ptr<KeyValueServer>> listen(const std::string& host, int port);
    ~KeyValueServer();
    KeyValueServer(const KeyValueServer&) = delete;
    KeyValueServer& operator=(const KeyValueServer&) = delete;

    int port() const { return m_port; }

private:
    KeyValueServer(int listener, int port);
    struct Connection {
        int descriptor = -1;
        std::string received;
    };
    void serve();
    bool answer(Connection& connection);

    int m_listener;
    int m_port;
    std::atomic<bool> m_stopping{false};
    std::map<std::string, std::string> m_values;
    std::vector<Connection> m_connections;
    std::thread m_thread;
};

} // namespace shardscope::engine
