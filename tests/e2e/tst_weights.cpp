// SPDX-License-Identifier: GPL-3.0-or-later
#include "e2e/support/TrainerProcess.h"

#include <QtCore/QDir>
#include <QtCore/QFile>
#include <QtCore/QJsonDocument>
#include <QtCore/QJsonObject>
#include <QtCore/QRegularExpression>
#include <QtCore/QTemporaryDir>
#include <QtTest/QtTest>

#include <cmath>
#include <signal.h>

using namespace shardscope;
using shardscope::testing::PlanRecipe;
using shardscope::testing::TrainerProcess;

namespace {

contract::Plan planOf(const contract::Architecture& architecture, std::int64_t ranks) {
    PlanRecipe recipe;
    recipe.architecture = architecture;
    recipe.ranks = ranks;
    recipe.microBatch = 4 / ranks;
    recipe.placement = [](int, const std::string&) { return std::string("shard"); };
    return testing::makePlan(recipe);
}

} // namespace

/// What a run begins with, what it leaves, and what another number of workers makes of it.
class WeightsTest : public QObject {
    Q_OBJECT

private Q_SLOTS:
    void aRunBeginsWithGivenWeights_data();
    void aRunBeginsWithGivenWeights();
    void wrongWeightsAreRefusedBeforeTheStart();
    void textIsContinued();
    void aBookGoesOnWithFewerWorkers();

private:
    QString path(const QString& name) const { return m_folder.filePath(name); }
    QTemporaryDir m_folder;
};

void WeightsTest::aRunBeginsWithGivenWeights_data() {
    QTest::addColumn<bool>("llama");
    QTest::newRow("gpt2") << false;
    QTest::newRow("llama") << true;
}

/// A fresh run from the checkpoint of another seed's run begins where that one ended, not at random.
void WeightsTest::aRunBeginsWithGivenWeights() {
    QFETCH(const bool, llama);
    const QString name = llama ? "llama" : "gpt2";
    const contract::Architecture architecture = llama ? testing::oddLlama() : testing::oddGpt2();
    const QString plan = testing::writePlan(m_folder.path(), planOf(architecture, 2), name + ".json");
    const QStringList options{"run", plan, "--data", "builtin:addition", "--learning-rate", "0.01"};
    TrainerProcess first;
    QCOMPARE(first.run(options + QStringList{"--steps", "25", "--run-dir", path(name + "-first")}), 0);
    TrainerProcess second;
    QCOMPARE(second.run(options + QStringList{"--steps", "1", "--seed", "2", "--run-dir", path(name + "-second"),
                                              "--init", path(name + "-first/checkpoints/step-00000025")}),
             0);
    const double begin = first.all<contract::StepEvent>().front().loss;
    const double end = first.all<contract::StepEvent>().back().loss;
    const double again = second.all<contract::StepEvent>().front().loss;
    QVERIFY(end < 0.8 * begin);
    QVERIFY2(std::abs(again - end) < 0.1 * (begin - end), qPrintable(QString("%1 %2").arg(again).arg(end)));
}

void WeightsTest::wrongWeightsAreRefusedBeforeTheStart() {
    const QString plan = testing::writePlan(m_folder.path(), planOf(testing::oddGpt2(), 1), "odd.json");
    for (const QString& init : {path("nowhere"), plan}) {
        TrainerProcess trainer;
        QCOMPARE(trainer.run({"run", plan, "--data", "builtin:addition", "--init", init, "--run-dir", path("refused")}),
                 3);
        QVERIFY2(trainer.errors().contains(init), qPrintable(trainer.errors()));
        QVERIFY(!QDir(path("refused")).exists());
    }
}

void WeightsTest::textIsContinued() {
    const QString plan = testing::writePlan(m_folder.path(), planOf(testing::oddLlama("qwen3"), 2), "qwen3.json");
    QCOMPARE(TrainerProcess().run({"run", plan, "--data", "builtin:addition", "--learning-rate", "0.01", "--steps",
                                   "120", "--run-dir", path("sampled")}),
             0);
    const auto sampled = [&](const QString& prompt, const QString& temperature) {
        QProcess process;
        process.start(
            SHARDSCOPE_BIN_DIR "/shardscope-train",
            {"sample", path("sampled"), "--prompt", prompt, "--tokens", "30", "--temperature", temperature, "--json"});
        process.waitForFinished(60000);
        return QJsonDocument::fromJson(process.readAllStandardOutput()).object();
    };
    const QJsonObject greedy = sampled("12+34=", "0");
    QCOMPARE(greedy["step"].toInt(), 120);
    QCOMPARE(greedy["text"].toString().size(), 30);
    QCOMPARE(sampled("12+34=", "0"), greedy);
    // That an answer has three digits is learned first; only answers count in the loss.
    QVERIFY2(QRegularExpression("^[0-9]{3}").match(greedy["text"].toString()).hasMatch(),
             qPrintable(greedy["text"].toString()));
    QCOMPARE(sampled(QString("12+34=046;").repeated(5) + "1", "0.5")["text"].toString().size(), 30); // a long prompt

    QProcess empty;
    empty.start(SHARDSCOPE_BIN_DIR "/shardscope-train", {"sample", m_folder.path(), "--prompt", "x"});
    QVERIFY(empty.waitForFinished(60000));
    QCOMPARE(empty.exitCode(), 3);
    QVERIFY(empty.readAllStandardError().contains("plan.json"));
}

void WeightsTest::aBookGoesOnWithFewerWorkers() {
    const QString book = path("book");
    QVERIFY(QDir().mkpath(book));
    const QString plan = testing::writePlan(book, planOf(testing::oddGpt2(), 4), "plan-4.json");
    contract::Plan other = planOf(testing::oddGpt2(), 2); // another training: passed over
    other.training.globalBatch = 8;
    other.training.accumulate = 2;
    testing::writePlan(book, other, "plan-3.json");
    testing::writePlan(book, planOf(testing::oddGpt2(), 2), "plan-2.json");
    TrainerProcess trainer;
    trainer.start({"run", plan, "--book", book, "--max-restarts", "1", "--data", "builtin:addition", "--steps", "80",
                   "--checkpoint-every", "10", "--run-dir", path("booked")});
    QVERIFY(trainer.waitFor(
        [](const contract::Event& event) { return std::holds_alternative<contract::CheckpointEvent>(event.body); }));
    kill(static_cast<pid_t>(trainer.workerPids()[3]), SIGKILL);
    QCOMPARE(trainer.waitForEnd(), 0);
    const auto restarts = trainer.all<contract::RestartEvent>();
    QCOMPARE(restarts.size(), std::size_t{1});
    QCOMPARE(restarts.front().world, 2);
    QCOMPARE(trainer.all<contract::StepEvent>().back().step, std::int64_t{80});
    bool passedOver = false;
    for (const auto& log : trainer.all<contract::LogEvent>())
        passedOver = passedOver || log.message.find("plan-3.json: parallel.data is 2") != std::string::npos;
    QVERIFY(passedOver);
}

QTEST_GUILESS_MAIN(WeightsTest)
#include "tst_weights.moc"
