// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <string>
#include <vector>

namespace shardscope::engine {

/// What a rank says of its device to the others.
struct DeviceIdentity {
    int rank = 0;
    std::string place;   ///< machine and address of the GPU
    std::string library; ///< version of the device's collectives; empty: it has none
};
/// Why these ranks cannot use the collectives of their devices; empty when they can. The same on every rank.
std::string whyNotShared(const std::vector<DeviceIdentity>& ranks);

} // namespace shardscope::engine
