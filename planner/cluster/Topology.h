// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace shardscope::planner {

/// Processors and memory of this machine as hwloc sees them.
struct Topology {
    std::int64_t packages = 0;
    std::int64_t numaNodes = 0;
    std::int64_t cores = 0;
    std::int64_t threads = 0; ///< hardware threads
    std::int64_t memoryBytes = 0;
    /// Display and 3D controllers on PCI, with the NUMA node they are nearest to.
    struct Accelerator {
        std::string address; ///< "0000:3b:00.0"
        std::int64_t numaNode = 0;
    };
    std::vector<Accelerator> accelerators;
    bool known = false; ///< false: this program was built without hwloc, or it failed
};

Topology readTopology();

/// "2 packages, 4 NUMA nodes, 64 cores of 2 threads"; empty when nothing is known.
std::string describeTopology(const Topology& topology);

} // namespace shardscope::planner
