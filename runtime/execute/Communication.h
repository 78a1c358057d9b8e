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
    /// Connects the ring over the arenas that communication reads and writes. Errors: RunFailed.
    static contract::Result<std::unique_ptr<Communication>> create(const PlanSetup& setup, const StateLayout& layout,
                                                                   Group& group, BufferPool& pool);

    /// Runs a Gather, ReduceScatter, AllReduce or GatherUpdated; slot s begins at `slots[s]`.
    contract::Result<void> run(const contract::StepInstruction& instruction, const std::vector<float*>& slots);
    Ring& ring() { return *m_ring; }

private:
    Communication(const PlanSetup& setup, const StateLayout& layout) : m_setup(setup), m_layout(layout) {}

    contract::Result<void> gather(const contract::StepInstruction& instruction, float* slot);
    contract::Result<void> reduceScatter(const contract::StepInstruction& instruction, float* slot);
    contract::Result<void> reduceScatterInPlace(const contract::StepInstruction& instruction);
    /// Calls visit(part) for the parts that an instruction speaks of.
    template<typename Visit> void forEachPart(const contract::StepInstruction& instruction, Visit visit) const;

    const PlanSetup& m_setup;
    const StateLayout& m_layout;
    std::unique_ptr<Ring> m_ring;
    std::vector<RingTensor> m_tensors; ///< of the instruction being run; as large as the largest needs
};

} // namespace shardscope::engine
