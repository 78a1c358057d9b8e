// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "runtime/collective/Collectives.h"
#include "runtime/device/cuda/CudaDevice.h"

namespace shardscope::engine::cuda {

/// NCCL among the members of a ring, on the device's communication stream. Nothing, and the reason, where members share
/// a GPU (which NCCL refuses) or one of them has no NCCL: all members come to the same end, through the group's store.
/// Errors: RunFailed where NCCL fails, or not all members have appeared.
contract::Result<std::unique_ptr<Collectives>> connectNccl(CudaDevice& device, Group& group, const RingMembers& members,
                                                           const std::string& pciAddress, double timeoutSeconds,
                                                           std::string& why);

} // namespace shardscope::engine::cuda
