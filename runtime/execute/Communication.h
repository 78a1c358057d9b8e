// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "runtime/collective/Collectives.h"
#include "runtime/device/Device.h"
#include "runtime/execute/PlanSetup.h"
#include "runtime/network/StateLayout.h"

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

namespace shardscope::engine {

/// The communication instructions of a step program: which tensors of which operators take part, where they lie, and
/// the collective over them. All tensors of an instruction (a weight and its bias, a coalesced block) are one
/// collective. Lives on the communication thread; allocates nothing after create().
class Communication {
public:
    /// Connects the rings over the arenas that communication reads and writes, where they lie in host memory; else the
    /// device's own collectives, or rings through the host where it has none. Errors: RunFailed.
    static contract::Result<std::unique_ptr<Communication>> create(const PlanSetup& setup, const StateLayout& layout,
                                                                   Group& group, BufferPool& pool, Device& device);
    ~Communication();

    /// Runs a Gather, ReduceScatter, AllReduce or GatherUpdated; slot s begins at `slots[s]`. An AllReduce of something
    /// that is sharded inside nodes sums this rank's shard of the gradient over the nodes.
    contract::Result<void> run(const contract::StepInstruction& instruction, const std::vector<std::byte*>& slots);
    /// The ring of all ranks, for the host's own numbers.
    Ring& ring() { return *m_all.ring; }
    /// How the tensors travel: "gloo", "nccl", ...; and why not by the device's own collectives where they do not.
    const char* collectivesName() const { return m_all.collectives->name(); }
    const std::string& whyNotOwn() const { return m_whyNotOwn; }
    /// Whether the shards of an operator exist on every node, so that their gradients are still to be summed over the
    /// nodes when they have been reduced inside.
    bool hasCopiesOnOtherNodes(std::int32_t op) const;

private:
    /// A ring and what travels over it, or past it.
    struct Ranks {
        std::unique_ptr<Ring> ring;
        std::unique_ptr<Collectives> collectives;

        int rank() const { return ring->rank(); }
    };

    Communication(const PlanSetup& setup, const StateLayout& layout, const Group& group, Device& device)
        : m_setup(setup), m_layout(layout), m_group(group), m_device(device) {}
    contract::Result<void> connect(Ranks& ranks, Group& group, const RingMembers& members,
                                   const std::vector<MemoryRegion>& regions, MemoryRegion scratch);

    contract::Result<void> gather(const contract::StepInstruction& instruction, std::byte* slot);
    contract::Result<void> reduceScatter(const contract::StepInstruction& instruction, std::byte* slot);
    contract::Result<void> reduceScatterInPlace(const contract::StepInstruction& instruction);
    contract::Result<void> allReduce(const contract::StepInstruction& instruction);
    /// The ranks over which an operator is sharded.
    const Ranks& shardRanks(std::int32_t op) const { return hasCopiesOnOtherNodes(op) ? m_inside : m_all; }
    /// Calls visit(part) for the parts that an instruction speaks of.
    template<typename Visit> void forEachPart(const contract::StepInstruction& instruction, Visit visit) const;

    const PlanSetup& m_setup;
    const StateLayout& m_layout;
    const Group& m_group;
    Device& m_device;
    std::vector<std::byte> m_staging; ///< host memory through which a device's memory travels
    std::string m_whyNotOwn;
    Ranks m_all;
    Ranks m_inside;                          ///< the ranks of this node; empty where no operator needs it
    Ranks m_across;                          ///< the ranks with this one's place in every node
    std::vector<CollectiveTensor> m_tensors; ///< of the instruction being run; as large as the largest needs
};

} // namespace shardscope::engine
