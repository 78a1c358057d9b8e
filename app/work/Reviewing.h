// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "app/layout/LaneBars.h"
#include "app/run/RunRecord.h"
#include "app/work/LatestWins.h"
#include "planner/cluster/Recalibration.h"
#include "runtime/contract/Plan.h"

#include <QObject>
#include <QString>

#include <array>
#include <cstdint>
#include <memory>

namespace shardscope::app {

/// One traced step of a run beside what its plan says of it. Immutable.
struct RunReview {
    QString runDirectory;
    std::int64_t step = 0;     ///< which one was traced
    contract::Plan plan;       ///< the run's
    std::array<Lane, 2> lanes; ///< measured on rank 0: compute, communication; times since the step began
    std::int64_t endPicoseconds = 0;
    planner::BusyRatio ratio; ///< of the streams' busy times, measured over predicted; 1 where nothing was predicted
};
using RunReviewPointer = std::shared_ptr<const RunReview>;

/// Whether a plan decides and trains as the run's plan does, whatever was predicted for it.
bool isPlanOf(const RunReview& review, const planner::PlanResult& plan);

/// Reads a run's plan, simulates its step and lays the trace beside it, on a thread of its own.
class Reviewing : public QObject {
    Q_OBJECT
public:
    explicit Reviewing(QObject* parent = nullptr);
    /// Answered by reviewed() when the record has a trace that was not yet reviewed; a run whose plan cannot be read or
    /// simulated has no review.
    void review(const QString& runDirectory, const RunRecord& record);
    /// Of the newest trace; null while there is none.
    const RunReviewPointer& newest() const { return m_newest; }

Q_SIGNALS:
    void reviewed(const shardscope::app::RunReviewPointer& review);

private:
    QString m_runDirectory;
    std::int64_t m_step = 0;
    RunReviewPointer m_newest;
    LatestWins m_worker;
};

} // namespace shardscope::app
