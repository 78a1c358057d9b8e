// SPDX-License-Identifier: GPL-3.0-or-later
#include "engine/support/TrainingFixture.h"
#include "runtime/collective/KeyValueServer.h"
#include "runtime/contract/Json.h"
#include "runtime/execute/InitialWeights.h"

#include <QtCore/QDir>
#include <QtCore/QFile>
#include <QtCore/QProcess>
#include <QtCore/QTemporaryDir>
#include <QtTest/QtTest>
#include <nlohmann/json.hpp>

#include <cmath>
#include <thread>

using namespace shardscope;
using shardscope::testing::PlanRecipe;

namespace {

/// The rows of tests/pytorch/parity_fixtures.py.
class FixtureData final : public engine::Dataset {
public:
    FixtureData(std::int64_t sequence, std::int64_t vocabulary) : m_sequence(sequence), m_vocabulary(vocabulary) {}
    void trainingSample(std::int64_t step, std::int64_t index, std::int32_t* tokens,
                        std::int32_t* targets) const override {
        for (std::int64_t t = 0; t < m_sequence; ++t) {
            tokens[t] = token(step, index, t);
            targets[t] = token(step, index, t + 1);
        }
    }
    void heldOutSample(std::int64_t index, std::int32_t* tokens, std::int32_t* targets) const override {
        trainingSample(0, index, tokens, targets);
    }

private:
    std::int32_t token(std::int64_t step, std::int64_t sample, std::int64_t position) const {
        return static_cast<std::int32_t>((step * 31 + sample * 17 + position * position * 7 + step * position * 3) %
                                         m_vocabulary);
    }
    std::int64_t m_sequence;
    std::int64_t m_vocabulary;
};

struct Fixture {
    contract::Architecture architecture;
    contract::Optimizer optimizer;
    std::int64_t sequence = 0;
    std::int64_t batch = 0;
    std::vector<double> losses;
};

contract::Result<Fixture> readFixture(const std::string& path) {
    const auto document = contract::readJsonFile(path);
    if (!document)
        return tl::unexpected(document.error());
    const contract::JsonCursor root(*document, path);
    Fixture fixture;
    fixture.architecture = contract::readArchitecture(root.at("architecture"));
    const contract::JsonCursor optimizer = root.at("optimizer");
    fixture.optimizer.learningRate = optimizer.at("learning_rate").number();
    fixture.optimizer.betas = {optimizer.at("betas").element(0).number(), optimizer.at("betas").element(1).number()};
    fixture.optimizer.epsilon = optimizer.at("epsilon").number();
    fixture.optimizer.weightDecay = optimizer.at("weight_decay").number();
    fixture.optimizer.clipNorm = optimizer.at("clip_norm").number();
    fixture.optimizer.warmupSteps = 0;
    fixture.optimizer.schedule = "constant";
    fixture.sequence = root.at("sequence").integer();
    fixture.batch = root.at("batch").integer();
    const contract::JsonCursor losses = root.at("losses");
    for (std::size_t i = 0; i < losses.arraySize(1000) && !root.failed(); ++i)
        fixture.losses.push_back(losses.element(i).number());
    if (root.failed())
        return root.error();
    return fixture;
}

/// Losses of our runtime for the same network, weights, rows and optimizer on two ranks.
contract::Result<std::vector<double>> trainAlike(const Fixture& fixture, const std::string& weights) {
    PlanRecipe recipe;
    recipe.architecture = fixture.architecture;
    recipe.ranks = 2;
    recipe.sequence = fixture.sequence;
    recipe.microBatch = fixture.batch / 2;
    recipe.placement = [](int index, const std::string&) { return std::string(index % 2 == 0 ? "shard" : "keep"); };
    recipe.coalesce = true;
    contract::Plan plan = testing::makePlan(recipe);
    plan.training.optimizer = fixture.optimizer;
    const auto files = engine::WeightFiles::open(weights);
    if (!files)
        return tl::unexpected(files.error());
    const FixtureData data(fixture.sequence, fixture.architecture.vocabulary);
    std::vector<double> losses;
    const auto done = testing::runRanks(
        plan, 1,
        [&](engine::Executor& executor, const engine::PlanSetup& setup) -> contract::Result<void> {
            if (auto loaded = engine::loadInitialWeights(executor, setup, *files); !loaded)
                return loaded;
            const auto steps = static_cast<std::int64_t>(fixture.losses.size());
            for (std::int64_t step = 1; step <= steps; ++step) {
                const auto outcome = executor.runStep(step, steps, false, false);
                if (!outcome)
                    return tl::unexpected(outcome.error());
                if (executor.rank() == 0)
                    losses.push_back(outcome->loss);
            }
            return {};
        },
        &data);
    if (!done)
        return tl::unexpected(done.error());
    return losses;
}

} // namespace

/// The transformers library's networks, trained by PyTorch, lose what ours lose. The fixtures are committed; where
/// PyTorch is installed they are made again and compared too.
class PytorchParityTest : public QObject {
    Q_OBJECT

private Q_SLOTS:
    void lossesAreThoseOfPytorch_data();
    void lossesAreThoseOfPytorch();
    void fixturesAreThoseOfTheInstalledPytorch();

private:
    static void compare(const QString& folder, const QString& network);
};

void PytorchParityTest::lossesAreThoseOfPytorch_data() {
    QTest::addColumn<QString>("network");
    for (const char* network : {"gpt2", "llama-untied", "llama-tied"})
        QTest::newRow(network) << network;
}

void PytorchParityTest::compare(const QString& folder, const QString& network) {
    const auto fixture = readFixture((folder + "/" + network + ".json").toStdString());
    QVERIFY2(fixture, fixture ? "" : fixture.error().message.c_str());
    QCOMPARE(fixture->losses.size(), std::size_t{50});
    const auto losses = trainAlike(*fixture, (folder + "/" + network + ".safetensors").toStdString());
    QVERIFY2(losses, losses ? "" : losses.error().message.c_str());
    for (std::size_t i = 0; i < losses->size(); ++i)
        QVERIFY2(std::abs((*losses)[i] - fixture->losses[i]) < 1e-4,
                 qPrintable(QString("%1, step %2: %3, PyTorch %4")
                                .arg(network)
                                .arg(i + 1)
                                .arg((*losses)[i], 0, 'f', 7)
                                .arg(fixture->losses[i], 0, 'f', 7)));
}

void PytorchParityTest::lossesAreThoseOfPytorch() {
    QFETCH(const QString, network);
    compare(SHARDSCOPE_SOURCE_DIR "/tests/engine/data/pytorch", network);
}

void PytorchParityTest::fixturesAreThoseOfTheInstalledPytorch() {
    const QString python = qEnvironmentVariable("SHARDSCOPE_PYTHON", "python3");
    QProcess probe;
    probe.start(python, {"-c", "import torch, transformers, safetensors"});
    if (!probe.waitForFinished(120000) || probe.exitCode() != 0)
        QSKIP("PyTorch and transformers are not installed for python3 (SHARDSCOPE_PYTHON names another one)");
    const QTemporaryDir folder;
    QProcess script;
    script.start(python, {SHARDSCOPE_SOURCE_DIR "/tests/pytorch/parity_fixtures.py", folder.path()});
    QVERIFY(script.waitForFinished(500000));
    QVERIFY2(script.exitCode() == 0, script.readAllStandardError().constData());
    for (const char* network : {"gpt2", "llama-untied", "llama-tied"})
        compare(folder.path(), network);
}

QTEST_GUILESS_MAIN(PytorchParityTest)
#include "tst_pytorch_parity.moc"
