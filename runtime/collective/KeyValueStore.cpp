// SPDX-License-Identifier: GPL-3.0-or-later
#include "runtime/collective/KeyValueStore.h"

#include <fmt/format.h>
#include <gloo/common/error.h>

#include <cerrno>
#include <cstring>
#include <netdb.h>
#include <sys/socket.h>
#include <thread>
#include <unistd.h>
#include <utility>

namespace shardscope::engine {

namespace {

constexpr std::chrono::milliseconds kRetryPause{10};

int connectOnce(const addrinfo* addresses) {
    for (const addrinfo* address = addresses; address != nullptr; address = address->ai_next) {
        const int descriptor = socket(address->ai_family, address->ai_socktype | SOCK_CLOEXEC, address->ai_protocol);
        if (descriptor < 0)
            continue;
        if (::connect(descriptor, address->ai_addr, address->ai_addrlen) == 0)
            return descriptor;
        close(descriptor);
    }
    return -1;
}

[[noreturn]] void fail(const std::string& what) {
    throw gloo::IoException("rendezvous store: " + what);
}

} // namespace

contract::Result<std::unique_ptr<KeyValueStore>> KeyValueStore::connect(const std::string& host, int port,
                                                                        std::chrono::milliseconds patience) {
    addrinfo hints{};
    hints.ai_family = AF_UNSPEC;
    hints.ai_socktype = SOCK_STREAM;
    addrinfo* addresses = nullptr;
    if (const int code = getaddrinfo(host.c_str(), std::to_string(port).c_str(), &hints, &addresses); code != 0)
        return contract::runFailed(fmt::format("MASTER_ADDR \"{}\" is not an address: {}", host, gai_strerror(code)));
    const auto deadline = std::chrono::steady_clock::now() + patience;
    int descriptor = connectOnce(addresses);
    while (descriptor < 0 && std::chrono::steady_clock::now() < deadline) {
        std::this_thread::sleep_for(kRetryPause);
        descriptor = connectOnce(addresses);
    }
    freeaddrinfo(addresses);
    if (descriptor < 0)
        return contract::runFailed(
            fmt::format("nobody answers at MASTER_ADDR {} MASTER_PORT {} after {} s; is rank 0 running?", host, port,
                        patience.count() / 1000));
    sockaddr_storage local{};
    socklen_t length = sizeof local;
    getsockname(descriptor, reinterpret_cast<sockaddr*>(&local), &length);
    char text[NI_MAXHOST] = {};
    getnameinfo(reinterpret_cast<sockaddr*>(&local), length, text, sizeof text, nullptr, 0, NI_NUMERICHOST);
    timeval timeout{};
    timeout.tv_sec = patience.count() / 1000 + 1;
    setsockopt(descriptor, SOL_SOCKET, SO_RCVTIMEO, &timeout, sizeof timeout);
    return std::unique_ptr<KeyValueStore>(new KeyValueStore(descriptor, text, patience));
}

KeyValueStore::KeyValueStore(int descriptor, std::string localAddress, std::chrono::milliseconds patience)
    : m_descriptor(descriptor), m_localAddress(std::move(localAddress)), m_patience(patience) {}

KeyValueStore::~KeyValueStore() {
    close(m_descriptor);
}

KeyValueStore::Answer KeyValueStore::request(char code, const std::string& key, const std::vector<char>& value) {
    std::string bytes(1, code);
    const std::uint32_t lengths[2] = {static_cast<std::uint32_t>(key.size()), static_cast<std::uint32_t>(value.size())};
    bytes.append(reinterpret_cast<const char*>(lengths), sizeof lengths);
    bytes += key;
    bytes.append(value.begin(), value.end());
    for (std::size_t sent = 0; sent < bytes.size();) {
        const ssize_t count = send(m_descriptor, bytes.data() + sent, bytes.size() - sent, MSG_NOSIGNAL);
        if (count <= 0)
            fail("the connection was lost");
        sent += static_cast<std::size_t>(count);
    }
    const auto receive = [this](char* into, std::size_t count) {
        for (std::size_t got = 0; got < count;) {
            const ssize_t more = recv(m_descriptor, into + got, count - got, 0);
            if (more <= 0)
                fail("the connection was lost");
            got += static_cast<std::size_t>(more);
        }
    };
    char header[1 + sizeof(std::uint32_t)];
    receive(header, sizeof header);
    std::uint32_t length = 0;
    std::memcpy(&length, header + 1, sizeof length);
    Answer answer;
    answer.found = header[0] == '1';
    answer.value.resize(length);
    receive(answer.value.data(), length);
    return answer;
}

void KeyValueStore::set(const std::string& key, const std::vector<char>& data) {
    request('S', key, data);
}

std::vector<char> KeyValueStore::get(const std::string& key) {
    wait({key});
    return request('G', key, {}).value;
}

void KeyValueStore::wait(const std::vector<std::string>& keys) {
    wait(keys, m_patience);
}

// The time given by Gloo is that of one collective; starting all ranks may take longer than that.
void KeyValueStore::wait(const std::vector<std::string>& keys, const std::chrono::milliseconds& timeout) {
    const auto deadline = std::chrono::steady_clock::now() + std::max(timeout, m_patience);
    for (const std::string& key : keys)
        while (!request('G', key, {}).found) {
            if (std::chrono::steady_clock::now() > deadline)
                fail(fmt::format("\"{}\" did not appear: not all ranks have started", key));
            std::this_thread::sleep_for(kRetryPause);
        }
}

} // namespace shardscope::engine
