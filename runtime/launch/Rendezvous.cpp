// SPDX-License-Identifier: GPL-3.0-or-later
#include "runtime/launch/Rendezvous.h"

#include <fmt/format.h>

#include <charconv>
#include <cstdlib>
#include <cstring>
#include <initializer_list>
#include <optional>

namespace shardscope::engine {

namespace {

/// The first of these variables that is set, as an integer within bounds.
contract::Result<std::optional<int>> integerOf(std::initializer_list<const char*> names, int minimum, int maximum) {
    for (const char* name : names) {
        const char* text = std::getenv(name);
        if (text == nullptr || *text == '\0')
            continue;
        int value = 0;
        const char* end = text + std::strlen(text);
        const auto [stopped, error] = std::from_chars(text, end, value);
        if (error != std::errc{} || stopped != end || value < minimum || value > maximum)
            return contract::usageError(
                fmt::format("{}=\"{}\": must be an integer in {}..{}", name, text, minimum, maximum));
        return std::optional<int>(value);
    }
    return std::optional<int>();
}

constexpr int kMaximumRanks = 1 << 16;
constexpr int kMaximumPort = 65535;

} // namespace

contract::Result<int> requestedPort() {
    const auto port = integerOf({"MASTER_PORT"}, 1, kMaximumPort);
    if (!port)
        return tl::unexpected(port.error());
    return port->value_or(0);
}

contract::Result<Rendezvous> readRendezvous() {
    Rendezvous result;
    const auto rank = integerOf({"RANK", "SLURM_PROCID", "OMPI_COMM_WORLD_RANK"}, 0, kMaximumRanks);
    const auto world = integerOf({"WORLD_SIZE", "SLURM_NTASKS", "OMPI_COMM_WORLD_SIZE"}, 1, kMaximumRanks);
    const auto local = integerOf({"LOCAL_RANK", "SLURM_LOCALID", "OMPI_COMM_WORLD_LOCAL_RANK"}, 0, kMaximumRanks);
    const auto port = requestedPort();
    for (const auto* value : {&rank, &world, &local})
        if (!*value)
            return tl::unexpected(value->error());
    if (!port)
        return tl::unexpected(port.error());
    result.rank = rank->value_or(0);
    result.world = world->value_or(1);
    result.localRank = local->value_or(0);
    if (result.rank >= result.world)
        return contract::usageError(fmt::format("RANK {} must be below WORLD_SIZE {}", result.rank, result.world));
    if (const char* host = std::getenv("MASTER_ADDR"); host != nullptr && *host != '\0')
        result.host = host;
    if (*port != 0)
        result.port = *port;
    result.hasCoordinator = std::getenv(kEpochVariable) != nullptr;
    // torchrun's agent serves its own store at MASTER_PORT; ours takes the port beside it.
    if (const char* agent = std::getenv("TORCHELASTIC_USE_AGENT_STORE");
        agent != nullptr && std::strcmp(agent, "True") == 0)
        ++result.port;
    return result;
}

} // namespace shardscope::engine
