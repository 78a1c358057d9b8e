// SPDX-License-Identifier: GPL-3.0-or-later
// Exported folders are loaded by the transformers library, which then loses what the run said it loses. The interpreter
// is SHARDSCOPE_PYTHON, else python3.
#include "e2e/support/PlanProcess.h"
#include "e2e/support/TrainerProcess.h"

#include <QtCore/QDir>
#include <QtCore/QFile>
#include <QtCore/QJsonArray>
#include <QtCore/QJsonDocument>
#include <QtCore/QJsonObject>
#include <QtCore/QTemporaryDir>
#include <QtTest/QtTest>

#include <cmath>

using namespace shardscope;
using shardscope::testing::TrainerProcess;

namespace {

const QString kScript = QStringLiteral(SHARDSCOPE_SOURCE_DIR "/tests/pytorch/load_export.py");

testing::Outcome python(const QStringList& arguments) {
    QProcess process;
    process.start(qEnvironmentVariable("SHARDSCOPE_PYTHON", "python3"), QStringList{kScript} + arguments);
    if (!process.waitForFinished(300000) || process.exitStatus() != QProcess::NormalExit)
        return {};
    return {process.exitCode(), process.readAllStandardOutput(), process.readAllStandardError()};
}

void writeIds(const QString& path, int count) {
    QFile file(path);
    QVERIFY(file.open(QIODevice::WriteOnly));
    for (int i = 0; i < count; ++i) {
        const auto id = static_cast<quint16>(i * i * 7 % 131);
        file.write(reinterpret_cast<const char*>(&id), sizeof id);
    }
}

} // namespace

class ExportPytorchTest : public QObject {
    Q_OBJECT

private Q_SLOTS:
    void initTestCase();
    void transformersLosesWhatTheRunLoses_data();
    void transformersLosesWhatTheRunLoses();
    void theTokenizerComesAlong();

private:
    QString path(const QString& name) const { return m_folder.filePath(name); }
    QTemporaryDir m_folder;
};

void ExportPytorchTest::initTestCase() {
    if (const testing::Outcome check = python({"--check"}); check.exitCode != 0)
        QSKIP(qPrintable("PyTorch and transformers are not installed for python3 (SHARDSCOPE_PYTHON names another "
                         "one): " +
                         QString::fromUtf8(check.errors).trimmed().section('\n', -1)));
    QVERIFY(QDir().mkpath(path("ids")));
    writeIds(path("ids/train.bin"), 5000);
    writeIds(path("ids/val.bin"), 23); // one window of the recipe's 22 tokens: the whole held-out part
}

void ExportPytorchTest::transformersLosesWhatTheRunLoses_data() {
    QTest::addColumn<QString>("family");
    QTest::addColumn<QString>("dtype");
    QTest::addColumn<QString>("name");
    QTest::newRow("gpt2, fp32") << "gpt2"
                                << "fp32"
                                << "GPT2LMHeadModel";
    QTest::newRow("gpt2, bf16") << "gpt2"
                                << "bf16"
                                << "GPT2LMHeadModel";
    QTest::newRow("llama, fp32") << "llama"
                                 << "fp32"
                                 << "LlamaForCausalLM";
    QTest::newRow("mistral, fp32") << "mistral"
                                   << "fp32"
                                   << "MistralForCausalLM";
    QTest::newRow("qwen2, fp32") << "qwen2"
                                 << "fp32"
                                 << "Qwen2ForCausalLM";
    QTest::newRow("qwen3, bf16") << "qwen3"
                                 << "bf16"
                                 << "Qwen3ForCausalLM";
}

void ExportPytorchTest::transformersLosesWhatTheRunLoses() {
    QFETCH(const QString, family);
    QFETCH(const QString, dtype);
    QFETCH(const QString, name);
    const testing::PlanRecipe recipe = testing::recipeOf(family.toStdString(), 2, "mixed");
    const QString plan = testing::writePlan(m_folder.path(), testing::makePlan(recipe), family + ".json");
    const QString run = path(family + "-" + dtype);
    TrainerProcess trainer;
    QVERIFY2(trainer.run({"run", plan, "--data", path("ids"), "--learning-rate", "0.01", "--steps", "30", "--run-dir",
                          run}) == 0,
             qPrintable(trainer.errors()));
    const double loss = trainer.all<contract::EvaluationEvent>().back().loss;
    QVERIFY(loss < 5); // of log(259) = 5.56 at the start
    QProcess process;
    process.start(SHARDSCOPE_BIN_DIR "/shardscope-train", {"export", run, "-o", run + "-hf", "--dtype", dtype});
    const testing::Outcome exported = testing::finish(process);
    QVERIFY2(exported.exitCode == 0, exported.errors.constData());
    const testing::Outcome loaded = python({run + "-hf", path("ids/val.bin")});
    QVERIFY2(loaded.exitCode == 0, loaded.errors.right(2000).constData());
    const QJsonObject said = QJsonDocument::fromJson(loaded.out).object();
    QCOMPARE(said["class"].toString(), name);
    QCOMPARE(said["dtype"].toString(), dtype == "bf16" ? "torch.bfloat16" : "torch.float32");
    QCOMPARE(said["tied"].toBool(), recipe.architecture.tied);
    QVERIFY2(said["missing"].toArray().isEmpty() && said["unexpected"].toArray().isEmpty(), loaded.out.constData());
    const double tolerance = dtype == "bf16" ? 3e-2 : 1e-5;
    QVERIFY2(std::abs(said["loss"].toDouble() - loss) < tolerance * loss,
             qPrintable(QString("%1, the run says %2").arg(said["loss"].toDouble(), 0, 'g', 9).arg(loss, 0, 'g', 9)));
    // As many parameters as the planner counts in the folder.
    const contract::Json inspected = testing::plan({"inspect", run + "-hf", "--json"}).json();
    QCOMPARE(inspected.at("parameters").at("unique").get<std::int64_t>(), said["parameters"].toInteger());
}

void ExportPytorchTest::theTokenizerComesAlong() {
    testing::PlanRecipe recipe = testing::recipeOf("gpt2", 1, "shard");
    recipe.architecture.vocabulary = 704;
    const QString plan = testing::writePlan(m_folder.path(), testing::makePlan(recipe), "words.json");
    QFile text(path("poem.txt"));
    QVERIFY(text.open(QIODevice::WriteOnly));
    for (int i = 0; i < 100; ++i)
        text.write("Les sanglots longs des violons de l'automne. ");
    text.close();
    QCOMPARE(TrainerProcess().run({"run", plan, "--data", path("poem.txt"), "--steps", "2", "--run-dir", path("words"),
                                   "--tokenizer", SHARDSCOPE_SOURCE_DIR "/tests/engine/data/tokenizers/gpt2"}),
             0);
    QProcess process;
    process.start(SHARDSCOPE_BIN_DIR "/shardscope-train", {"export", path("words"), "-o", path("words-hf")});
    QCOMPARE(testing::finish(process).exitCode, 0);
    const testing::Outcome loaded = python({path("words-hf"), path("ids/val.bin")});
    QVERIFY2(loaded.exitCode == 0, loaded.errors.right(2000).constData());
    const QJsonArray words = QJsonDocument::fromJson(loaded.out).object()["words"].toArray();
    QVERIFY2(words.size() > 1 && words.size() < 11, loaded.out.constData()); // fewer than bytes
}

QTEST_GUILESS_MAIN(ExportPytorchTest)
#include "tst_export_pytorch.moc"
