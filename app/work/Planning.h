// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "app/work/Answer.h"
#include "app/work/LatestWins.h"

#include <QObject>

namespace shardscope::app {

/// Asks the planner on threads of its own; signals arrive on the thread this lives on, and only for the newest
/// question.
class Planning : public QObject {
    Q_OBJECT
public:
    explicit Planning(QObject* parent = nullptr);
    ~Planning() override;

    /// Solves these choices: a plan with a certified gap within a few milliseconds, then, unless that was proven or a
    /// person drags (`hurried`), the proven plan as soon as there is one.
    void ask(const ChoicesPointer& choices, bool hurried);
    /// Why one operator of the answer is placed as it is; answered by explained().
    void explain(const AnswerPointer& answer, std::int32_t op);
    /// The answer for the same choices when everything is sharded, one unit per operator: answered by
    /// shardedAnswered().
    void askAllSharded(const AnswerPointer& answer);
    /// Finds a session's plans again, one after the other: each is answered by keptAnswered().
    void answerKept(const std::vector<KeptPlan>& kept);
    bool isBusy() const { return m_busy; }

Q_SIGNALS:
    void answered(const shardscope::app::AnswerPointer& answer);
    void surrounded(const shardscope::app::SurroundingsPointer& surroundings);
    void compared(const shardscope::app::ComparisonPointer& comparison);
    void remedied(const shardscope::app::RemediesPointer& remedies);
    void explained(const shardscope::app::ExplanationPointer& explanation);
    void allShardedAnswered(const shardscope::app::AnswerPointer& answer);
    void keptAnswered(const shardscope::app::AnswerPointer& answer);
    void busyChanged(bool busy);
    void frontierProgress(double fraction);

private:
    void solve(const ChoicesPointer& choices, std::uint64_t generation, std::uint64_t revision, bool hurried,
               const std::stop_token& stop);
    void takeAnswer(const AnswerPointer& answer);
    void surround(const AnswerPointer& answer);
    void compare(const AnswerPointer& answer);
    void remedy(const AnswerPointer& answer);
    void setBusy(bool busy);

    std::uint64_t m_generation = 0;
    std::uint64_t m_revision = 0;
    std::uint64_t m_surroundedRevision = 0;
    std::uint64_t m_comparedGeneration = 0;
    ChoicesPointer m_asked;
    bool m_busy = false;

    // Only used on the solver's thread.
    std::uint64_t m_plannerRevision = 0;
    PlannerPointer m_planner;
    QString m_plannerError;

    LatestWins m_solver;
    LatestWins m_frontier;
    LatestWins m_comparer;
    LatestWins m_explainer;
    LatestWins m_sharder;
    LatestWins m_keeper;
};

} // namespace shardscope::app
