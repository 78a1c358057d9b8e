// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "app/document/Choices.h"
#include "planner/search/Planner.h"
#include "planner/search/Remedies.h"

#include <QString>

#include <cstdint>
#include <memory>
#include <vector>

namespace shardscope::app {

using PlannerPointer = std::shared_ptr<const planner::Planner>;

/// One answer of the planner, immutable; everything on the window that depends on the budget shows one of these.
struct Answer {
    std::uint64_t generation = 0;
    std::uint64_t revision = 0; ///< of the choices apart from the budget
    ChoicesPointer choices;
    PlannerPointer planner;          ///< null when the question contradicts itself
    planner::PlanResultPointer plan; ///< null when the question contradicts itself
    QString error;                   ///< why, then
    bool isHurried = false;          ///< asked during a drag: more questions follow at once
    bool isFinal = false;            ///< no better answer for this question is on its way
};
using AnswerPointer = std::shared_ptr<const Answer>;

/// What surrounds the answers of one revision: the whole frontier and the well-known policies under the card's memory.
struct Surroundings {
    std::uint64_t revision = 0;
    planner::Frontier frontier;
    std::vector<planner::Baseline> baselines;
    bool isFinal = false; ///< a finer frontier is not on its way
};
using SurroundingsPointer = std::shared_ptr<const Surroundings>;

/// The well-known policies, and the answer at the other granularity, under the budget of one answer.
struct Comparison {
    std::uint64_t generation = 0;
    std::vector<planner::Baseline> baselines;
    planner::PlanResultPointer otherGranularity; ///< null when there is none
};
using ComparisonPointer = std::shared_ptr<const Comparison>;

/// Changes that make an infeasible answer fit, each verified by the solver.
struct Remedies {
    std::uint64_t generation = 0;
    std::vector<planner::Remedy> list;
};
using RemediesPointer = std::shared_ptr<const Remedies>;

/// Why operators of an answer are placed as they are.
struct Explanation {
    std::uint64_t generation = 0;
    std::int32_t op = -1;
    std::vector<planner::Reason> reasons;
};
using ExplanationPointer = std::shared_ptr<const Explanation>;

} // namespace shardscope::app
