// SPDX-License-Identifier: GPL-3.0-or-later
#include "runtime/collective/Sharing.h"

#include <fmt/format.h>

namespace shardscope::engine {

std::string whyNotShared(const std::vector<DeviceIdentity>& ranks) {
    for (std::size_t i = 0; i < ranks.size(); ++i) {
        if (ranks[i].library.empty())
            return fmt::format("rank {} has no NCCL", ranks[i].rank);
        if (ranks[i].library != ranks.front().library)
            return fmt::format("rank {} has NCCL {} and rank {} has {}", ranks[i].rank, ranks[i].library,
                               ranks.front().rank, ranks.front().library);
        for (std::size_t j = 0; j < i; ++j)
            if (ranks[i].place == ranks[j].place)
                return fmt::format("ranks {} and {} share a GPU, which NCCL refuses", ranks[j].rank, ranks[i].rank);
    }
    return {};
}

} // namespace shardscope::engine
