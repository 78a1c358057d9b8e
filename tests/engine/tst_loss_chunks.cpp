// SPDX-License-Identifier: GPL-3.0-or-later
// A loss that is computed chunk by chunk of the tokens is that of all logits at once.
#include "engine/support/TrainingFixture.h"

#include <QtTest/QtTest>

#include <cmath>
#include <vector>

using namespace shardscope;
using shardscope::testing::PlanRecipe;

namespace {

constexpr std::int64_t kGlobalBatch = 6; // of 22 tokens: 132 on one rank, 66 on two, 44 on three
constexpr std::int64_t kSteps = 5;

/// One rank, everything in place, all logits at once.
PlanRecipe aloneOf(const QString& family) {
    PlanRecipe recipe;
    if (family != "gpt2")
        recipe.architecture = testing::oddLlama(family.toStdString());
    recipe.microBatch = kGlobalBatch;
    return recipe;
}

PlanRecipe chunkedOf(const QString& family, int ranks, const QString& placement, int chunks) {
    PlanRecipe recipe = aloneOf(family);
    recipe.ranks = ranks;
    recipe.microBatch = kGlobalBatch / ranks;
    recipe.lossChunks = chunks;
    recipe.placement = [placement](int index, const std::string&) {
        const QStringList turns = placement.split('+');
        return turns[index % turns.size()].toStdString();
    };
    return recipe;
}

bool isClose(double got, double expected) {
    return std::abs(got - expected) < 1e-5 * std::abs(expected);
}

/// What rank 0 evaluates after two steps, and the logits that follow a few positions.
struct Judged {
    engine::Evaluation evaluation;
    std::vector<std::vector<float>> logits;
};
contract::Result<Judged> judge(const PlanRecipe& recipe) {
    Judged judged;
    const auto done =
        testing::runRanks(testing::makePlan(recipe), 7,
                          [&](engine::Executor& executor, const engine::PlanSetup&) -> contract::Result<void> {
                              for (std::int64_t step = 1; step <= 2; ++step)
                                  if (auto ran = executor.runStep(step, 3, false, false); !ran)
                                      return tl::unexpected(ran.error());
                              const auto evaluation = executor.evaluate(11);
                              if (!evaluation)
                                  return tl::unexpected(evaluation.error());
                              std::vector<std::vector<float>> logits;
                              for (const std::int64_t position : {0, 9, 21}) {
                                  auto predicted = executor.predict(position);
                                  if (!predicted)
                                      return tl::unexpected(predicted.error());
                                  logits.push_back(std::move(*predicted));
                              }
                              if (auto ran = executor.runStep(3, 3, false, false); !ran) // training goes on after them
                                  return tl::unexpected(ran.error());
                              if (executor.rank() == 0)
                                  judged = {*evaluation, std::move(logits)};
                              return {};
                          });
    if (!done)
        return tl::unexpected(done.error());
    return judged;
}

} // namespace

class LossChunkTest : public QObject {
    Q_OBJECT

private Q_SLOTS:
    void trainingIsThatOfAllLogits_data();
    void trainingIsThatOfAllLogits();
    void weightsAreThoseOfAllLogits_data();
    void weightsAreThoseOfAllLogits();
    void evaluationAndPredictionsAreThoseOfAllLogits_data();
    void evaluationAndPredictionsAreThoseOfAllLogits();
    void logitsAreAsSmallAsPlanned_data();
    void logitsAreAsSmallAsPlanned();
    void moreChunksThanTokensAreRefused();
    void fewerTokensMakeFewerChunks();
};

void LossChunkTest::trainingIsThatOfAllLogits_data() {
    QTest::addColumn<QString>("family");
    QTest::addColumn<int>("ranks");
    QTest::addColumn<QString>("placement");
    QTest::addColumn<int>("chunks");
    const auto add = [](const char* family, int ranks, const char* placement, int chunks) {
        QTest::addRow("%s, %d ranks, %s, %d chunks", family, ranks, placement, chunks)
            << family << ranks << placement << chunks;
    };
    // The head is tied in gpt2, qwen2 and qwen3, and has weights of its own in llama.
    for (const char* family : {"gpt2", "llama", "qwen3"}) {
        add(family, 1, "replicate", 2);
        add(family, 1, "shard:3:2", 131); // of two tokens, but for the last
        add(family, 2, "shard", 3);
        add(family, 2, "keep", 7);
        add(family, 2, "shard:3:2", 5);
        add(family, 3, "keep-held", 44); // of one token
        add(family, 3, "shard:4", 13);
        add(family, 3, "shard+keep+replicate+shard:2", 5);
    }
}

void LossChunkTest::trainingIsThatOfAllLogits() {
    QFETCH(const QString, family);
    QFETCH(const int, ranks);
    QFETCH(const QString, placement);
    QFETCH(const int, chunks);
    const auto expected = testing::trainOutcomes(testing::makePlan(aloneOf(family)), kSteps);
    for (const bool recompute : {false, true}) {
        PlanRecipe recipe = chunkedOf(family, ranks, placement, chunks);
        recipe.recompute = recompute;
        if (recompute && recipe.microBatch % 2 == 0) {
            recipe.microBatch /= 2;
            recipe.accumulate = 2;
            recipe.lossChunks = std::min<std::int64_t>(chunks, recipe.microBatch * recipe.sequence);
        }
        const auto got = testing::trainOutcomes(testing::makePlan(recipe), kSteps);
        QCOMPARE(got.size(), expected.size());
        for (std::size_t i = 0; i < got.size(); ++i) {
            QVERIFY2(isClose(got[i].loss, expected[i].loss), qPrintable(QString("step %1: loss %2, not %3")
                                                                            .arg(i + 1)
                                                                            .arg(got[i].loss, 0, 'g', 9)
                                                                            .arg(expected[i].loss, 0, 'g', 9)));
            QVERIFY2(isClose(got[i].gradientNorm, expected[i].gradientNorm), qPrintable(QString::number(i + 1)));
        }
    }
}

void LossChunkTest::weightsAreThoseOfAllLogits_data() {
    QTest::addColumn<QString>("family");
    QTest::addColumn<int>("ranks");
    QTest::addColumn<QString>("placement");
    for (const char* family : {"gpt2", "llama", "qwen2"})
        for (const int ranks : {1, 2, 3})
            for (const char* placement : {"replicate", "shard", "shard:5:3"})
                QTest::addRow("%s, %d ranks, %s", family, ranks, placement) << family << ranks << placement;
}

void LossChunkTest::weightsAreThoseOfAllLogits() {
    QFETCH(const QString, family);
    QFETCH(const int, ranks);
    QFETCH(const QString, placement);
    const auto train = [](PlanRecipe recipe, testing::WeightMap& weights) {
        recipe.precision = "fp32-sgd-momentum"; // Adam amplifies rounding where gradients are next to nothing
        recipe.learningRate = 0.01;
        return testing::trainOutcomes(testing::makePlan(recipe), kSteps, 7, weights);
    };
    testing::WeightMap expected, got;
    QCOMPARE(train(aloneOf(family), expected).size(), static_cast<std::size_t>(kSteps));
    QCOMPARE(train(chunkedOf(family, ranks, placement, 7), got).size(), static_cast<std::size_t>(kSteps));
    QVERIFY(!expected.empty() && got.size() == expected.size());
    for (const auto& [name, values] : expected) {
        double largest = 0.01, worst = 0;
        for (std::size_t i = 0; i < values.size(); ++i) {
            largest = std::max(largest, std::abs(static_cast<double>(values[i])));
            worst = std::max(worst, std::abs(static_cast<double>(got.at(name)[i]) - static_cast<double>(values[i])));
        }
        QVERIFY2(worst < 1e-5 * largest, qPrintable(QString::fromStdString(name)));
    }
}

void LossChunkTest::evaluationAndPredictionsAreThoseOfAllLogits_data() {
    QTest::addColumn<QString>("family");
    QTest::addColumn<int>("ranks");
    QTest::addColumn<QString>("placement");
    QTest::addColumn<int>("chunks");
    for (const char* family : {"gpt2", "llama"}) {
        QTest::addRow("%s, 1 rank", family) << family << 1 << "replicate" << 9;
        QTest::addRow("%s, 2 ranks, sharded", family) << family << 2 << "shard" << 7;
        QTest::addRow("%s, 3 ranks, split", family) << family << 3 << "shard:3:2+shard:4" << 5;
    }
}

void LossChunkTest::evaluationAndPredictionsAreThoseOfAllLogits() {
    QFETCH(const QString, family);
    QFETCH(const int, ranks);
    QFETCH(const QString, placement);
    QFETCH(const int, chunks);
    const auto expected = judge(aloneOf(family));
    const auto got = judge(chunkedOf(family, ranks, placement, chunks));
    QVERIFY2(expected && got, !got ? got.error().message.c_str() : "");
    QVERIFY(isClose(got->evaluation.loss, expected->evaluation.loss));
    QVERIFY(expected->evaluation.answers.asked > 0);
    QCOMPARE(got->evaluation.answers.asked, expected->evaluation.answers.asked);
    QCOMPARE(got->evaluation.answers.right, expected->evaluation.answers.right);
    QCOMPARE(got->logits.size(), expected->logits.size());
    for (std::size_t p = 0; p < got->logits.size(); ++p) {
        QCOMPARE(got->logits[p].size(), expected->logits[p].size());
        for (std::size_t v = 0; v < got->logits[p].size(); ++v)
            QVERIFY(std::abs(got->logits[p][v] - expected->logits[p][v]) < 1e-4F);
    }
}

void LossChunkTest::logitsAreAsSmallAsPlanned_data() {
    QTest::addColumn<int>("chunks");
    QTest::addColumn<int>("tokens"); // whose logits exist
    QTest::newRow("whole") << 1 << 132;
    QTest::newRow("dividing") << 4 << 33;
    QTest::newRow("not dividing") << 5 << 27;
    QTest::newRow("token by token") << 132 << 1;
}

void LossChunkTest::logitsAreAsSmallAsPlanned() {
    QFETCH(const int, chunks);
    QFETCH(const int, tokens);
    const contract::Plan plan = testing::makePlan(chunkedOf("gpt2", 1, "replicate", chunks));
    const auto rowOf = [&](const char* name) {
        for (const contract::Buffer& row : plan.buffers.buffers)
            if (row.name == name)
                return row.bytes;
        return std::int64_t{-1};
    };
    const auto aligned = [](std::int64_t bytes) { return (bytes + 255) / 256 * 256; };
    QCOMPARE(rowOf("logits"), aligned(std::int64_t{tokens} * 259 * 4));
    QCOMPARE(rowOf("losses"), aligned(132 * 4 * (chunks > 1 ? 3 : 1)));
    QCOMPARE(plan.predicted.ledger[contract::Category::Logits], rowOf("logits") + rowOf("losses"));
}

void LossChunkTest::moreChunksThanTokensAreRefused() {
    contract::Plan plan = testing::makePlan(chunkedOf("gpt2", 3, "replicate", 44));
    QVERIFY(engine::preparePlan(plan, {}));
    plan.training.lossChunks = 45;
    const auto setup = engine::preparePlan(plan, {});
    QVERIFY(!setup);
    QCOMPARE(setup.error().kind, contract::ErrorKind::BadInput);
    QCOMPARE(setup.error().message,
             std::string("plan: training.loss_chunks is 45; a micro-batch of 2 x 22 tokens has at most 44 chunks"));
}

/// A plan that is run by more ranks than its own has smaller micro-batches.
void LossChunkTest::fewerTokensMakeFewerChunks() {
    const contract::Plan plan = testing::makePlan(chunkedOf("gpt2", 1, "replicate", 100));
    const auto setup = engine::preparePlan(plan, {3, {}});
    QVERIFY2(setup, setup ? "" : setup.error().message.c_str());
    QCOMPARE(setup->training.microBatch, 2);
    QCOMPARE(setup->training.lossChunks, 44);
}

QTEST_GUILESS_MAIN(LossChunkTest)
#include "tst_loss_chunks.moc"
