// SPDX-License-Identifier: GPL-3.0-or-later
#include "runtime/collective/KeyValueServer.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <netdb.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

namespace shardscope::engine {

namespace {

constexpr std::size_t kHeaderBytes = 1 + 2 * sizeof(std::uint32_t);
constexpr std::uint32_t kMaximumFieldBytes = 1 << 20;
constexpr int kPollMilliseconds = 100; // how long stopping takes at most

bool sendAll(int descriptor, const std::string& bytes) {
    std::size_t sent = 0;
    while (sent < bytes.size()) {
        const ssize_t count = send(descriptor, bytes.data() + sent, bytes.size() - sent, MSG_NOSIGNAL);
        if (count <= 0)
            return false;
        sent += static_cast<std::size_t>(count);
    }
    return true;
}

} // namespace

contract::Result<std::unique_ptr<KeyValueServer>> KeyValueServer::listen(const std::string& host, int port) {
    addrinfo hints{};
    hints.ai_family = AF_UNSPEC;
    hints.ai_socktype = SOCK_STREAM;
    hints.ai_flags = AI_PASSIVE;
    addrinfo* found = nullptr;
    if (const int code = getaddrinfo(host.c_str(), std::to_string(port).c_str(), &hints, &found); code != 0)
        return contract::runFailed(fmt::format("MASTER_ADDR \"{}\" is not an address: {}", host, gai_strerror(code)));
    const int listener = socket(found->ai_family, found->ai_socktype | SOCK_CLOEXEC, found->ai_protocol);
    const int on = 1;
    setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    const bool bound =
        listener >= 0 && bind(listener, found->ai_addr, found->ai_addrlen) == 0 && ::listen(listener, SOMAXCONN) == 0;
    const int error = errno;
    freeaddrinfo(found);
    if (!bound) {
        if (listener >= 0)
            close(listener);
        if (error == EADDRINUSE)
            return contract::runFailed(fmt::format(
                "MASTER_PORT {} on {} is occupied by another program; choose a free port or leave MASTER_PORT unset",
                port, host));
        return contract::runFailed(
            fmt::format("cannot listen on MASTER_ADDR {} MASTER_PORT {}: {}", host, port, std::strerror(error)));
    }
    sockaddr_storage address{};
    socklen_t length = sizeof address;
    getsockname(listener, reinterpret_cast<sockaddr*>(&address), &length);
    const int actual = address.ss_family == AF_INET6 ? ntohs(reinterpret_cast<sockaddr_in6*>(&address)->sin6_port)
                                                     : ntohs(reinterpret_cast<sockaddr_in*>(&address)->sin_port);
    return std::unique_ptr<KeyValueServer>(new KeyValueServer(listener, actual));
}

KeyValueServer::KeyValueServer(int listener, int port)
    : m_listener(listener), m_port(port), m_thread([this] { serve(); }) {}

KeyValueServer::~KeyValueServer() {
    m_stopping = true;
    m_thread.join();
    for (const Connection& connection : m_connections)
        close(connection.descriptor);
    close(m_listener);
}

void KeyValueServer::serve() {
    std::vector<pollfd> waiting; // kept, so that an idle server allocates nothing
    while (!m_stopping) {
        waiting.clear();
        waiting.push_back({m_listener, POLLIN, 0});
        for (const Connection& connection : m_connections)
            waiting.push_back({connection.descriptor, POLLIN, 0});
        if (poll(waiting.data(), waiting.size(), kPollMilliseconds) <= 0)
            continue;
        for (std::size_t i = 1; i < waiting.size(); ++i) {
            Connection& connection = m_connections[i - 1];
            if (waiting[i].revents == 0)
                continue;
            char buffer[4096];
            const ssize_t count = recv(connection.descriptor, buffer, sizeof buffer, 0);
            bool alive = count > 0;
            if (alive) {
                connection.received.append(buffer, static_cast<std::size_t>(count));
                alive = answer(connection);
            }
            if (!alive) {
                close(connection.descriptor);
                connection.descriptor = -1;
            }
        }
        std::erase_if(m_connections, [](const Connection& connection) { return connection.descriptor < 0; });
        if (waiting.front().revents != 0)
            if (const int accepted = accept4(m_listener, nullptr, nullptr, SOCK_CLOEXEC); accepted >= 0)
                m_connections.push_back({accepted, {}});
    }
}

/// Answers every complete request received so far; false when the connection talks nonsense or is gone.
bool KeyValueServer::answer(Connection& connection) {
    std::string& bytes = connection.received;
    while (bytes.size() >= kHeaderBytes) {
        std::uint32_t lengths[2];
        std::memcpy(lengths, bytes.data() + 1, sizeof lengths);
        if (lengths[0] > kMaximumFieldBytes || lengths[1] > kMaximumFieldBytes || (bytes[0] != 'S' && bytes[0] != 'G'))
            return false;
        const std::size_t total = kHeaderBytes + lengths[0] + lengths[1];
        if (bytes.size() < total)
            return true;
        const std::string key = bytes.substr(kHeaderBytes, lengths[0]);
        std::string value;
        bool found = true;
        if (bytes[0] == 'S')
            m_values[key] = bytes.substr(kHeaderBytes + lengths[0], lengths[1]);
        else if (const auto entry = m_values.find(key); entry != m_values.end())
            value = entry->second;
        else
            found = false;
        bytes.erase(0, total);
        std::string reply(1, found ? '1' : '0');
        const auto length = static_cast<std::uint32_t>(value.size());
        reply.append(reinterpret_cast<const char*>(&length), sizeof length);
        if (!sendAll(connection.descriptor, reply + value))
            return false;
    }
    return true;
}

} // namespace shardscope::engine
