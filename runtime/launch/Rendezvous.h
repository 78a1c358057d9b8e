// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "runtime/contract/Result.h"

#include <string>

namespace shardscope::engine {

/// Who this process is among the ranks, as its launcher says: torchrun (RANK, WORLD_SIZE, LOCAL_RANK), srun (SLURM_...)
/// or mpirun (OMPI_COMM_WORLD_...), and where the store is (MASTER_ADDR, MASTER_PORT).
struct Rendezvous {
    int rank = 0;
    int world = 1;
    int localRank = 0;
    std::string host = "127.0.0.1";
    int port = 29500;
    bool hasCoordinator = false; ///< started by our own `run`, which serves the store
};

/// Errors: Usage, naming the variable.
contract::Result<Rendezvous> readRendezvous();

/// MASTER_PORT if it is set, else 0 (any). Errors: Usage.
contract::Result<int> requestedPort();

/// Set by the coordinator: its start on the machine's monotonic clock, so that all ranks tell the same time.
inline constexpr const char* kEpochVariable = "SHARDSCOPE_EPOCH";

} // namespace shardscope::engine
