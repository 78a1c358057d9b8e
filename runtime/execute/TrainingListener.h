// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "runtime/contract/Telemetry.h"
#include "runtime/execute/Executor.h"

#include <string>

namespace shardscope::engine {

/// Hears of what happens in a training run, on the compute thread.
class TrainingListener {
public:
    virtual ~TrainingListener() = default;
    /// Once per step: must neither block nor allocate.
    virtual void onStep(const contract::StepEvent& event) = 0;
    /// An instruction of a traced step: must neither block nor allocate.
    virtual void onInstruction(const TracedInstruction& /*instruction*/, double /*secondsBeforeNow*/) {}
    virtual void onEvent(const contract::EventBody& /*body*/) {}
};

} // namespace shardscope::engine
