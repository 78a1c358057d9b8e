// SPDX-License-Identifier: GPL-3.0-or-later
// What `shardscope-train export` makes of a run's checkpoints, and when it makes nothing.
#include "e2e/support/PlanProcess.h"
#include "e2e/support/TrainerProcess.h"

#include <QtCore/QDir>
#include <QtCore/QFile>
#include <QtCore/QJsonDocument>
#include <QtCore/QJsonObject>
#include <QtCore/QTemporaryDir>
#include <QtTest/QtTest>

#include <cmath>
#include <map>

using namespace shardscope;
using shardscope::testing::Outcome;
using shardscope::testing::TrainerProcess;

namespace {

Outcome exportRun(const QStringList& arguments) {
    QProcess process;
    process.start(SHARDSCOPE_BIN_DIR "/shardscope-train", QStringList{"export"} + arguments);
    return testing::finish(process);
}

QByteArray contentOf(const QString& path) {
    QFile file(path);
    return file.open(QIODevice::ReadOnly) ? file.readAll() : QByteArray();
}

void write(const QString& path, const QByteArray& content) {
    QFile file(path);
    QVERIFY(file.open(QIODevice::WriteOnly));
    file.write(content);
}

} // namespace

class ExportRunsTest : public QObject {
    Q_OBJECT

private Q_SLOTS:
    void initTestCase();
    void cleanup();
    void anExportIsWhatTheRunLearned_data();
    void anExportIsWhatTheRunLearned();
    void theStepIsChosen();
    void aDamagedCheckpointIsPassedOver();
    void nothingIsOverwrittenUnasked();
    void anExportIsWholeOrNotThere();
    void whatIsNoRunIsSaid();
    void theTokenizerComesAlongWhereItIsStillTheSame();

private:
    QString path(const QString& name) const { return m_folder.filePath(name); }
    QString run(const QString& family) const { return path(family + "-run"); }
    QTemporaryDir m_folder;
    std::map<QString, TrainerProcess> m_runs;
};

/// Checkpoints of steps 10, 20 and 25 of both families.
void ExportRunsTest::initTestCase() {
    for (const QString family : {"gpt2", "llama"}) {
        const contract::Plan plan = testing::makePlan(testing::recipeOf(family.toStdString(), 2, "mixed"));
        const QString file = testing::writePlan(m_folder.path(), plan, family + ".json");
        QCOMPARE(
            m_runs[family].run({"run", file, "--data", "builtin:addition", "--learning-rate", "0.01", "--steps", "25",
                                "--checkpoint-every", "10", "--keep-checkpoints", "3", "--run-dir", run(family)}),
            0);
    }
}

/// Nothing half done stays behind.
void ExportRunsTest::cleanup() {
    const QStringList left = QDir(m_folder.path()).entryList({".*partial*"}, QDir::AllEntries | QDir::Hidden);
    QVERIFY2(left.isEmpty(), qPrintable(left.join(' ')));
}

void ExportRunsTest::anExportIsWhatTheRunLearned_data() {
    QTest::addColumn<QString>("family");
    QTest::addColumn<QString>("dtype");
    for (const char* family : {"gpt2", "llama"})
        for (const char* dtype : {"fp32", "bf16"})
            QTest::addRow("%s, %s", family, dtype) << family << dtype;
}

void ExportRunsTest::anExportIsWhatTheRunLearned() {
    QFETCH(const QString, family);
    QFETCH(const QString, dtype);
    const QString folder = path(family + "-" + dtype);
    const Outcome done = exportRun({run(family), "-o", folder, "--dtype", dtype, "--json"});
    QVERIFY2(done.exitCode == 0 && done.errors.isEmpty(), done.errors.constData());
    const QJsonObject said = QJsonDocument::fromJson(done.out).object();
    QCOMPARE(said["step"].toInt(), 25);
    QCOMPARE(QDir(folder).entryList(QDir::Files).join(' '), "config.json model.safetensors");
    const QByteArray weights = contentOf(run(family) + "/checkpoints/step-00000025/model.safetensors");
    const QByteArray written = contentOf(folder + "/model.safetensors");
    if (dtype == "fp32")
        QCOMPARE(written, weights);
    else
        QVERIFY(written.size() < weights.size() * 6 / 10);
    // The planner reads the same network in it, and counts the same parameters.
    const contract::Json inspected = testing::plan({"inspect", folder, "--json"}).json();
    QCOMPARE(QString::fromStdString(inspected.at("family").get<std::string>()), family);
    const contract::Json planned =
        testing::plan({"inspect", run(family) + "/checkpoints/step-00000025", "--json"}).json();
    QCOMPARE(inspected.at("parameters"), planned.at("parameters"));
    QCOMPARE(inspected.at("parameters").at("unique").get<std::int64_t>(), said["parameters"].toInteger());
    // A run that begins with it begins where the other ended.
    TrainerProcess again;
    QCOMPARE(again.run({"run", path(family + ".json"), "--data", "builtin:addition", "--steps", "1", "--seed", "2",
                        "--run-dir", folder + "-again", "--init", folder}),
             0);
    const auto steps = m_runs[family].all<contract::StepEvent>();
    const double begin = steps.front().loss, end = steps.back().loss;
    const double loss = again.all<contract::StepEvent>().front().loss;
    QVERIFY(end < 0.8 * begin);
    QVERIFY2(std::abs(loss - end) < 0.1 * (begin - end), qPrintable(QString("%1 %2").arg(loss).arg(end)));
}

void ExportRunsTest::theStepIsChosen() {
    const Outcome done = exportRun({run("gpt2"), "-o", path("ten"), "--step", "10"});
    QVERIFY2(done.exitCode == 0, done.errors.constData());
    QVERIFY2(done.out.startsWith("step 10 of "), done.out.constData());
    QCOMPARE(contentOf(path("ten/model.safetensors")),
             contentOf(run("gpt2") + "/checkpoints/step-00000010/model.safetensors"));
    const Outcome none = exportRun({run("gpt2"), "-o", path("eleven"), "--step", "11"});
    QCOMPARE(none.exitCode, 3);
    QVERIFY2(none.errors.contains("holds no checkpoint of step 11; there are those of steps 10, 20, 25"),
             none.errors.constData());
    QVERIFY(!QDir(path("eleven")).exists());
}

void ExportRunsTest::aDamagedCheckpointIsPassedOver() {
    const QString newest = run("llama") + "/checkpoints/step-00000025/model.safetensors";
    const QByteArray good = contentOf(newest);
    QByteArray bad = good;
    bad[bad.size() - 1] = static_cast<char>(bad.back() ^ 1);
    write(newest, bad);
    const Outcome older = exportRun({run("llama"), "-o", path("older")});
    QVERIFY2(older.exitCode == 0, older.errors.constData());
    QVERIFY2(older.errors.contains("warning: checkpoint passed over: ") && older.errors.contains("step-00000025"),
             older.errors.constData());
    QVERIFY(older.out.startsWith("step 20 of "));
    const Outcome asked = exportRun({run("llama"), "-o", path("asked"), "--step", "25"});
    QCOMPARE(asked.exitCode, 3);
    QVERIFY2(asked.errors.contains("--step 25: ") && asked.errors.contains("checksum"), asked.errors.constData());
    write(newest, good);
}

void ExportRunsTest::nothingIsOverwrittenUnasked() {
    QVERIFY(QDir().mkpath(path("full/empty")) && QDir().mkpath(path("notes")));
    QVERIFY(QDir().mkpath(path("nothing")));
    write(path("notes/model.safetensors.index.json"), "{}");
    write(path("file"), "text");
    const Outcome refused = exportRun({run("gpt2"), "-o", path("notes")});
    QCOMPARE(refused.exitCode, 2);
    QVERIFY2(refused.errors.contains("is not empty") && refused.errors.contains("--force"), refused.errors.constData());
    QCOMPARE(contentOf(path("notes/model.safetensors.index.json")), "{}");
    for (const QString other : {"file", "full"}) // a file, and what holds folders: no export
        QCOMPARE(exportRun({run("gpt2"), "-o", path(other), "--force"}).exitCode, 2);
    QVERIFY(QDir(path("full/empty")).exists() && contentOf(path("file")) == "text");
    for (const QString allowed : {"nothing", "notes"}) {
        const Outcome done = exportRun({run("gpt2"), "-o", path(allowed) + "/", "--force"});
        QVERIFY2(done.exitCode == 0, done.errors.constData());
        QCOMPARE(QDir(path(allowed)).entryList(QDir::Files).join(' '), "config.json model.safetensors");
    }
}

void ExportRunsTest::anExportIsWholeOrNotThere() {
    // As on a full disk: files of more than 4 KiB cannot be written.
    QProcess process;
    process.start("sh", {"-c", "trap '' XFSZ; ulimit -f 8; exec \"$0\" export \"$1\" -o \"$2\"",
                         SHARDSCOPE_BIN_DIR "/shardscope-train", run("gpt2"), path("cut")});
    const Outcome full = testing::finish(process);
    QCOMPARE(full.exitCode, 5);
    QVERIFY2(full.errors.contains("model.safetensors: cannot be written: "), full.errors.constData());
    QCOMPARE(full.errors.count('\n'), 1);
    QVERIFY(!QDir(path("cut")).exists());
    const Outcome below = exportRun({run("gpt2"), "-o", path("gpt2.json") + "/below"});
    QCOMPARE(below.exitCode, 5);
    QVERIFY2(below.errors.contains("cannot be created"), below.errors.constData());
}

void ExportRunsTest::whatIsNoRunIsSaid() {
    for (const QString& folder : {path("nowhere"), m_folder.path()}) {
        const Outcome done = exportRun({folder, "-o", path("no")});
        QCOMPARE(done.exitCode, 3);
        QVERIFY2(done.errors.contains("plan.json: cannot be opened"), done.errors.constData());
    }
    QVERIFY(QDir().mkpath(path("bare")));
    QVERIFY(QFile::copy(path("gpt2.json"), path("bare/plan.json")));
    const Outcome bare = exportRun({path("bare"), "-o", path("no")});
    QCOMPARE(bare.exitCode, 3);
    QVERIFY2(bare.errors.contains("holds no checkpoint to export"), bare.errors.constData());
    QCOMPARE(exportRun({run("gpt2"), "-o", path("no"), "--dtype", "fp8"}).exitCode, 2);
    QCOMPARE(exportRun({run("gpt2")}).exitCode, 2);
    QVERIFY(!QDir(path("no")).exists());
}

void ExportRunsTest::theTokenizerComesAlongWhereItIsStillTheSame() {
    const QString original = SHARDSCOPE_SOURCE_DIR "/tests/engine/data/tokenizers/gpt2/tokenizer.json";
    QVERIFY(QFile::copy(original, path("tokenizer.json")));
    testing::PlanRecipe recipe = testing::recipeOf("gpt2", 1, "shard");
    recipe.architecture.vocabulary = 704;
    const QString plan = testing::writePlan(m_folder.path(), testing::makePlan(recipe), "words.json");
    write(path("poem.txt"), QByteArray("Les sanglots longs des violons de l'automne. ").repeated(100));
    QCOMPARE(TrainerProcess().run({"run", plan, "--data", path("poem.txt"), "--steps", "2", "--run-dir", path("words"),
                                   "--tokenizer", path("tokenizer.json")}),
             0);
    QCOMPARE(exportRun({path("words"), "-o", path("with")}).exitCode, 0);
    QCOMPARE(contentOf(path("with/tokenizer.json")), contentOf(original));
    write(path("tokenizer.json"), contentOf(original) + "\n");
    const Outcome changed = exportRun({path("words"), "-o", path("changed")});
    QCOMPARE(changed.exitCode, 0);
    QVERIFY2(changed.errors.contains("warning: the tokenizer is left out: ") && changed.errors.contains("was changed"),
             changed.errors.constData());
    QVERIFY(!QFile::exists(path("changed/tokenizer.json")));
    QVERIFY(QFile::remove(path("tokenizer.json")));
    const Outcome gone = exportRun({path("words"), "-o", path("gone")});
    QCOMPARE(gone.exitCode, 0);
    QVERIFY2(gone.errors.contains("left out: ") && gone.errors.contains("cannot be opened"), gone.errors.constData());
}

QTEST_GUILESS_MAIN(ExportRunsTest)
#include "tst_export_runs.moc"
