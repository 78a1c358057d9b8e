// SPDX-License-Identifier: GPL-3.0-or-later
#include "engine/support/TrainingFixture.h"

#include <QtTest/QtTest>

#include <cmath>
#include <string>
#include <vector>

using namespace shardscope;
using shardscope::testing::PlanRecipe;

/// The gradient of the whole network is the slope of its loss.
class NetworkTest : public QObject {
    Q_OBJECT

private Q_SLOTS:
    void gradientsAreSlopes_data();
    void gradientsAreSlopes();
    void startDoesNotDependOnPlacement();
};

void NetworkTest::gradientsAreSlopes_data() {
    QTest::addColumn<QString>("family");
    QTest::addColumn<bool>("tied");
    QTest::addColumn<bool>("recompute");
    QTest::newRow("gpt2, tied head") << "gpt2" << true << false;
    QTest::newRow("gpt2, own head, recomputed") << "gpt2" << false << true;
    QTest::newRow("llama, own head") << "llama" << false << false;
    QTest::newRow("qwen2, tied head, recomputed") << "qwen2" << true << true;
    QTest::newRow("qwen3, tied head") << "qwen3" << true << false;
}

void NetworkTest::gradientsAreSlopes() {
    QFETCH(const QString, family);
    QFETCH(const bool, tied);
    QFETCH(const bool, recompute);
    PlanRecipe recipe;
    if (family != "gpt2")
        recipe.architecture = testing::oddLlama(family.toStdString());
    recipe.architecture.tied = tied;
    recipe.microBatch = 2;
    recipe.recompute = recompute;
    contract::Plan plan = testing::makePlan(recipe);
    plan.training.optimizer.learningRate = 0; // steps measure the loss and leave the weights alone
    plan.training.optimizer.warmupSteps = 0;
    const auto done = testing::runRanks(
        plan, 5, [](engine::Executor& executor, const engine::PlanSetup& setup) -> contract::Result<void> {
            const auto lossNow = [&]() -> double {
                const auto outcome = executor.runStep(1, 1, false, false);
                return outcome ? outcome->loss : std::nan("");
            };
            // Larger weights than at the start, so that every path of the network matters.
            for (std::int32_t op = 0; op < executor.layout().count(); ++op)
                for (std::size_t t = 0; t < setup.operators[static_cast<std::size_t>(op)].tensors.size(); ++t) {
                    const engine::TensorState& tensor = executor.layout().tensor(op, 0, t);
                    const bool scaled = !setup.operators[static_cast<std::size_t>(op)].isTied() && tensor.columns > 1;
                    for (std::int64_t i = 0; scaled && i < tensor.elements; ++i)
                        tensor.weight.floats()[i] *= 5.0F;
                }
            for (std::int32_t op = 0; op < executor.layout().count(); ++op) {
                const contract::Operator& record = setup.operators[static_cast<std::size_t>(op)];
                if (record.isTied())
                    continue;
                for (std::size_t t = 0; t < record.tensors.size(); ++t) {
                    lossNow();
                    const engine::TensorState& tensor = executor.layout().tensor(op, 0, t);
                    float* const memory = tensor.weight.floats();
                    const std::vector<float> gradient(tensor.gradient.floats(),
                                                      tensor.gradient.floats() + tensor.elements);
                    const std::vector<float> weight(memory, memory + tensor.elements);
                    double norm = 0;
                    for (const float g : gradient)
                        norm += static_cast<double>(g) * static_cast<double>(g);
                    norm = std::sqrt(norm);
                    // Along the gradient the slope is its length: the steepest direction shows every wrong element.
                    constexpr double kStep = 5e-3;
                    double losses[2];
                    for (const int side : {0, 1}) {
                        for (std::size_t i = 0; i < weight.size(); ++i)
                            memory[i] = weight[i] + static_cast<float>((side == 1 ? kStep : -kStep) *
                                                                       static_cast<double>(gradient[i]) / norm);
                        losses[side] = lossNow();
                    }
                    std::copy(weight.begin(), weight.end(), memory);
                    // Gradients are those of the sum of losses; two samples have two sums with three digits each, and
                    // the start of a third of which some digits fit.
                    std::int64_t counted = 0;
                    for (std::int64_t at = 0; at < setup.training.sequence; ++at)
                        counted += (at + 1) % 10 >= 6 && (at + 1) % 10 < 9 ? setup.training.globalBatch : 0;
                    const double slope = (losses[1] - losses[0]) / (2 * kStep) * static_cast<double>(counted);
                    if (!(std::abs(slope - norm) < 0.01 * norm + 0.02))
                        return contract::runFailed(record.name + "." + record.tensors[t].name + ": slope " +
                                                   std::to_string(slope) + ", gradient " + std::to_string(norm));
                }
            }
            return {};
        });
    QVERIFY2(done, done ? "" : done.error().message.c_str());
}

void NetworkTest::startDoesNotDependOnPlacement() {
    PlanRecipe whole;
    whole.microBatch = 2;
    PlanRecipe sharded = whole;
    sharded.ranks = 2;
    sharded.microBatch = 1;
    sharded.placement = [](int, const std::string&) { return std::string("shard:3:1"); };
    const auto a = testing::trainLosses(testing::makePlan(whole), 1);
    const auto b = testing::trainLosses(testing::makePlan(sharded), 1);
    QCOMPARE(a.size(), std::size_t{1});
    QVERIFY(std::abs(a[0] - b[0]) < 1e-6);
}

QTEST_GUILESS_MAIN(NetworkTest)
#include "tst_network.moc"
