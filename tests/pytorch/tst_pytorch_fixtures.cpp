// SPDX-License-Identifier: GPL-3.0-or-later
// Regenerates, with PyTorch, the transformers and the tokenizers library where they can be imported, the fixtures that
// tests of readers and of tokenizers compare with. The interpreter is SHARDSCOPE_PYTHON, else python3.
#include "runtime/contract/Json.h"

#include <QProcess>
#include <QTemporaryDir>
#include <QtTest>
#include <nlohmann/json.hpp>

using namespace shardscope;

class tst_pytorch_fixtures : public QObject {
    Q_OBJECT

    QString m_python = qEnvironmentVariable("SHARDSCOPE_PYTHON", QStringLiteral("python3"));
    QString m_tests = QStringLiteral(SHARDSCOPE_SOURCE_DIR "/tests/");

    /// Nothing, or why the script cannot run here.
    QString missing(const QString& script) const {
        QProcess process;
        process.start(m_python, {m_tests + script, QStringLiteral("--check")});
        if (!process.waitForStarted())
            return QStringLiteral("there is no ") + m_python;
        process.waitForFinished(120'000);
        if (process.exitStatus() == QProcess::NormalExit && process.exitCode() == 0)
            return {};
        const QString lastLine = QString::fromUtf8(process.readAllStandardError()).trimmed().section('\n', -1);
        return m_python + QStringLiteral(" cannot import what the script needs: ") + lastLine;
    }

private slots:
    void transformersBuildsTheSameNetworks() {
        const QString script = QStringLiteral("pytorch/transformers_fixtures.py");
        if (const QString why = missing(script); !why.isEmpty())
            QSKIP(qPrintable(why));
        const QTemporaryDir folder;
        const QString out = folder.filePath(QStringLiteral("transformers.json"));
        QProcess process;
        process.start(m_python,
                      {m_tests + script, m_tests + QStringLiteral("planner/data/transformers_configs.json"), out});
        QVERIFY(process.waitForFinished(590'000));
        QVERIFY2(process.exitCode() == 0, process.readAllStandardError().right(2000).constData());
        const auto fresh = contract::readJsonFile(out.toStdString());
        const auto committed = contract::readJsonFile((m_tests + "planner/data/transformers.json").toStdString());
        QVERIFY(fresh && committed);
        // A later major version renames modules; counts and names are those of the one the fixtures were made with.
        const auto major = [](const contract::Json& document) {
            const std::string library = document.at("library").get<std::string>();
            return library.substr(0, library.find('.'));
        };
        if (major(*fresh) != major(*committed))
            QSKIP(qPrintable(
                QString::fromStdString(major(*fresh) + " is installed; the fixtures are of " + major(*committed))));
        const contract::Json& theirs = fresh->at("networks");
        const contract::Json& ours = committed->at("networks");
        QCOMPARE(theirs.size(), ours.size());
        for (std::size_t i = 0; i < ours.size(); ++i)
            QVERIFY2(theirs[i] == ours[i], ours[i].at("name").get<std::string>().c_str());
    }

    void pytorchExportsTheSameGraphs() {
        const QString script = QStringLiteral("pytorch/onnx_fixtures.py");
        if (const QString why = missing(script); !why.isEmpty())
            QSKIP(qPrintable(why));
        const QTemporaryDir folder;
        QProcess process;
        process.start(m_python, {m_tests + script, folder.path()});
        QVERIFY(process.waitForFinished(590'000));
        QVERIFY2(process.exitCode() == 0, process.readAllStandardError().right(2000).constData());
        const auto fresh = contract::readJsonFile(folder.filePath(QStringLiteral("expected.json")).toStdString());
        const auto committed = contract::readJsonFile((m_tests + "planner/data/onnx/expected.json").toStdString());
        QVERIFY(fresh && committed);
        for (const auto& [name, network] : committed->items())
            QVERIFY2(fresh->contains(name) && fresh->at(name) == network, name.c_str());
    }

    void tokenizersGiveTheSameIds() {
        const QString script = QStringLiteral("pytorch/tokenizer_fixtures.py");
        if (const QString why = missing(script); !why.isEmpty())
            QSKIP(qPrintable(why));
        const QTemporaryDir folder;
        const QString out = folder.filePath(QStringLiteral("golden.json"));
        QProcess process;
        process.start(m_python, {m_tests + script, m_tests + QStringLiteral("engine/data/tokenizers"), out});
        QVERIFY(process.waitForFinished(590'000));
        QVERIFY2(process.exitCode() == 0, process.readAllStandardError().right(2000).constData());
        const auto fresh = contract::readJsonFile(out.toStdString());
        const auto committed = contract::readJsonFile((m_tests + "engine/data/tokenizers/golden.json").toStdString());
        QVERIFY(fresh && committed);
        for (const char* const part : {"texts", "cases"})
            QVERIFY2(fresh->at(part) == committed->at(part), part);
    }
};

QTEST_GUILESS_MAIN(tst_pytorch_fixtures)
#include "tst_pytorch_fixtures.moc"
