// SPDX-License-Identifier: GPL-3.0-or-later
#include "runtime/collective/Group.h"

#include "runtime/collective/KeyValueStore.h"

#include <gloo/rendezvous/context.h>
#include <gloo/transport/tcp/device.h>

#include <cstdlib>
#include <dirent.h>
#include <exception>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <utility>

namespace shardscope::engine {

void tuneSockets() {
    DIR* const folder = opendir("/proc/self/fd");
    if (!folder)
        return;
    while (const dirent* entry = readdir(folder)) {
        const int descriptor = std::atoi(entry->d_name);
        int domain = 0;
        socklen_t size = sizeof domain;
        if (getsockopt(descriptor, SOL_SOCKET, SO_DOMAIN, &domain, &size) != 0 ||
            (domain != AF_INET && domain != AF_INET6))
            continue;
        const int on = 1;
        setsockopt(descriptor, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    }
    closedir(folder);
}

Group::Group(GroupAddress address) : m_address(std::move(address)) {}
Group::~Group() = default;

contract::Result<std::unique_ptr<Group>> Group::connect(const GroupAddress& address) {
    std::unique_ptr<Group> group(new Group(address));
    if (address.size == 1)
        return group;
    auto store = KeyValueStore::connect(address.host, address.port, address.patience);
    if (!store)
        return tl::unexpected(store.error());
    group->m_store = std::move(*store);
    try {
        gloo::transport::tcp::attr attributes;
        attributes.hostname = group->m_store->localAddress();
        auto device = gloo::transport::tcp::CreateDevice(attributes);
        auto context = std::make_shared<gloo::rendezvous::Context>(address.rank, address.size);
        context->setTimeout(address.timeout);
        context->connectFullMesh(*group->m_store, device);
        // In synchronous mode the calling thread reads and writes its sockets itself: no hand-over to an event thread,
        // no allocation per message, and the socket's own timeouts apply.
        for (int peer = 0; peer < address.size; ++peer)
            if (peer != address.rank)
                context->getPair(peer)->setSync(true, false);
        group->m_context = std::move(context);
    } catch (const std::exception& error) {
        return contract::runFailed(std::string("the ranks could not be connected: ") + error.what());
    }
    return group;
}

contract::Result<void> Group::meet(const std::string& name) {
    if (size() == 1)
        return {};
    try {
        m_store->set(name + "/" + std::to_string(rank()), {'1'});
        std::vector<std::string> keys;
        for (int peer = 0; peer < size(); ++peer)
            keys.push_back(name + "/" + std::to_string(peer));
        m_store->wait(keys);
    } catch (const std::exception& error) {
        return contract::runFailed(error.what());
    }
    return {};
}

contract::Result<void> Group::publish(const std::string& name, const std::string& value) {
    try {
        m_store->set(name, {value.begin(), value.end()});
    } catch (const std::exception& error) {
        return contract::runFailed(error.what());
    }
    return {};
}

contract::Result<std::string> Group::read(const std::string& name) {
    try {
        const std::vector<char> value = m_store->get(name);
        return std::string(value.begin(), value.end());
    } catch (const std::exception& error) {
        return contract::runFailed(error.what());
    }
}

} // namespace shardscope::engine
