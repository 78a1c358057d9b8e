// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/work/Planning.h"

#include <QMetaObject>

namespace shardscope::app {

namespace {

/// Of each plan that only surrounds the one asked for.
constexpr double kEachSeconds = 0.25;
/// Of each well-known policy under the budget asked for: the gain over it is shown, so it gets a fair chance.
constexpr double kPolicySeconds = 2;
/// Of each plan that a session kept.
constexpr double kKeptSeconds = 5;
constexpr std::int32_t kCoarsePoints = 24;
constexpr std::int32_t kFinePoints = 120;

} // namespace

Planning::Planning(QObject* parent) : QObject(parent) {}
Planning::~Planning() = default;

void Planning::setBusy(bool busy) {
    if (m_busy == busy)
        return;
    m_busy = busy;
    Q_EMIT busyChanged(busy);
}

void Planning::ask(const ChoicesPointer& choices, bool hurried) {
    if (!m_asked || !m_asked->asksTheSame(*choices)) {
        ++m_revision;
        m_frontier.cancel();
    }
    m_asked = choices;
    ++m_generation;
    setBusy(true);
    m_solver.submit([this, choices, generation = m_generation, revision = m_revision,
                     hurried](const std::stop_token& stop) { solve(choices, generation, revision, hurried, stop); });
}

void Planning::solve(const ChoicesPointer& choices, std::uint64_t generation, std::uint64_t revision, bool hurried,
                     const std::stop_token& stop) {
    if (revision != m_plannerRevision) {
        m_plannerRevision = revision;
        m_planner = nullptr;
        m_plannerError.clear();
        const auto request = choices->request();
        if (!request) {
            m_plannerError = QString::fromStdString(request.error().message);
        } else if (auto planner = planner::Planner::create(*request)) {
            m_planner = *planner;
        } else {
            m_plannerError = QString::fromStdString(planner.error().message);
        }
    }
    const auto post = [&](planner::PlanResultPointer plan, bool isFinal) {
        auto answer = std::make_shared<Answer>();
        answer->generation = generation;
        answer->revision = revision;
        answer->choices = choices;
        answer->planner = m_planner;
        answer->plan = std::move(plan);
        answer->error = m_plannerError;
        answer->isFinal = isFinal;
        answer->isHurried = hurried;
        QMetaObject::invokeMethod(
            this, [this, answer] { takeAnswer(answer); }, Qt::QueuedConnection);
    };
    if (!m_planner) {
        post(nullptr, true);
        return;
    }
    // The first look takes a few milliseconds and is not stopped by newer questions: a drag that asks every few
    // milliseconds must still see answers.
    auto first = m_planner->solve(choices->budget(), planner::interactiveBudget());
    const bool isProven = !first->feasible || first->certificate.provenOptimal;
    if (!first->cancelled)
        post(first, isProven || hurried);
    if (isProven || hurried || stop.stop_requested())
        return;
    // The proof takes as long as it takes; the next question stops it.
    planner::SearchBudget unlimited;
    unlimited.stop = stop;
    auto second = m_planner->solve(choices->budget(), unlimited);
    if (!second->cancelled && !stop.stop_requested())
        post(second, true);
}

void Planning::takeAnswer(const AnswerPointer& answer) {
    // An answer to an older budget of the same question is still shown during a drag; it is newer than what is shown.
    if (answer->revision != m_revision)
        return;
    const bool isNewest = answer->generation == m_generation;
    if (isNewest && answer->isFinal)
        setBusy(false);
    Q_EMIT answered(answer);
    if (!answer->planner)
        return;
    if (m_surroundedRevision != answer->revision)
        surround(answer);
    // The policies are compared once for a question: a proof rarely changes the plan, and the table rates each policy
    // against whatever is shown.
    if (isNewest && !answer->isHurried && answer->plan->feasible && m_comparedGeneration != answer->generation)
        compare(answer);
    if (isNewest && !answer->isHurried && answer->isFinal && !answer->plan->feasible)
        remedy(answer);
}

void Planning::remedy(const AnswerPointer& answer) {
    m_comparer.submit([this, answer](const std::stop_token& stop) {
        planner::SearchBudget budget;
        budget.stop = stop;
        budget.tolerance = 1e-3;
        budget.timeLimitSeconds = kEachSeconds;
        auto remedies = std::make_shared<Remedies>();
        remedies->generation = answer->generation;
        remedies->list = planner::findRemedies(answer->planner->request(), answer->plan->limitBytes, budget);
        if (stop.stop_requested())
            return;
        QMetaObject::invokeMethod(
            this,
            [this, remedies] {
                if (remedies->generation == m_generation)
                    Q_EMIT remedied(remedies);
            },
            Qt::QueuedConnection);
    });
}

void Planning::surround(const AnswerPointer& answer) {
    m_surroundedRevision = answer->revision;
    m_frontier.submit([this, answer](const std::stop_token& stop) {
        planner::SearchBudget budget;
        budget.stop = stop;
        budget.tolerance = 1e-3;
        budget.timeLimitSeconds = kEachSeconds;
        std::vector<planner::Baseline> baselines;
        for (const std::int32_t points : {kCoarsePoints, kFinePoints}) {
            auto surroundings = std::make_shared<Surroundings>();
            surroundings->revision = answer->revision;
            surroundings->isFinal = points == kFinePoints;
            const auto progress = [this, revision = answer->revision, points](double fraction) {
                if (points != kFinePoints)
                    return;
                QMetaObject::invokeMethod(
                    this,
                    [this, revision, fraction] {
                        if (revision == m_revision)
                            Q_EMIT frontierProgress(fraction);
                    },
                    Qt::QueuedConnection);
            };
            if (points == kFinePoints)
                baselines = planner::solveBaselines(answer->planner->request(), answer->choices->cardBytes(), budget);
            surroundings->frontier = answer->planner->frontier(points, budget, progress);
            surroundings->baselines = baselines;
            if (stop.stop_requested())
                return;
            QMetaObject::invokeMethod(
                this,
                [this, surroundings] {
                    if (surroundings->revision == m_revision)
                        Q_EMIT surrounded(surroundings);
                },
                Qt::QueuedConnection);
        }
    });
}

void Planning::compare(const AnswerPointer& answer) {
    m_comparedGeneration = answer->generation;
    m_comparer.submit([this, answer](const std::stop_token& stop) {
        planner::SearchBudget budget;
        budget.stop = stop;
        budget.tolerance = 1e-3;
        budget.timeLimitSeconds = kPolicySeconds;
        auto comparison = std::make_shared<Comparison>();
        comparison->generation = answer->generation;
        planner::PlanRequest other = answer->planner->request();
        other.granularity = other.granularity == planner::Granularity::Block ? planner::Granularity::Operator
                                                                             : planner::Granularity::Block;
        if (const auto planner = planner::Planner::create(other))
            comparison->otherGranularity = (*planner)->solve(answer->plan->limitBytes, budget);
        comparison->baselines = planner::solveBaselines(answer->planner->request(), answer->plan->limitBytes, budget);
        if (stop.stop_requested())
            return;
        QMetaObject::invokeMethod(
            this,
            [this, comparison] {
                if (comparison->generation == m_generation)
                    Q_EMIT compared(comparison);
            },
            Qt::QueuedConnection);
    });
}

void Planning::explain(const AnswerPointer& answer, std::int32_t op) {
    if (!answer || !answer->planner || !answer->plan || !answer->plan->feasible || op < 0)
        return;
    m_explainer.submit([this, answer, op](const std::stop_token& stop) {
        planner::SearchBudget budget;
        budget.stop = stop;
        budget.tolerance = 1e-3;
        budget.timeLimitSeconds = kEachSeconds;
        auto explanation = std::make_shared<Explanation>();
        explanation->generation = answer->generation;
        explanation->op = op;
        explanation->reasons = answer->planner->reasons(*answer->plan, op, budget);
        if (stop.stop_requested())
            return;
        QMetaObject::invokeMethod(
            this, [this, explanation] { Q_EMIT explained(explanation); }, Qt::QueuedConnection);
    });
}

void Planning::answerKept(const std::vector<KeptPlan>& kept) {
    if (kept.empty()) {
        m_keeper.cancel();
        return;
    }
    m_keeper.submit([this, kept](const std::stop_token& stop) {
        for (const KeptPlan& plan : kept) {
            const auto request = plan.choices->request();
            const auto planner = request ? planner::Planner::create(*request) : tl::unexpected(request.error());
            if (!planner)
                continue;
            planner::SearchBudget budget;
            budget.stop = stop;
            budget.timeLimitSeconds = kKeptSeconds;
            auto answer = std::make_shared<Answer>();
            answer->choices = plan.choices;
            answer->planner = *planner;
            answer->plan = (*planner)->solve(plan.choices->budget(), budget);
            answer->isFinal = true;
            if (stop.stop_requested())
                return;
            if (answer->plan->feasible)
                QMetaObject::invokeMethod(
                    this, [this, answer] { Q_EMIT keptAnswered(answer); }, Qt::QueuedConnection);
        }
    });
}

void Planning::askAllSharded(const AnswerPointer& answer) {
    if (!answer || !answer->planner)
        return;
    m_sharder.submit([this, answer](const std::stop_token& stop) {
        planner::PlanRequest request = answer->planner->request();
        request.allowReplicate = false;
        request.allowKeep = false;
        request.allowShard = true;
        request.slices = {1};
        request.pins.clear();
        const auto planner = planner::Planner::create(request);
        if (!planner)
            return;
        auto plan = (*planner)->solve(answer->choices->budget(), planner::interactiveBudget());
        if (stop.stop_requested() || !plan->feasible)
            return;
        auto sharded = std::make_shared<Answer>();
        sharded->generation = answer->generation;
        sharded->revision = answer->revision;
        sharded->choices = answer->choices;
        sharded->planner = *planner;
        sharded->plan = plan;
        sharded->isFinal = true;
        QMetaObject::invokeMethod(
            this, [this, sharded] { Q_EMIT allShardedAnswered(sharded); }, Qt::QueuedConnection);
    });
}

} // namespace shardscope::app
