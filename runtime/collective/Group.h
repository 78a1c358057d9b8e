// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "runtime/contract/Result.h"

#include <chrono>
#include <memory>
#include <string>

namespace gloo {
class Context;
}

namespace shardscope::engine {

class KeyValueStore;

struct GroupAddress {
    int rank = 0;
    int size = 1;
    std::string host = "127.0.0.1";            ///< MASTER_ADDR: where the rendezvous store is served
    int port = 0;                              ///< MASTER_PORT
    std::chrono::milliseconds timeout{5000};   ///< of one wait for a peer inside a collective
    std::chrono::milliseconds patience{60000}; ///< for all ranks to start
};

/// The ranks of a run, connected with each other. A group of one is connected to nobody.
class Group {
public:
    /// Errors: RunFailed when not all ranks appear.
    static contract::Result<std::unique_ptr<Group>> connect(const GroupAddress& address);
    ~Group();

    int rank() const { return m_address.rank; }
    int size() const { return m_address.size; }
    int next() const { return (rank() + 1) % size(); }
    int previous() const { return (rank() + size() - 1) % size(); }
    std::chrono::milliseconds timeout() const { return m_address.timeout; }
    gloo::Context* context() const { return m_context.get(); }

    /// Waits for all ranks through the store: slow, for the set-up only. `name` must be new each time.
    contract::Result<void> meet(const std::string& name);
    /// Tells the other ranks something, under a name that is new each time; hears it, waiting until it is told. For the
    /// set-up, in groups of more than one. Errors: RunFailed.
    contract::Result<void> publish(const std::string& name, const std::string& value);
    contract::Result<std::string> read(const std::string& name);

private:
    explicit Group(GroupAddress address);
    GroupAddress m_address;
    std::unique_ptr<KeyValueStore> m_store;
    std::shared_ptr<gloo::Context> m_context;
};

/// Turns off the batching of small messages on every TCP socket of this process: of two messages in a row to the same
/// peer (a weight and its bias) the second would wait for the peer's delayed acknowledgement, 40 ms. Gloo keeps its
/// sockets to itself, so they are found among this process's descriptors.
void tuneSockets();

} // namespace shardscope::engine
