// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "runtime/contract/Result.h"

#include <gloo/rendezvous/store.h>

#include <chrono>
#include <memory>
#include <string>
#include <vector>

namespace shardscope::engine {

/// A client of KeyValueServer in the form in which Gloo wants a store. Gloo's interface reports errors by exceptions;
/// they are caught where Gloo is called.
class KeyValueStore : public gloo::rendezvous::Store {
public:
    /// Tries again until `patience` has passed, since ranks start in any order. Errors: RunFailed.
    static contract::Result<std::unique_ptr<KeyValueStore>> connect(const std::string& host, int port,
                                                                    std::chrono::milliseconds patience);
    ~KeyValueStore() override;

    void set(const std::string& key, const std::vector<char>& data) override;
    std::vector<char> get(const std::string& key) override;
    void wait(const std::vector<std::string>& keys) override;
    void wait(const std::vector<std::string>& keys, const std::chrono::milliseconds& timeout) override;

    /// Numeric address of this side of the connection: one that the other ranks can reach.
    const std::string& localAddress() const { return m_localAddress; }

private:
    KeyValueStore(int descriptor, std::string localAddress, std::chrono::milliseconds patience);
    struct Answer {
        bool found = false;
        std::vector<char> value;
    };
    Answer request(char code, const std::string& key, const std::vector<char>& value);

    int m_descriptor;
    std::string m_localAddress;
    std::chrono::milliseconds m_patience;
};

} // namespace shardscope::engine
