// SPDX-License-Identifier: GPL-3.0-or-later
// Runs on text that a tokenizer encodes, and what they say.
#include "e2e/support/TrainerProcess.h"

#include <QtCore/QDir>
#include <QtCore/QFile>
#include <QtCore/QJsonDocument>
#include <QtCore/QJsonObject>
#include <QtCore/QTemporaryDir>
#include <QtTest/QtTest>

using namespace shardscope;
using shardscope::testing::PlanRecipe;
using shardscope::testing::TrainerProcess;

class TokenizerRunsTest : public QObject {
    Q_OBJECT

private Q_SLOTS:
    void initTestCase();
    void aRunIsContinuedInItsTokens();
    void aRunResumesWithItsTokenizer();
    void aTokenizerThatIsGoneOrChangedIsSaid();
    void workersUnderAnotherLauncherKeepTheirTokenizer();
    void whatDoesNotFitIsRefused();

private:
    QString path(const QString& name) const { return m_folder.filePath(name); }
    QString plan(int ranks, std::int64_t vocabulary) const {
        PlanRecipe recipe = testing::recipeOf("gpt2", ranks, "shard");
        recipe.architecture.vocabulary = vocabulary;
        return testing::writePlan(m_folder.path(), testing::makePlan(recipe),
                                  QString("plan-%1-%2.json").arg(ranks).arg(vocabulary));
    }
    /// run PLAN on the text, with the tokenizer.
    QStringList call(const QString& runDirectory, int ranks, const QStringList& more) const {
        return QStringList{"run",       plan(ranks, 704),   "--data",    path("poem.txt"),
                           "--run-dir", path(runDirectory), "--timeout", "60"} +
               more;
    }
    struct Said {
        int code = -1;
        QByteArray output;
        QString errors;
    };
    static Said sample(const QString& runDirectory, const QStringList& more = {}) {
        QProcess process;
        process.start(
            SHARDSCOPE_BIN_DIR "/shardscope-train",
            QStringList{"sample", runDirectory, "--prompt", "Les violons", "--tokens", "24", "--temperature", "0"} +
                more);
        process.waitForFinished(60'000);
        return {process.exitCode(), process.readAllStandardOutput(), QString::fromUtf8(process.readAllStandardError())};
    }

    QTemporaryDir m_folder;
    QString m_fixture = QStringLiteral(SHARDSCOPE_SOURCE_DIR "/tests/engine/data/tokenizers/gpt2/tokenizer.json");
};

void TokenizerRunsTest::initTestCase() {
    QFile text(path("poem.txt"));
    QVERIFY(text.open(QIODevice::WriteOnly));
    for (int i = 0; i < 200; ++i)
        text.write("Les sanglots longs des violons de l'automne. ");
    QDir(m_folder.path()).mkpath("tokenizer");
    QVERIFY(QFile::copy(m_fixture, path("tokenizer/tokenizer.json")));
}

/// It learns the one sentence there is, and says it in whole words.
void TokenizerRunsTest::aRunIsContinuedInItsTokens() {
    TrainerProcess trainer;
    QCOMPARE(
        trainer.run(call("run", 2, {"--steps", "120", "--learning-rate", "0.01", "--tokenizer", path("tokenizer")})),
        0);
    QVERIFY2(trainer.strayLines().isEmpty(), qPrintable(trainer.strayLines().join('\n')));
    QVERIFY2(trainer.errors().contains("encoded 0.0 MB of text as "), qPrintable(trainer.errors()));
    QCOMPARE(trainer.errors().count("encoded 0.0 MB"), 1); // by rank 0 alone
    QFile settings(path("run/run.json"));
    QVERIFY(settings.open(QIODevice::ReadOnly));
    const QJsonObject tokenizer = QJsonDocument::fromJson(settings.readAll()).object().value("tokenizer").toObject();
    QCOMPARE(tokenizer.value("path").toString(), path("tokenizer/tokenizer.json"));
    QCOMPARE(tokenizer.value("sha256").toString().size(), 64);
    const Said text = sample(path("run"));
    QVERIFY2(text.code == 0, qPrintable(text.errors));
    QVERIFY2(text.output.startsWith("Les violons de l'automne. Les sanglots longs"), text.output.constData());
    const Said json = sample(path("run"), {"--json"});
    const QJsonObject said = QJsonDocument::fromJson(json.output).object();
    QCOMPARE(said.value("prompt").toString() + said.value("text").toString() + '\n', QString::fromUtf8(text.output));
}

void TokenizerRunsTest::aRunResumesWithItsTokenizer() {
    const QStringList whole{"--steps", "10", "--tokenizer", path("tokenizer")};
    TrainerProcess uninterrupted;
    QCOMPARE(uninterrupted.run(call("whole", 1, whole)), 0);
    TrainerProcess first;
    QCOMPARE(first.run(call("parts", 1, {"--steps", "5", "--tokenizer", path("tokenizer")})), 0);
    TrainerProcess second; // without naming it
    QVERIFY2(second.run(call("parts", 1, {"--steps", "10", "--resume"})) == 0, qPrintable(second.errors()));
    std::vector<double> losses;
    for (const auto* part : {&first, &second})
        for (const contract::StepEvent& step : part->all<contract::StepEvent>())
            losses.push_back(step.loss);
    std::vector<double> expected;
    for (const contract::StepEvent& step : uninterrupted.all<contract::StepEvent>())
        expected.push_back(step.loss);
    QCOMPARE(losses, expected);
    // One that was started with bytes goes on with bytes.
    TrainerProcess bytes;
    QCOMPARE(bytes.run(call("bytes", 1, {"--steps", "2"})), 0);
    TrainerProcess mixed;
    QCOMPARE(mixed.run(call("bytes", 1, {"--steps", "4", "--resume", "--tokenizer", path("tokenizer")})), 2);
    QVERIFY2(mixed.errors().contains("was started without one"), qPrintable(mixed.errors()));
    QCOMPARE(sample(path("bytes"), {"--tokenizer", path("tokenizer")}).code, 2);
}

void TokenizerRunsTest::aTokenizerThatIsGoneOrChangedIsSaid() {
    QDir(m_folder.path()).mkpath("other");
    QVERIFY(QFile::copy(m_fixture, path("other/tokenizer.json")));
    TrainerProcess trainer;
    QCOMPARE(trainer.run(call("kept", 1, {"--steps", "2", "--tokenizer", path("other")})), 0);
    const QStringList resume{"--steps", "4", "--resume"};
    QFile file(path("other/tokenizer.json"));
    QVERIFY(file.open(QIODevice::Append));
    file.write("\n");
    file.close();
    TrainerProcess changed;
    QCOMPARE(changed.run(call("kept", 1, resume)), 3);
    QVERIFY2(changed.errors().contains("is not the tokenizer that the run was made with"),
             qPrintable(changed.errors()));
    QCOMPARE(sample(path("kept")).code, 3);
    QVERIFY(file.remove());
    TrainerProcess gone;
    QCOMPARE(gone.run(call("kept", 1, resume)), 3);
    QVERIFY2(gone.errors().contains("other/tokenizer.json: cannot be opened") &&
                 gone.errors().contains("if it was moved, name its place with --tokenizer"),
             qPrintable(gone.errors()));
    const Said without = sample(path("kept"));
    QCOMPARE(without.code, 3);
    QVERIFY2(without.errors.contains("if it was moved"), qPrintable(without.errors));
    // It is the same file elsewhere.
    const Said moved = sample(path("kept"), {"--tokenizer", path("tokenizer")});
    QVERIFY2(moved.code == 0, qPrintable(moved.errors));
    TrainerProcess again;
    QVERIFY2(again.run(call("kept", 1, resume + QStringList{"--tokenizer", path("tokenizer")})) == 0,
             qPrintable(again.errors()));
}

void TokenizerRunsTest::workersUnderAnotherLauncherKeepTheirTokenizer() {
    const QStringList call{"worker",  plan(1, 704), "--data",    path("poem.txt"),
                           "--steps", "3",          "--run-dir", path("launched")};
    TrainerProcess worker({"RANK=0", "WORLD_SIZE=1", "LOCAL_RANK=0", "MASTER_ADDR=127.0.0.1",
                           "MASTER_PORT=" + QString::number(testing::freePort())});
    QVERIFY2(worker.run(call + QStringList{"--tokenizer", path("tokenizer")}) == 0, qPrintable(worker.errors()));
    const Said text = sample(path("launched"));
    QVERIFY2(text.code == 0, qPrintable(text.errors));
    TrainerProcess unnamed({"RANK=0", "WORLD_SIZE=1", "LOCAL_RANK=0", "MASTER_ADDR=127.0.0.1",
                            "MASTER_PORT=" + QString::number(testing::freePort())});
    QCOMPARE(unnamed.run(call + QStringList{"--resume"}), 2);
    QVERIFY2(unnamed.errors().contains("name it again"), qPrintable(unnamed.errors()));
}

void TokenizerRunsTest::whatDoesNotFitIsRefused() {
    TrainerProcess small;
    QCOMPARE(small.run({"run", plan(1, 300), "--data", path("poem.txt"), "--run-dir", path("small"), "--tokenizer",
                        path("tokenizer")}),
             3);
    QVERIFY2(small.errors().contains("needs a vocabulary of 700") && small.errors().contains("is 300"),
             qPrintable(small.errors()));
    QVERIFY(!QFile::exists(path("small")));
    TrainerProcess addition;
    QCOMPARE(addition.run({"run", plan(1, 704), "--data", "builtin:addition", "--run-dir", path("sums"), "--tokenizer",
                           path("tokenizer")}),
             2);
}

QTEST_GUILESS_MAIN(TokenizerRunsTest)
#include "tst_tokenizer_runs.moc"
