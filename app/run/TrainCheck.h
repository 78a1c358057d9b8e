// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "app/run/Trainer.h"
#include "app/work/Answer.h"

#include <QString>

namespace shardscope::app {

/// Whether the plan shown can be trained on this machine, and what the button says.
struct TrainCheck {
    QString buttonText;       ///< "Train on 2 CPU workers"
    QString reason;           ///< why not; empty when it can
    bool canReplan = false;   ///< planning for this machine would help
    bool isElsewhere = false; ///< nothing but the machine stands in the way: it can be trained where its devices are
    bool isPossible() const { return reason.isEmpty(); }
};
TrainCheck checkTraining(const AnswerPointer& answer);

/// What the train card offers at first: the demo learns faster with a higher rate.
TrainSettings defaultSettings(const planner::Graph& graph);

} // namespace shardscope::app
