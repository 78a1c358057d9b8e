// SPDX-License-Identifier: GPL-3.0-or-later
#include "e2e/support/TrainerProcess.h"

#include <QtCore/QDir>
#include <QtCore/QFile>
#include <QtCore/QJsonArray>
#include <QtCore/QJsonDocument>
#include <QtCore/QJsonObject>
#include <QtCore/QTemporaryDir>
#include <QtTest/QtTest>

#include <cmath>
#include <signal.h>

using namespace shardscope;
using shardscope::testing::PlanRecipe;
using shardscope::testing::TrainerProcess;

namespace {

PlanRecipe recipeOf(std::int64_t ranks, const char* placement = "shard") {
    PlanRecipe recipe;
    recipe.ranks = ranks;
    recipe.microBatch = 8 / ranks;
    recipe.placement = [placement](int, const std::string&) { return std::string(placement); };
    return recipe;
}

QStringList arguments(const QString& plan, const QString& runDirectory, const QStringList& more) {
    return QStringList{"run", plan, "--data", "builtin:addition", "--run-dir", runDirectory, "--timeout", "30"} + more;
}

std::vector<double> lossesOf(const TrainerProcess& trainer) {
    std::vector<double> losses;
    for (const contract::StepEvent& step : trainer.all<contract::StepEvent>())
        losses.push_back(step.loss);
    return losses;
}

} // namespace

class TrainingTest : public QObject {
    Q_OBJECT

private Q_SLOTS:
    void telemetryTellsTheWholeRun();
    void showSaysHowTheGpusAre();
    void anotherNumberOfWorkersGivesTheSameLosses();
    void stoppedRunsResumeBitExactly();
    void workersStartUnderAnotherLauncher();
    void textIsReadAsBytes();
    void residentMemoryIsThePredicted();

private:
    QTemporaryDir m_folder;
};

void TrainingTest::telemetryTellsTheWholeRun() {
    const QString plan = testing::writePlan(m_folder.path(), testing::makePlan(recipeOf(2)));
    TrainerProcess trainer;
    QCOMPARE(trainer.run(arguments(plan, m_folder.filePath("whole"), {"--steps", "30"})), 0);
    QVERIFY2(trainer.strayLines().isEmpty(), qPrintable(trainer.strayLines().join('\n')));
    const auto& events = trainer.events();
    const auto* hello = std::get_if<contract::HelloEvent>(&events.front().body);
    QVERIFY(hello != nullptr);
    QCOMPARE(hello->world, 2);
    const auto* bye = std::get_if<contract::ByeEvent>(&events.back().body);
    QVERIFY(bye != nullptr);
    QCOMPARE(bye->status, std::string("done"));
    QCOMPARE(bye->steps, std::int64_t{30});
    QCOMPARE(trainer.all<contract::ReadyEvent>().size(), std::size_t{2});
    QCOMPARE(trainer.all<contract::MemoryEvent>().size(), std::size_t{2});
    for (const contract::MemoryEvent& memory : trainer.all<contract::MemoryEvent>())
        QCOMPARE(memory.allocated, memory.predicted);
    const auto steps = trainer.all<contract::StepEvent>();
    QCOMPARE(steps.size(), std::size_t{30});
    for (std::size_t i = 0; i < steps.size(); ++i)
        QCOMPARE(steps[i].step, static_cast<std::int64_t>(i + 1));
    QVERIFY(steps.back().loss < steps.front().loss);
    QCOMPARE(trainer.all<contract::EvaluationEvent>().size(), std::size_t{2}); // steps 25 and 30
    QVERIFY(trainer.all<contract::EvaluationEvent>().front().accuracy.has_value());
    QVERIFY(!trainer.all<contract::OperatorEvent>().empty());
    QCOMPARE(trainer.all<contract::CheckpointEvent>().size(), std::size_t{1});
    // The file says what the pipe said.
    QFile file(m_folder.filePath("whole/run.ndjson"));
    QVERIFY(file.open(QIODevice::ReadOnly));
    QCOMPARE(static_cast<std::size_t>(file.readAll().count('\n')), events.size());
    QVERIFY(QFile::exists(m_folder.filePath("whole/plan.json")));
    QProcess show;
    show.start(SHARDSCOPE_BIN_DIR "/shardscope-train", {"show", m_folder.filePath("whole")});
    QVERIFY(show.waitForFinished());
    QCOMPARE(show.exitCode(), 0);
    QVERIFY(show.readAllStandardOutput().contains("status    done"));
}

/// From the telemetry of a run that might have been.
void TrainingTest::showSaysHowTheGpusAre() {
    QVERIFY(QDir(m_folder.path()).mkpath("gpus"));
    QFile file(m_folder.filePath("gpus/run.ndjson"));
    QVERIFY(file.open(QIODevice::WriteOnly));
    contract::DeviceEvent early, late, unknown;
    early.utilization = 0.1;
    late.utilization = 0.97;
    late.powerWatts = 412.4;
    unknown.temperatureCelsius = 63;
    for (const contract::Event& event :
         {contract::Event{{0, -1, 0}, contract::HelloEvent{1, "ab", 2, "gpus", 1, 9}},
          contract::Event{{1, 0, 0}, early}, contract::Event{{2, 0, 1}, late}, contract::Event{{2, 1, 0}, unknown}})
        file.write(QByteArray::fromStdString(contract::formatEvent(event)) + "\n");
    file.close();
    const auto show = [&](const QStringList& options) {
        QProcess process;
        process.start(SHARDSCOPE_BIN_DIR "/shardscope-train", QStringList{"show", m_folder.filePath("gpus")} + options);
        process.waitForFinished();
        return process.readAllStandardOutput();
    };
    const QByteArray text = show({});
    QVERIFY2(text.contains("GPU of 0  97 % busy, 412 W\n") && text.contains("GPU of 1  63 °C\n"), text.constData());
    const QJsonArray devices = QJsonDocument::fromJson(show({"--json"})).object()["devices"].toArray();
    QCOMPARE(devices.size(), 2);
    QCOMPARE(devices[0].toObject()["utilization"].toDouble(), 0.97);
    QVERIFY(devices[1].toObject()["utilization"].isNull());
}

void TrainingTest::anotherNumberOfWorkersGivesTheSameLosses() {
    const QString plan = testing::writePlan(m_folder.path(), testing::makePlan(recipeOf(2)));
    TrainerProcess two;
    QCOMPARE(two.run(arguments(plan, m_folder.filePath("two"), {"--steps", "12"})), 0);
    TrainerProcess one;
    QCOMPARE(one.run(arguments(plan, m_folder.filePath("one"), {"--steps", "12", "--workers", "1"})), 0);
    QVERIFY(one.errors().contains("re-sized for 1 workers"));
    const auto a = lossesOf(two);
    const auto b = lossesOf(one);
    QCOMPARE(a.size(), std::size_t{12});
    QCOMPARE(b.size(), a.size());
    for (std::size_t i = 0; i < a.size(); ++i)
        QVERIFY(std::abs(a[i] - b[i]) < 1e-5 * a[i]);
}

void TrainingTest::stoppedRunsResumeBitExactly() {
    const QString plan = testing::writePlan(m_folder.path(), testing::makePlan(recipeOf(2)));
    const QStringList steps{"--steps", "400"};
    TrainerProcess whole;
    QCOMPARE(whole.run(arguments(plan, m_folder.filePath("uninterrupted"), steps)), 0);
    TrainerProcess first;
    first.start(arguments(plan, m_folder.filePath("stopped"), steps));
    QVERIFY(first.waitFor([](const contract::Event& event) {
        const auto* step = std::get_if<contract::StepEvent>(&event.body);
        return step != nullptr && step->step >= 5;
    }));
    kill(static_cast<pid_t>(first.pid()), SIGINT);
    QCOMPARE(first.waitForEnd(), 130);
    const auto bye = first.all<contract::ByeEvent>();
    QCOMPARE(bye.size(), std::size_t{1});
    QCOMPARE(bye.front().status, std::string("stopped"));
    QCOMPARE(first.all<contract::CheckpointEvent>().size(), std::size_t{1});
    QVERIFY(testing::waitUntilGone(first.workerPids()));
    TrainerProcess second;
    QCOMPARE(second.run(arguments(plan, m_folder.filePath("stopped"), steps + QStringList{"--resume"})), 0);
    std::vector<double> joined = lossesOf(first);
    for (const double loss : lossesOf(second))
        joined.push_back(loss);
    QCOMPARE(joined, lossesOf(whole));
}

void TrainingTest::workersStartUnderAnotherLauncher() {
    const QString plan = testing::writePlan(m_folder.path(), testing::makePlan(recipeOf(2)));
    const QString port = QString::number(testing::freePort());
    const QStringList call{"worker",  plan, "--data",    "builtin:addition",
                           "--steps", "5",  "--run-dir", m_folder.filePath("launched")};
    TrainerProcess one({"RANK=1", "WORLD_SIZE=2", "LOCAL_RANK=1", "MASTER_ADDR=127.0.0.1", "MASTER_PORT=" + port});
    one.start(call);
    TrainerProcess zero(
        {"SLURM_PROCID=0", "SLURM_NTASKS=2", "SLURM_LOCALID=0", "MASTER_ADDR=127.0.0.1", "MASTER_PORT=" + port});
    QCOMPARE(zero.run(call), 0);
    QCOMPARE(one.waitForEnd(), 0);
    QCOMPARE(lossesOf(zero).size(), std::size_t{5});
    QVERIFY(QFile::exists(m_folder.filePath("launched/run.ndjson")));
}

void TrainingTest::textIsReadAsBytes() {
    QDir(m_folder.path()).mkpath("text/inner");
    QFile text(m_folder.filePath("text/inner/a.txt"));
    QVERIFY(text.open(QIODevice::WriteOnly));
    for (int i = 0; i < 200; ++i)
        text.write("Les sanglots longs des violons de l'automne. ");
    text.close();
    const QString plan = testing::writePlan(m_folder.path(), testing::makePlan(recipeOf(1)));
    TrainerProcess trainer;
    QCOMPARE(trainer.run({"run", plan, "--data", m_folder.filePath("text"), "--steps", "20", "--run-dir",
                          m_folder.filePath("poem"), "--learning-rate", "0.01"}),
             0);
    QVERIFY(lossesOf(trainer).back() < 0.8 * lossesOf(trainer).front());
    QVERIFY(!trainer.all<contract::EvaluationEvent>().front().accuracy);
}

void TrainingTest::residentMemoryIsThePredicted() {
    PlanRecipe recipe;
    recipe.architecture.layers = 16;
    recipe.architecture.hidden = 512;
    recipe.architecture.heads = recipe.architecture.kvHeads = 8;
    recipe.architecture.headDim = 64;
    recipe.architecture.intermediate = 2048;
    recipe.architecture.vocabulary = 256;
    recipe.architecture.positions = 64;
    recipe.sequence = 64;
    const QString plan = testing::writePlan(m_folder.path(), testing::makePlan(recipe), "large.json");
    TrainerProcess trainer;
    trainer.start(arguments(plan, m_folder.filePath("large"), {"--steps", "1000"}));
    QVERIFY(trainer.waitFor(
        [](const contract::Event& event) { return std::holds_alternative<contract::MemoryEvent>(event.body); },
        120000));
    const contract::MemoryEvent memory = trainer.all<contract::MemoryEvent>().front();
    const auto predicted = static_cast<double>(memory.predicted.total());
    QVERIFY(predicted > 50e6 * 16); // 50 million parameters, 16 bytes each
    QVERIFY2(std::abs(static_cast<double>(memory.resident) - predicted) < 0.05 * predicted,
             qPrintable(QString("resident %1, predicted %2").arg(memory.resident).arg(predicted)));
    kill(static_cast<pid_t>(trainer.pid()), SIGINT);
    kill(static_cast<pid_t>(trainer.pid()), SIGINT);
    trainer.waitForEnd();
}

QTEST_GUILESS_MAIN(TrainingTest)
#include "tst_training.moc"
