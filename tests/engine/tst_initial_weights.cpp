// SPDX-License-Identifier: GPL-3.0-or-later
#include "engine/support/TrainingFixture.h"
#include "runtime/execute/Checkpoint.h"
#include "runtime/execute/InitialWeights.h"

#include <QtCore/QFile>
#include <QtCore/QTemporaryDir>
#include <QtTest/QtTest>

#include <cmath>
#include <cstring>

using namespace shardscope;
using shardscope::testing::PlanRecipe;

namespace {

contract::Architecture architectureOf(const QString& family) {
    return family == "gpt2" ? testing::oddGpt2() : testing::oddLlama(family.toStdString());
}

QByteArray contentOf(const QString& path) {
    QFile file(path);
    return file.open(QIODevice::ReadOnly) ? file.readAll() : QByteArray();
}

/// Starts the network from `source` (from the seed when empty) and saves it in `folder`; the file with its weights.
QByteArray savedWeights(const PlanRecipe& recipe, const QString& source, const QString& folder) {
    const auto done =
        testing::runRanks(testing::makePlan(recipe), 5,
                          [&](engine::Executor& executor, const engine::PlanSetup& setup) -> contract::Result<void> {
                              if (!source.isEmpty()) {
                                  const auto files = engine::WeightFiles::open(source.toStdString());
                                  if (!files)
                                      return tl::unexpected(files.error());
                                  executor.initialize(99); // nothing of it must be left
                                  if (auto loaded = engine::loadInitialWeights(executor, setup, *files); !loaded)
                                      return loaded;
                              }
                              const auto saved = engine::saveCheckpoint(executor, setup, folder.toStdString(), {1, 5});
                              return saved ? contract::Result<void>() : tl::unexpected(saved.error());
                          });
    if (!done)
        qWarning("%s", done.error().message.c_str());
    return contentOf(folder + "/checkpoints/step-00000001/model.safetensors");
}

/// A safetensors file as somebody else might write it.
QByteArray safetensors(const QByteArray& header, const QByteArray& data) {
    const auto length = static_cast<quint64>(header.size());
    return QByteArray(reinterpret_cast<const char*>(&length), sizeof length) + header + data;
}

QString write(const QString& path, const QByteArray& content) {
    QFile file(path);
    if (!file.open(QIODevice::WriteOnly) || file.write(content) != content.size())
        qWarning("cannot write %s", qPrintable(path));
    return path;
}

} // namespace

/// Training begins with weights from elsewhere.
class InitialWeightsTest : public QObject {
    Q_OBJECT

private Q_SLOTS:
    void whatWasSavedIsReadBack_data();
    void whatWasSavedIsReadBack();
    void halfPrecisionIsRead();
    void foldersWithSeveralFilesAreRead();
    void missingAndMisshapenTensorsAreNamed();
    void hostileFilesAreRefused_data();
    void hostileFilesAreRefused();
};

void InitialWeightsTest::whatWasSavedIsReadBack_data() {
    QTest::addColumn<QString>("family");
    QTest::addColumn<bool>("bareNames");
    for (const char* family : {"gpt2", "llama", "qwen2", "qwen3"})
        for (const bool bareNames : {false, true})
            QTest::addRow("%s%s", family, bareNames ? ", names without prefix" : "") << family << bareNames;
}

void InitialWeightsTest::whatWasSavedIsReadBack() {
    QFETCH(const QString, family);
    QFETCH(const bool, bareNames);
    const QTemporaryDir folder;
    PlanRecipe recipe;
    recipe.architecture = architectureOf(family);
    const QByteArray first = savedWeights(recipe, {}, folder.filePath("first"));
    QVERIFY(!first.isEmpty());
    QString source = folder.filePath("first/checkpoints/step-00000001");
    if (bareNames) {
        quint64 length = 0;
        std::memcpy(&length, first.constData(), sizeof length);
        QByteArray header = first.mid(8, static_cast<qsizetype>(length));
        header.replace(family == "gpt2" ? "\"transformer." : "\"model.", "\"");
        const QByteArray data = first.mid(8 + static_cast<qsizetype>(length));
        source = write(folder.filePath("bare.safetensors"), safetensors(header, data));
    }
    PlanRecipe sharded = recipe;
    sharded.ranks = 2;
    sharded.placement = [](int index, const std::string&) {
        static const char* const kTurns[] = {"shard:3:2", "keep", "shard", "replicate"};
        return std::string(kTurns[index % 4]);
    };
    QCOMPARE(savedWeights(sharded, source, folder.filePath("second")), first);
}

void InitialWeightsTest::halfPrecisionIsRead() {
    const QTemporaryDir folder;
    const std::vector<float> values{0.0F, 1.0F, -2.5F, 65504.0F, 6.1035156e-05F, 5.9604645e-08F, 3.0517578e-05F};
    const std::vector<quint16> half{0x0000, 0x3C00, 0xC100, 0x7BFF, 0x0400, 0x0001, 0x0200};
    QByteArray data;
    for (const quint16 bits : half)
        data.append(reinterpret_cast<const char*>(&bits), 2);
    for (const float value : values) {
        quint32 bits = 0;
        std::memcpy(&bits, &value, sizeof bits);
        const auto upper = static_cast<quint16>(bits >> 16);
        data.append(reinterpret_cast<const char*>(&upper), 2);
    }
    const QString path = write(folder.filePath("half.safetensors"),
                               safetensors(R"({"a":{"dtype":"F16","shape":[7],"data_offsets":[0,14]},)"
                                           R"("b":{"dtype":"BF16","shape":[7,1],"data_offsets":[14,28]}})",
                                           data));
    const auto files = engine::WeightFiles::open(path.toStdString());
    QVERIFY2(files, files ? "" : files.error().message.c_str());
    QVERIFY(files->check("a", {7}) && files->check("b", {7, 1}));
    for (std::size_t i = 0; i < values.size(); ++i) {
        QCOMPARE(engine::WeightFiles::valueAt(files->at("a"), static_cast<std::int64_t>(i)), values[i]);
        const float rounded = engine::WeightFiles::valueAt(files->at("b"), static_cast<std::int64_t>(i));
        QVERIFY(std::abs(rounded - values[i]) <= std::abs(values[i]) / 128);
    }
}

void InitialWeightsTest::foldersWithSeveralFilesAreRead() {
    const QTemporaryDir folder;
    const QByteArray entry = R"({"NAME":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}})";
    write(folder.filePath("one.safetensors"), safetensors(QByteArray(entry).replace("NAME", "a"), QByteArray(4, '\0')));
    write(folder.filePath("two.safetensors"), safetensors(QByteArray(entry).replace("NAME", "b"), QByteArray(4, '\0')));
    const auto index = [&](const char* second) {
        write(folder.filePath("model.safetensors.index.json"),
              QByteArray(R"({"weight_map":{"a":"one.safetensors","b":")") + second + "\"}}");
    };
    index("two.safetensors");
    const auto files = engine::WeightFiles::open(folder.path().toStdString());
    QVERIFY2(files, files ? "" : files.error().message.c_str());
    QCOMPARE(files->names(), (std::vector<std::string>{"a", "b"}));
    index("../two.safetensors");
    const auto outside = engine::WeightFiles::open(folder.path().toStdString());
    QVERIFY(!outside);
    QVERIFY2(outside.error().message.find("same folder") != std::string::npos, outside.error().message.c_str());
}

void InitialWeightsTest::missingAndMisshapenTensorsAreNamed() {
    const QTemporaryDir folder;
    PlanRecipe recipe;
    savedWeights(recipe, {}, folder.filePath("saved"));
    const auto files =
        engine::WeightFiles::open(folder.filePath("saved/checkpoints/step-00000001/model.safetensors").toStdString());
    QVERIFY(files);
    const auto refusal = [&](const contract::Architecture& architecture) {
        PlanRecipe other;
        other.architecture = architecture;
        const auto checked = engine::checkInitialWeights(*engine::preparePlan(testing::makePlan(other), {}), *files);
        return checked ? std::string("accepted") : checked.error().message;
    };
    contract::Architecture longer = testing::oddGpt2();
    longer.layers = 3;
    QVERIFY2(refusal(longer).find("transformer.h.2.ln_1.weight") != std::string::npos, refusal(longer).c_str());
    contract::Architecture wider = testing::oddGpt2();
    wider.intermediate = 44;
    QVERIFY2(refusal(wider).find("[21, 43]; the plan's network has [21, 44]") != std::string::npos,
             refusal(wider).c_str());
    contract::Architecture untied = testing::oddGpt2();
    untied.tied = false;
    QCOMPARE(refusal(untied), std::string("accepted")); // its head begins as the embedding
}

void InitialWeightsTest::hostileFilesAreRefused_data() {
    QTest::addColumn<QByteArray>("content");
    QTest::newRow("empty") << QByteArray();
    QTest::newRow("short") << QByteArray("abc");
    QTest::newRow("header longer than the file") << QByteArray("\x40\0\0\0\0\0\0\0{}", 10);
    QTest::newRow("header of 2^63 bytes") << QByteArray("\0\0\0\0\0\0\0\x80{}", 10);
    QTest::newRow("no JSON") << safetensors("{\"a\":", {});
    QTest::newRow("no object") << safetensors("[]", {});
    QTest::newRow("unknown type") << safetensors(R"({"a":{"dtype":"I64","shape":[1],"data_offsets":[0,8]}})",
                                                 QByteArray(8, '\0'));
    QTest::newRow("behind the end") << safetensors(R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}})",
                                                   QByteArray(4, '\0'));
    QTest::newRow("begins behind its end")
        << safetensors(R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[8,4]}})", QByteArray(8, '\0'));
    QTest::newRow("too few bytes") << safetensors(R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,4]}})",
                                                  QByteArray(8, '\0'));
    QTest::newRow("product overflows") << safetensors(
        R"({"a":{"dtype":"F32","shape":[4294967296,4294967296,4],"data_offsets":[0,0]}})", {});
    QTest::newRow("negative extent") << safetensors(R"({"a":{"dtype":"F32","shape":[-1],"data_offsets":[0,4]}})",
                                                    QByteArray(4, '\0'));
}

void InitialWeightsTest::hostileFilesAreRefused() {
    QFETCH(const QByteArray, content);
    const QTemporaryDir folder;
    const QString path = write(folder.filePath("hostile.safetensors"), content);
    const auto files = engine::WeightFiles::open(path.toStdString());
    QVERIFY(!files);
    QCOMPARE(files.error().kind, contract::ErrorKind::BadInput);
    QVERIFY2(files.error().message.find("hostile.safetensors") != std::string::npos, files.error().message.c_str());
}

QTEST_GUILESS_MAIN(InitialWeightsTest)
#include "tst_initial_weights.moc"
