// SPDX-License-Identifier: GPL-3.0-or-later
#include "support/FreePort.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

namespace shardscope::testing {

int freePort(int* taken) {
    const int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    bind(listener, reinterpret_cast<sockaddr*>(&address), sizeof address);
    socklen_t length = sizeof address;
    getsockname(listener, reinterpret_cast<sockaddr*>(&address), &length);
    if (taken != nullptr && listen(listener, 1) == 0)
        *taken = listener;
    else
        close(listener);
    return ntohs(address.sin_port);
}

} // namespace shardscope::testing
