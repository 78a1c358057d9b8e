// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "app/layout/LaneBars.h"
#include "app/layout/MemoryBands.h"
#include "app/work/Answer.h"
#include "app/work/LatestWins.h"
#include "app/work/Reviewing.h"
#include "planner/timeline/PlanDiff.h"

#include <QObject>

#include <algorithm>
#include <array>
#include <stop_token>

namespace shardscope::app {

/// One simulated step of a plan, ready to be drawn. Immutable.
struct StepPicture {
    planner::PlanResultPointer plan;
    QString error; ///< why there is no timeline, then the rest is empty
    std::int64_t stepPicoseconds = 0;
    std::int64_t exposedPicoseconds = 0;
    double additiveSeconds = 0; ///< what the search minimises, for the same step
    std::array<Lane, 2> lanes;  ///< compute, communication
    std::vector<MemoryBand> bands;
    std::int64_t peakInUseBytes = 0;
    std::int64_t peakPicoseconds = 0;
    RunReviewPointer measured; ///< of a run of the same plan; null without one

    /// The longer of the steps shown: what charts call the whole step.
    std::int64_t spanPicoseconds() const {
        return measured ? std::max(stepPicoseconds, measured->endPicoseconds) : stepPicoseconds;
    }
};
using StepPicturePointer = std::shared_ptr<const StepPicture>;

/// Simulates the step of a feasible plan; tens of milliseconds, on a thread. Null when stopped.
StepPicturePointer stepPictureOf(const planner::PlanResultPointer& plan, const std::stop_token& stop);

/// Two plans' steps side by side. Immutable.
struct StepComparison {
    planner::PlanResultPointer a, b;
    QString bName;
    QString error;
    planner::PlanDiff diff;
};
using StepComparisonPointer = std::shared_ptr<const StepComparison>;

/// Simulates and compares steps on threads of its own; signals arrive on the thread this lives on, and only for the
/// newest question.
class Simulating : public QObject {
    Q_OBJECT
public:
    explicit Simulating(QObject* parent = nullptr);

    /// Answered by simulated(). A null or infeasible plan asks for nothing and drops what is on its way.
    void simulate(const planner::PlanResultPointer& plan);
    /// Answered by compared().
    void compare(const planner::PlanResultPointer& a, const planner::PlanResultPointer& b, const QString& bName);
    bool isSimulating() const { return m_isSimulating; }

Q_SIGNALS:
    void simulated(const shardscope::app::StepPicturePointer& picture);
    void compared(const shardscope::app::StepComparisonPointer& comparison);

private:
    std::uint64_t m_simulation = 0;
    std::uint64_t m_comparison = 0;
    bool m_isSimulating = false;
    LatestWins m_simulator;
    LatestWins m_comparer;
};

} // namespace shardscope::app
