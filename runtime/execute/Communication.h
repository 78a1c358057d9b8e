// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "runtime/collective/Ring.h"
#include "runtime/execute/PlanSetup.h"
#include "runtime/network/StateLayout.h"

#include <memory>
#include <vector>

namespace shardscope::engine {

/// The communication instructions of a step program: which tensors of which operators take part, where they lie, and
/// the collective over them. All tensors of an instruction (a weight and its bias, a coalesced block) are one
/// collective. Lives on the communication thread; allocates nothing after create().
class Communication {
public:
    /// Connects the rings over the arenas that communication reads and writes. Errors: RunFailed.
    static contract::Result<std::unique_ptr<Communication>> create(const PlanSetup& setup, const StateLayout& layout,
                                                                   Group& group, BufferPool& pool);

    /// Runs a Gather, ReduceScatter, AllReduce or GatherUpdated; slot s begins at `slots[s]`. An AllReduce of something
    /// that is sharded inside nodes sums this rank's shard of the gradient over the nodes.
    contract::Result<void> run(const contract::StepInstruction& instruction, const std::vector<float*>& slots);
    /// The ring of all ranks.
    Ring& ring() { return *m_ring; }
    /// Whether the shards of an operator exist on every node, so that their gradients are still to be summed over the
    /// nodes when they have been reduced inside.
    bool hasCopiesOnOtherNodes(std::int32_t op) const;

private:
    Communication(const PlanSetup& setup, const StateLayout& layout, const Group& group)
        : m_setup(setup), m_layout(layout), m_group(group) {}

    contract::Result<void> gather(const contract::StepInstruction& instruction, float* slot);
    contract::Result<void> reduceScatter(const contract::StepInstruction& instruction, float* slot);
    contract::Result<void> reduceScatterInPlace(const contract::StepInstruction& instruction);
    contract::Result<void> allReduce(const contract::StepInstruction& instruction);
    /// The ring over which an operator is sharded.
    Ring& shardRing(std::int32_t op) const { return hasCopiesOnOtherNodes(op) ? *m_inside : *m_ring; }
    /// Calls visit(part) for the parts that an instruction speaks of.
    template<typename Visit> void forEachPart(const contract::StepInstruction& instruction, Visit visit) const;

    const PlanSetup& m_setup;
    const StateLayout& m_layout;
    const Group& m_group;
    std::unique_ptr<Ring> m_ring;
    std::unique_ptr<Ring> m_inside;    ///< the ranks of this node; null where no operator needs it
    std::unique_ptr<Ring> m_across;    ///< the ranks with this one's place in every node
    std::vector<RingTensor> m_tensors; ///< of the instruction being run; as large as the largest needs
};

} // namespace shardscope::engine
