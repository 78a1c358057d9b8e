// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "planner/cost/OperatorPricer.h"
#include "planner/timeline/PlannedStep.h"

#include <cstdint>
#include <vector>

namespace shardscope::planner {

/// What one instruction takes on its stream when nothing is beside it.
struct InstructionPrice {
    double seconds = 0;
    double fixedSeconds = 0; ///< of them, what a collective costs whatever its bytes
    std::int64_t bytes = 0;  ///< of a collective: the whole gathered or unreduced message
    bool isCollective = false;
};

/// Prices the instructions of a step program with the formulas the search uses: planner/cost. Not priced there, and so
/// not here: loading samples, the loss, and reading gradients for their norm.
class InstructionPricer {
public:
    explicit InstructionPricer(const PlannedStep& step);

    /// `lastMicroStep`: the all-reduce across nodes of an operator sharded inside its node belongs to its last
    /// reduce-scatter of a step.
    InstructionPrice price(const contract::StepInstruction& instruction, bool lastMicroStep) const;

    /// Share of communication that compute beside it hides, 0..1.
    double overlapEfficiency() const { return m_pricer.overlapEfficiency(); }

private:
    const contract::Operator& at(std::int32_t op) const { return m_step.operators()[static_cast<std::size_t>(op)]; }
    const contract::Placement& placementOf(std::int32_t op) const;
    /// Elements of the weights that an instruction moves; part -1: of all sharded parts of the operator's block.
    double elements(const contract::StepInstruction& instruction) const;
    double partOfForward(const contract::StepInstruction& instruction) const;
    InstructionPrice reduceScatter(const contract::StepInstruction& instruction, bool lastMicroStep) const;

    const PlannedStep& m_step;
    OperatorPricer m_pricer;
    std::vector<std::int32_t> m_owners;
    double m_gradientBytes; ///< per element on the links
    double m_weightBytes;
};

/// One instruction of a step on the integer clock of the timeline.
struct TimedInstruction {
    std::int64_t picoseconds = 0;
    std::int64_t fixedPicoseconds = 0;
    std::int64_t bytes = 0;
    bool isCollective = false;
};

/// Every instruction of a step program with its time.
struct TimedProgram {
    std::vector<TimedInstruction> each; ///< in micro-steps before the last
    std::vector<TimedInstruction> last; ///< in the last micro-step and after it
    std::int32_t overlapMillionths = 0; ///< overlap efficiency
};
/// Errors: BadInput when the step would take longer than a timeline can hold (11 days).
contract::Result<TimedProgram> timeProgram(const PlannedStep& step);

/// Whether an instruction does anything in a micro-step: what is reduced in place is reduced once a step.
bool runsInMicroStep(const contract::StepInstruction& instruction, bool lastMicroStep);

} // namespace shardscope::planner
