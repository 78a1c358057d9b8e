// SPDX-License-Identifier: GPL-3.0-or-later
// Replays the corpus of every fuzz target, each file whole, cut off at many places, and with bytes changed.
#include "fuzz/Targets.h"

#include <QDir>
#include <QFile>
#include <QtTest>

using namespace shardscope;

class tst_fuzz_corpus : public QObject {
    Q_OBJECT

private slots:
    void everyFileIsReadOrRefused_data() {
        QTest::addColumn<QString>("target");
        for (const fuzz::Target& target : fuzz::targets())
            QTest::newRow(std::string(target.name).c_str())
                << QString::fromUtf8(target.name.data(), static_cast<qsizetype>(target.name.size()));
    }
    void everyFileIsReadOrRefused() {
        QFETCH(QString, target);
        void (*read)(std::string_view) = nullptr;
        for (const fuzz::Target& known : fuzz::targets()) {
            if (target == QString::fromUtf8(known.name.data(), static_cast<qsizetype>(known.name.size())))
                read = known.read;
        }
        const QDir folder(QStringLiteral(SHARDSCOPE_SOURCE_DIR "/tests/fuzz/corpus/") + target);
        const QStringList files = folder.entryList(QDir::Files);
        QVERIFY(!files.isEmpty());
        for (const QString& name : files) {
            QFile file(folder.filePath(name));
            QVERIFY(file.open(QIODevice::ReadOnly));
            const QByteArray bytes = file.readAll();
            const auto give = [&](const QByteArray& text) {
                read(std::string_view(text.constData(), static_cast<std::size_t>(text.size())));
            };
            give(bytes);
            // A prime number of places, so that all parts of a file's structure are met.
            for (int i = 0; i < 61; ++i)
                give(bytes.left(static_cast<int>(qint64(bytes.size()) * i / 61)));
            for (int i = 0; i < 61; ++i) {
                QByteArray changed = bytes;
                if (!changed.isEmpty())
                    changed[static_cast<int>(qint64(changed.size() - 1) * i / 60)] ^= static_cast<char>(0x40 + i);
                give(changed);
            }
        }
    }
};

QTEST_GUILESS_MAIN(tst_fuzz_corpus)
#include "tst_fuzz_corpus.moc"
