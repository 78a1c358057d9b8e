// SPDX-License-Identifier: GPL-3.0-or-later
#include "engine/support/TrainingFixture.h"

#include <QtTest/QtTest>

#include <cmath>
#include <map>
#include <random>
#include <utility>

using namespace shardscope;
using shardscope::testing::PlanRecipe;

namespace {

constexpr std::int64_t kSteps = 20;
constexpr std::int64_t kGlobalBatch = 12;

/// Any plan that the planner could write for these ranks, and some it would not.
PlanRecipe randomRecipe(std::mt19937& random, const contract::Architecture& architecture, std::int64_t ranks) {
    const auto below = [&](int n) { return std::uniform_int_distribution<int>(0, n - 1)(random); };
    PlanRecipe recipe;
    recipe.architecture = architecture;
    recipe.ranks = ranks;
    const std::int64_t perRank = kGlobalBatch / ranks;
    do
        recipe.accumulate = 1 + below(static_cast<int>(perRank));
    while (perRank % recipe.accumulate != 0);
    recipe.microBatch = perRank / recipe.accumulate;
    recipe.prefetch = below(3);
    recipe.devicesPerNode = ranks == 4 && below(2) == 0 ? 2 : 0;
    recipe.coalesce = below(2) == 0;
    const bool onlySimple = below(2) == 0; // splits keep a block from being coalesced
    std::vector<std::string> placements;
    for (int i = 0; i < 64; ++i) {
        static const char* const kKinds[] = {"replicate", "keep", "keep-held", "shard", "shard:"};
        std::string text = kKinds[below(onlySimple ? 4 : 5)];
        if (text == "shard:") {
            const int slices = 2 + below(5);
            text += std::to_string(slices) + ":" + std::to_string(1 + below(slices));
        }
        if (text != "replicate" && recipe.devicesPerNode > 0 && below(2) == 0)
            text += "@node";
        placements.push_back(std::move(text));
    }
    recipe.placement = [placements](int index, const std::string&) {
        return placements[static_cast<std::size_t>(index) % placements.size()];
    };
    const int recomputed = below(4);
    recipe.recomputesBlock = [recomputed](std::int32_t block) { return (recomputed >> block & 1) != 0; };
    return recipe;
}

/// The plan in words, to reproduce a failure.
QString describe(const contract::Plan& plan) {
    QString text = QString("%1 ranks, micro-batch %2 x %3, prefetch %4:")
                       .arg(plan.parallel.data)
                       .arg(plan.training.microBatch)
                       .arg(plan.training.accumulate)
                       .arg(plan.prefetchDepth);
    for (const contract::PlanOperator& op : plan.operators)
        text +=
            QString(" %1=%2%3%4")
                .arg(QString::fromStdString(op.name), QString::fromStdString(contract::formatPlacement(op.placement)),
                     op.recompute ? ",recomputed" : "", op.coalesced ? ",coalesced" : "");
    return text;
}

} // namespace

/// Any plan trains as one rank with everything in place does. SHARDSCOPE_RANDOM_PLANS sets how many are tried for each
/// number of ranks and kind of network.
class RandomPlanTest : public QObject {
    Q_OBJECT

private Q_SLOTS:
    void trainingIsThatOfOneRank_data();
    void trainingIsThatOfOneRank();

private:
    std::map<QString, std::vector<engine::StepOutcome>> m_references;
};

void RandomPlanTest::trainingIsThatOfOneRank_data() {
    QTest::addColumn<QString>("family");
    QTest::addColumn<int>("ranks");
    QTest::addColumn<int>("seed");
    bool given = false;
    const int wanted = qEnvironmentVariableIntValue("SHARDSCOPE_RANDOM_PLANS", &given);
    for (int seed = 0; seed < (given ? wanted : 2); ++seed)
        for (const int ranks : {2, 3, 4})
            for (const char* kind : {"gpt2", "llama"}) {
                static const char* const kRelatives[] = {"llama", "qwen2", "qwen3"};
                const char* const family = qstrcmp(kind, "gpt2") == 0 ? kind : kRelatives[(seed + ranks) % 3];
                QTest::addRow("%s, %d ranks, plan %d", family, ranks, seed) << family << ranks << seed;
            }
}

void RandomPlanTest::trainingIsThatOfOneRank() {
    QFETCH(const QString, family);
    QFETCH(const int, ranks);
    QFETCH(const int, seed);
    const contract::Architecture architecture =
        family == "gpt2" ? testing::oddGpt2() : testing::oddLlama(family.toStdString());
    std::vector<engine::StepOutcome>& reference = m_references[family];
    if (reference.empty()) {
        PlanRecipe alone;
        alone.architecture = architecture;
        alone.microBatch = kGlobalBatch;
        reference = testing::trainOutcomes(testing::makePlan(alone), kSteps);
    }
    std::mt19937 random(static_cast<unsigned>(seed * 8 + ranks));
    const contract::Plan plan = testing::makePlan(randomRecipe(random, architecture, ranks));
    const auto outcomes = testing::trainOutcomes(plan, kSteps);
    QVERIFY2(outcomes.size() == reference.size() && !outcomes.empty(), qPrintable(describe(plan)));
    for (std::size_t i = 0; i < outcomes.size(); ++i) {
        const auto relative = [](double got, double expected) { return std::abs(got - expected) / expected; };
        QVERIFY2(relative(outcomes[i].loss, reference[i].loss) < 1e-5,
                 qPrintable(QString("loss of step %1: %2, not %3; %4")
                                .arg(i + 1)
                                .arg(outcomes[i].loss, 0, 'g', 9)
                                .arg(reference[i].loss, 0, 'g', 9)
                                .arg(describe(plan))));
        QVERIFY2(relative(outcomes[i].gradientNorm, reference[i].gradientNorm) < 1e-5,
                 qPrintable(QString("gradient norm of step %1: %2, not %3; %4")
                                .arg(i + 1)
                                .arg(outcomes[i].gradientNorm, 0, 'g', 9)
                                .arg(reference[i].gradientNorm, 0, 'g', 9)
                                .arg(describe(plan))));
    }
}

QTEST_GUILESS_MAIN(RandomPlanTest)
#include "tst_random_plans.moc"
