// SPDX-License-Identifier: GPL-3.0-or-later
// `shardscope-plan validate`: its document and exit codes.
#include "runtime/contract/Json.h"

#include <QFile>
#include <QProcess>
#include <QTemporaryDir>
#include <QtTest>
#include <nlohmann/json.hpp>

using namespace shardscope;

namespace {

struct Answer {
    int exitCode = -1;
    QByteArray output;
    QByteArray error;
};

Answer run(const QStringList& arguments, const QString& models) {
    QProcess process;
    QProcessEnvironment environment = QProcessEnvironment::systemEnvironment();
    environment.insert("SHARDSCOPE_MODELS", models);
    process.setProcessEnvironment(environment);
    process.start(QStringLiteral(SHARDSCOPE_BIN_DIR "/shardscope-plan"), arguments);
    if (!process.waitForFinished(60'000))
        return {};
    return {process.exitCode(), process.readAllStandardOutput(), process.readAllStandardError()};
}

const QString kModels = QStringLiteral(SHARDSCOPE_SOURCE_DIR "/models");

} // namespace

class tst_validate_command : public QObject {
    Q_OBJECT

private slots:
    void reproducesAndSaysSo() {
        const Answer answer = run({"validate", "--json"}, kModels);
        QVERIFY2(answer.exitCode == 0, answer.error.constData());
        const auto document = contract::parseJson(answer.output.toStdString(), "stdout");
        QVERIFY(document.has_value());
        QCOMPARE(document->at("reproduced").get<bool>(), true);
        for (const contract::Json& table : document->at("tables")) {
            QVERIFY(table.at("reproduced").get<bool>());
            for (const contract::Json& row : table.at("rows")) {
                for (const char* key : {"ours", "theirs", "error_percent", "tolerance"})
                    QVERIFY(row.at(key).is_number());
            }
        }
        const Answer text = run({"validate"}, kModels);
        QCOMPARE(text.exitCode, 0);
        QVERIFY(text.output.contains("Summary") && text.output.contains("131.25"));
    }

    void aWrongNumberExitsWithFive() {
        const QTemporaryDir folder;
        for (const char* name : {"graphs", "clusters"})
            QVERIFY(QFile::link(kModels + '/' + name, folder.filePath(name)));
        contract::Json document = *contract::readJsonFile((kModels + "/published.json").toStdString());
        document["megatron"]["rows"][0]["none_gib"] = 59.2501;
        const std::string path = folder.filePath("published.json").toStdString();
        QVERIFY(contract::writeFileAtomically(path, document.dump()).has_value());
        const Answer answer = run({"validate", "--json"}, folder.path());
        QCOMPARE(answer.exitCode, 5);
        QCOMPARE(contract::parseJson(answer.output.toStdString(), "stdout")->at("reproduced").get<bool>(), false);
        QVERIFY(run({"validate"}, folder.path()).output.contains("NOT REPRODUCED"));
    }

    void aMissingFileExitsWithThree() {
        const QTemporaryDir folder;
        QCOMPARE(run({"validate"}, folder.path()).exitCode, 3);
    }
};

QTEST_GUILESS_MAIN(tst_validate_command)
#include "tst_validate_command.moc"
