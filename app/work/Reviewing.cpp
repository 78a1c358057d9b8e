// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/work/Reviewing.h"

#include "planner/timeline/PlannedStep.h"
#include "planner/timeline/Timeline.h"

#include <QMetaObject>

#include <algorithm>
#include <cmath>
#include <optional>
#include <unordered_map>
#include <utility>

namespace shardscope::app {

namespace {

constexpr double kPicosecondsPerSecond = 1e12;

std::optional<contract::StepCode> codeOf(const std::string& name) {
    using contract::StepCode;
    for (const StepCode code : {StepCode::Load, StepCode::Gather, StepCode::Forward, StepCode::Loss,
                                StepCode::Recompute, StepCode::Backward, StepCode::ReduceScatter, StepCode::AllReduce,
                                StepCode::Clip, StepCode::Update, StepCode::GatherUpdated, StepCode::Finish})
        if (name == contract::stepCodeName(code))
            return code;
    return std::nullopt;
}

/// The trace on the clock of its step. What a later version writes and this one does not know is left out.
std::vector<planner::Interval> intervalsOf(const std::vector<contract::OperatorEvent>& trace,
                                           const std::vector<contract::PlanOperator>& operators) {
    std::unordered_map<std::string, std::int32_t> byName;
    for (std::size_t i = 0; i < operators.size(); ++i)
        byName.emplace(operators[i].name, static_cast<std::int32_t>(i));
    double start = std::numeric_limits<double>::infinity();
    for (const contract::OperatorEvent& event : trace)
        start = std::min(start, event.start);
    std::vector<planner::Interval> intervals;
    for (const contract::OperatorEvent& event : trace) {
        const auto code = codeOf(event.phase);
        const double begin = (event.start - start) * kPicosecondsPerSecond;
        const double end = (event.end - start) * kPicosecondsPerSecond;
        constexpr double kLargest = 9e18; // of 64 bits
        if (!code || !(end >= begin) || !(end < kLargest))
            continue;
        planner::Interval interval;
        interval.stream = event.stream == "communication" ? planner::Stream::Communication : planner::Stream::Compute;
        interval.phase = *code;
        const auto op = byName.find(event.name);
        interval.op = op == byName.end() ? -1 : op->second;
        interval.begin = static_cast<std::int64_t>(begin);
        interval.end = static_cast<std::int64_t>(end);
        intervals.push_back(interval);
    }
    return intervals;
}

double busy(const Lane& lane) {
    return lane.busyBefore.empty() ? 0 : planner::toSeconds(lane.busyBefore.back());
}

double ratioOf(const Lane& measured, const Lane& predicted) {
    return busy(predicted) > 0 && busy(measured) > 0 ? busy(measured) / busy(predicted) : 1;
}

} // namespace

bool isPlanOf(const RunReview& review, const planner::PlanResult& plan) {
    contract::Training training = plan.training;
    training.optimizer = review.plan.training.optimizer; // its learning rate is chosen for the run
    const auto& graph = plan.request.graph;
    if (!plan.feasible || !graph || graph->name != review.plan.graph.name || training != review.plan.training ||
        plan.request.cluster.devices() != review.plan.cluster.devices() ||
        plan.operators.size() != review.plan.operators.size())
        return false;
    return std::equal(plan.operators.begin(), plan.operators.end(), review.plan.operators.begin(),
                      [&](const planner::PlannedOperator& ours, const contract::PlanOperator& theirs) {
                          return ours.placement == theirs.placement && ours.recompute == theirs.recompute &&
                                 ours.coalesced == theirs.coalesced &&
                                 graph->operators[static_cast<std::size_t>(ours.op)].name == theirs.name;
                      });
}

Reviewing::Reviewing(QObject* parent) : QObject(parent) {}

void Reviewing::review(const QString& runDirectory, const RunRecord& record) {
    if (runDirectory != m_runDirectory) {
        m_runDirectory = runDirectory;
        m_step = 0;
        m_newest = nullptr;
        m_worker.cancel();
    }
    if (record.trace().empty() || record.traceStep() == m_step)
        return;
    m_step = record.traceStep();
    m_worker.submit([this, runDirectory, step = m_step, trace = record.trace()](const std::stop_token& stop) {
        const std::string file = (runDirectory + QStringLiteral("/plan.json")).toStdString();
        auto plan = contract::readPlanFile(file);
        if (!plan || stop.stop_requested())
            return;
        const auto planned = planner::planStep(*plan, file);
        if (!planned || stop.stop_requested())
            return;
        const auto timeline = planner::simulate(*planned);
        if (!timeline || stop.stop_requested())
            return;
        auto review = std::make_shared<RunReview>();
        review->runDirectory = runDirectory;
        review->step = step;
        review->lanes = makeLanes(intervalsOf(trace, plan->operators));
        for (const Lane& lane : review->lanes)
            for (const planner::Interval& interval : lane.intervals)
                review->endPicoseconds = std::max(review->endPicoseconds, interval.end);
        const std::array<Lane, 2> predicted = makeLanes(timeline->intervals);
        review->ratio = {ratioOf(review->lanes[0], predicted[0]), ratioOf(review->lanes[1], predicted[1])};
        review->plan = std::move(*plan);
        QMetaObject::invokeMethod(
            this,
            [this, review = RunReviewPointer(review)] {
                if (review->runDirectory != m_runDirectory || review->step != m_step)
                    return;
                m_newest = review;
                Q_EMIT reviewed(review);
            },
            Qt::QueuedConnection);
    });
}

} // namespace shardscope::app
