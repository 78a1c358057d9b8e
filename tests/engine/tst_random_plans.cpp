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
    if (below(3) > 0) // few, some or as many as there are tokens
        recipe.lossChunks = 1 + below(static_cast<int>(below(2) == 0 ? 6 : recipe.microBatch * recipe.sequence));
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
    QString text = QString("%1 ranks, micro-batch %2 x %3, prefetch %4, %5 loss chunks:")
                       .arg(plan.parallel.data)
                       .arg(plan.training.microBatch)
                       .arg(plan.training.accumulate)
                       .arg(plan.prefetchDepth)
                       .arg(plan.training.lossChunks);
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
    void trainingIsThatOfOneRank_data() { addPlans(); }
    void trainingIsThatOfOneRank();
    void weightsAreThoseOfOneRank_data() { addPlans(); }
    void weightsAreThoseOfOneRank();

private:
    static void addPlans();
    /// Trains the plan of the current row and holds losses and gradient norms against one rank's.
    void compare(PlanRecipe alone, bool withWeights);

    struct Trained {
        std::vector<engine::StepOutcome> outcomes;
        testing::WeightMap weights;
    };
    static Trained train(const contract::Plan& plan, bool withWeights);
    std::map<QString, Trained> m_references;
};

void RandomPlanTest::addPlans() {
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

RandomPlanTest::Trained RandomPlanTest::train(const contract::Plan& plan, bool withWeights) {
    Trained trained;
    constexpr std::uint64_t kSeed = 7;
    trained.outcomes = withWeights ? testing::trainOutcomes(plan, kSteps, kSeed, trained.weights)
                                   : testing::trainOutcomes(plan, kSteps, kSeed);
    return trained;
}

void RandomPlanTest::trainingIsThatOfOneRank() {
    compare({}, false);
}

/// Adam amplifies the rounding noise of gradients that are zero in exact arithmetic, such as those of key biases; SGD
/// does not, so that the weights can be compared too.
void RandomPlanTest::weightsAreThoseOfOneRank() {
    PlanRecipe alone;
    alone.precision = "fp32-sgd-momentum";
    alone.learningRate = 0.01; // far from where training amplifies rounding itself
    compare(alone, true);
}

void RandomPlanTest::compare(PlanRecipe alone, bool withWeights) {
    QFETCH(const QString, family);
    QFETCH(const int, ranks);
    QFETCH(const int, seed);
    alone.architecture = family == "gpt2" ? testing::oddGpt2() : testing::oddLlama(family.toStdString());
    std::mt19937 random(static_cast<unsigned>(seed * 8 + ranks));
    PlanRecipe recipe = randomRecipe(random, alone.architecture, ranks);
    recipe.precision = alone.precision;
    recipe.learningRate = alone.learningRate;
    const contract::Plan plan = testing::makePlan(recipe);
    Trained& reference = m_references[family + (withWeights ? " with weights" : "")];
    if (reference.outcomes.empty()) {
        alone.microBatch = kGlobalBatch;
        reference = train(testing::makePlan(alone), withWeights);
    }
    const Trained trained = train(plan, withWeights);
    const auto& outcomes = trained.outcomes;
    QVERIFY2(outcomes.size() == reference.outcomes.size() && !outcomes.empty(), qPrintable(describe(plan)));
    for (std::size_t i = 0; i < outcomes.size(); ++i) {
        const auto check = [&](const char* what, double got, double expected) {
            QVERIFY2(std::abs(got - expected) / expected < 1e-5, qPrintable(QString("%1 of step %2: %3, not %4; %5")
                                                                                .arg(what)
                                                                                .arg(i + 1)
                                                                                .arg(got, 0, 'g', 9)
                                                                                .arg(expected, 0, 'g', 9)
                                                                                .arg(describe(plan))));
        };
        check("loss", outcomes[i].loss, reference.outcomes[i].loss);
        check("gradient norm", outcomes[i].gradientNorm, reference.outcomes[i].gradientNorm);
    }
    QVERIFY(!withWeights || (!trained.weights.empty() && trained.weights.size() == reference.weights.size()));
    for (const auto& [name, values] : reference.weights) {
        const std::vector<float>& got = trained.weights.at(name);
        QCOMPARE(got.size(), values.size());
        double largest = 0.01; // what starts at zero may still be nothing but rounding noise
        double worst = 0;
        for (std::size_t i = 0; i < values.size(); ++i) {
            largest = std::max(largest, std::abs(static_cast<double>(values[i])));
            worst = std::max(worst, std::abs(static_cast<double>(got[i]) - static_cast<double>(values[i])));
        }
        QVERIFY2(worst < 1e-5 * largest, qPrintable(QString("%1: differs by %2 with values up to %3; %4")
                                                        .arg(QString::fromStdString(name))
                                                        .arg(worst)
                                                        .arg(largest)
                                                        .arg(describe(plan))));
    }
}

QTEST_GUILESS_MAIN(RandomPlanTest)
#include "tst_random_plans.moc"
