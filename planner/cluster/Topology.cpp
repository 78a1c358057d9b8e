// SPDX-License-Identifier: GPL-3.0-or-later
#include "planner/cluster/Topology.h"

#include <fmt/format.h>

#include <algorithm>

#ifdef SHARDSCOPE_HWLOC
#include <hwloc.h>
#endif

namespace shardscope::planner {

#ifdef SHARDSCOPE_HWLOC

namespace {

constexpr unsigned kDisplayClass = 0x03; // base class of display and 3D controllers

std::int64_t countOf(hwloc_topology_t topology, hwloc_obj_type_t type) {
    return std::max(0, hwloc_get_nbobjs_by_type(topology, type));
}

std::int64_t nearestNumaNode(hwloc_obj_t device) {
    const hwloc_obj* owner = device;
    while (owner && !owner->nodeset)
        owner = owner->parent;
    return owner ? std::max(0, hwloc_bitmap_first(owner->nodeset)) : 0;
}

} // namespace

Topology readTopology() {
    Topology found;
    hwloc_topology_t topology = nullptr;
    if (hwloc_topology_init(&topology) != 0)
        return found;
    hwloc_topology_set_io_types_filter(topology, HWLOC_TYPE_FILTER_KEEP_IMPORTANT);
    // Accelerators are found by their PCI class, which hwloc reads from sysfs. The components that ask drivers instead
    // start them: they open displays and take device memory, and what a driver leaks or breaks is then ours. The one on
    // libpciaccess tells no more than sysfs and leaks.
    for (const char* component : {"pci", "opencl", "cuda", "nvml", "rsmi", "levelzero", "gl"})
        hwloc_topology_set_components(topology, HWLOC_TOPOLOGY_COMPONENTS_FLAG_BLACKLIST, component);
    if (hwloc_topology_load(topology) == 0) {
        found.known = true;
        found.packages = countOf(topology, HWLOC_OBJ_PACKAGE);
        found.numaNodes = countOf(topology, HWLOC_OBJ_NUMANODE);
        found.cores = countOf(topology, HWLOC_OBJ_CORE);
        found.threads = countOf(topology, HWLOC_OBJ_PU);
        found.memoryBytes = static_cast<std::int64_t>(hwloc_get_root_obj(topology)->total_memory);
        for (hwloc_obj_t device = nullptr; (device = hwloc_get_next_pcidev(topology, device)) != nullptr;) {
            const auto& pci = device->attr->pcidev;
            if (pci.class_id >> 8 == kDisplayClass)
                found.accelerators.push_back(
                    {fmt::format("{:04x}:{:02x}:{:02x}.{:x}", pci.domain, pci.bus, pci.dev, pci.func),
                     nearestNumaNode(device)});
        }
    }
    hwloc_topology_destroy(topology);
    return found;
}

#else

Topology readTopology() {
    return {};
}

#endif

std::string describeTopology(const Topology& topology) {
    if (!topology.known)
        return {};
    const auto plural = [](std::int64_t count, const char* what) {
        return fmt::format("{} {}{}", count, what, count == 1 ? "" : "s");
    };
    std::string text = fmt::format("{}, {}, {}", plural(topology.packages, "package"),
                                   plural(topology.numaNodes, "NUMA node"), plural(topology.cores, "core"));
    if (topology.threads > topology.cores)
        text += fmt::format(", {}", plural(topology.threads, "hardware thread"));
    if (!topology.accelerators.empty()) {
        std::vector<std::int64_t> nodes;
        for (const Topology::Accelerator& accelerator : topology.accelerators)
            nodes.push_back(accelerator.numaNode);
        std::sort(nodes.begin(), nodes.end());
        nodes.erase(std::unique(nodes.begin(), nodes.end()), nodes.end());
        text += fmt::format(", {} on PCI at NUMA {} {}",
                            plural(static_cast<std::int64_t>(topology.accelerators.size()), "display controller"),
                            nodes.size() == 1 ? "node" : "nodes", fmt::join(nodes, ", "));
    }
    return text;
}

} // namespace shardscope::planner
