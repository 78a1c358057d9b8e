// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/work/Simulating.h"

#include "planner/timeline/Timeline.h"

#include <QMetaObject>

namespace shardscope::app {

namespace {

/// Memory is sampled finely enough for a screen of 4,000 pixels zoomed in eight times.
constexpr std::size_t kMemoryWindows = std::size_t{1} << 15;

} // namespace

StepPicturePointer stepPictureOf(const planner::PlanResultPointer& plan, const std::stop_token& stop) {
    auto picture = std::make_shared<StepPicture>();
    picture->plan = plan;
    const auto fail = [&picture](const contract::Error& error) {
        picture->error = QString::fromStdString(error.message);
        return picture;
    };
    const auto step = planner::planStep(*plan);
    if (!step)
        return fail(step.error());
    if (stop.stop_requested())
        return nullptr;
    const auto timeline = planner::simulate(*step);
    if (!timeline)
        return fail(timeline.error());
    if (stop.stop_requested())
        return nullptr;
    picture->stepPicoseconds = timeline->stepPicoseconds;
    picture->exposedPicoseconds = timeline->exposedPicoseconds;
    picture->additiveSeconds = plan->stepSeconds;
    picture->lanes = makeLanes(timeline->intervals);
    picture->bands = makeBands(planner::sampleMemory(timeline->memory, timeline->stepPicoseconds, kMemoryWindows));
    picture->peakInUseBytes = timeline->memory.peakBytes;
    picture->peakPicoseconds = timeline->memory.peakPicoseconds;
    return picture;
}

Simulating::Simulating(QObject* parent) : QObject(parent) {}

void Simulating::simulate(const planner::PlanResultPointer& plan) {
    const std::uint64_t generation = ++m_simulation;
    m_isSimulating = plan && plan->feasible;
    if (!m_isSimulating) {
        m_simulator.cancel();
        return;
    }
    m_simulator.submit([this, plan, generation](const std::stop_token& stop) {
        const StepPicturePointer picture = stepPictureOf(plan, stop);
        if (!picture || stop.stop_requested())
            return;
        QMetaObject::invokeMethod(
            this,
            [this, picture, generation] {
                if (generation != m_simulation)
                    return;
                m_isSimulating = false;
                Q_EMIT simulated(picture);
            },
            Qt::QueuedConnection);
    });
}

void Simulating::compare(const planner::PlanResultPointer& a, const planner::PlanResultPointer& b,
                         const QString& bName) {
    const std::uint64_t generation = ++m_comparison;
    if (!a || !b || !a->feasible || !b->feasible) {
        m_comparer.cancel();
        return;
    }
    m_comparer.submit([this, a, b, bName, generation](const std::stop_token& stop) {
        auto comparison = std::make_shared<StepComparison>();
        comparison->a = a;
        comparison->b = b;
        comparison->bName = bName;
        const auto left = planner::planStep(*a), right = planner::planStep(*b);
        if (!left || !right) {
            comparison->error = QString::fromStdString((left ? right : left).error().message);
        } else if (auto diff = planner::comparePlans(*left, *right)) {
            comparison->diff = std::move(*diff);
        } else {
            comparison->error = QString::fromStdString(diff.error().message);
        }
        if (stop.stop_requested())
            return;
        QMetaObject::invokeMethod(
            this,
            [this, comparison, generation] {
                if (generation == m_comparison)
                    Q_EMIT compared(comparison);
            },
            Qt::QueuedConnection);
    });
}

} // namespace shardscope::app
