// SPDX-License-Identifier: GPL-3.0-or-later
#include "runtime/data/Dataset.h"
#include "runtime/data/TokenData.h"

#include <QtCore/QFile>
#include <QtCore/QTemporaryDir>
#include <QtTest/QtTest>

#include <algorithm>
#include <vector>

using namespace shardscope;

namespace {

constexpr std::int64_t kSequence = 8;

/// Ids begin, begin + 1, ... as a file holds them.
template<typename Id> QByteArray consecutive(int begin, int count) {
    std::vector<Id> ids(static_cast<std::size_t>(count));
    for (int i = 0; i < count; ++i)
        ids[static_cast<std::size_t>(i)] = static_cast<Id>(begin + i);
    return QByteArray(reinterpret_cast<const char*>(ids.data()), static_cast<qsizetype>(ids.size() * sizeof(Id)));
}

QByteArray header(std::int32_t magic) {
    QByteArray bytes(1024, '\0');
    std::copy_n(reinterpret_cast<const char*>(&magic), sizeof magic, bytes.data());
    return bytes;
}

void write(const QString& path, const QByteArray& content) {
    QFile file(path);
    QVERIFY(file.open(QIODevice::WriteOnly));
    QCOMPARE(file.write(content), content.size());
}

/// Smallest and largest token of many samples, of which each must be consecutive.
std::pair<int, int> range(const engine::Dataset& data, bool heldOut) {
    int smallest = 1 << 30;
    int largest = -1;
    for (std::int64_t i = 0; i < 3000; ++i) {
        std::int32_t tokens[kSequence];
        std::int32_t targets[kSequence];
        heldOut ? data.heldOutSample(i, tokens, targets) : data.trainingSample(i / 7, i % 7, tokens, targets);
        for (std::int64_t t = 0; t < kSequence; ++t)
            if (targets[t] != tokens[t] + 1 || tokens[t] != tokens[0] + t)
                return {-1, -1};
        smallest = std::min(smallest, tokens[0]);
        largest = std::max(largest, targets[kSequence - 1]);
    }
    return {smallest, largest};
}

} // namespace

/// Token ids from files.
class TokenDataTest : public QObject {
    Q_OBJECT

private Q_SLOTS:
    void windowsAreConsecutive_data();
    void windowsAreConsecutive();
    void filesWithValAreHeldOut();
    void badFilesAreNamed_data();
    void badFilesAreNamed();
};

void TokenDataTest::windowsAreConsecutive_data() {
    QTest::addColumn<QByteArray>("first");
    QTest::addColumn<QByteArray>("second");
    QTest::addColumn<int>("vocabulary");
    QTest::newRow("16 bits") << consecutive<quint16>(0, 130) << consecutive<quint16>(130, 70) << 300;
    QTest::newRow("32 bits") << consecutive<quint32>(0, 130) << consecutive<quint32>(130, 70) << 100'000;
    QTest::newRow("headers of 16 bits") << header(20240520) + consecutive<quint16>(0, 130)
                                        << header(20240520) + consecutive<quint16>(130, 70) << 100'000;
    QTest::newRow("headers of 32 bits") << header(20240801) + consecutive<quint32>(0, 130)
                                        << header(20240801) + consecutive<quint32>(130, 70) << 300;
    QTest::newRow("one of them short") << consecutive<quint16>(0, 3) << consecutive<quint16>(3, 197) << 300;
}

/// Over the border of two files too; the last tenth of 200 tokens is held out and nothing of it is trained on.
void TokenDataTest::windowsAreConsecutive() {
    QFETCH(const QByteArray, first);
    QFETCH(const QByteArray, second);
    QFETCH(const int, vocabulary);
    const QTemporaryDir folder;
    write(folder.filePath("a.bin"), first);
    write(folder.filePath("b.bin"), second);
    const auto data = engine::openDataset({folder.path().toStdString(), 1, kSequence, vocabulary});
    QVERIFY2(data, data ? "" : data.error().message.c_str());
    QCOMPARE(range(**data, false), (std::pair{0, 179}));
    QCOMPARE(range(**data, true), (std::pair{180, 199}));
}

void TokenDataTest::filesWithValAreHeldOut() {
    const QTemporaryDir folder;
    write(folder.filePath("corpus_train_0.bin"), consecutive<quint16>(0, 100));
    write(folder.filePath("corpus_val_0.bin"), consecutive<quint16>(200, 50));
    const auto data = engine::openDataset({folder.path().toStdString(), 1, kSequence, 300});
    QVERIFY2(data, data ? "" : data.error().message.c_str());
    QCOMPARE(range(**data, false), (std::pair{0, 99}));
    QCOMPARE(range(**data, true), (std::pair{200, 249}));
}

void TokenDataTest::badFilesAreNamed_data() {
    QTest::addColumn<QByteArray>("content");
    QTest::addColumn<QString>("named");
    QTest::newRow("empty") << QByteArray() << "is empty";
    QTest::newRow("half an id") << QByteArray(201, '\0') << "whole number of ids";
    QTest::newRow("outside the vocabulary") << consecutive<quint16>(101, 200) << "token 199 is 300";
    QTest::newRow("too few") << consecutive<quint16>(0, 80) << "held-out part has 8 tokens";
}

void TokenDataTest::badFilesAreNamed() {
    QFETCH(const QByteArray, content);
    QFETCH(const QString, named);
    const QTemporaryDir folder;
    write(folder.filePath("bad.bin"), content);
    const auto data = engine::openDataset({folder.filePath("bad.bin").toStdString(), 1, kSequence, 300});
    QVERIFY(!data);
    QCOMPARE(data.error().kind, contract::ErrorKind::BadInput);
    QVERIFY2(data.error().message.find("bad.bin") != std::string::npos, data.error().message.c_str());
    QVERIFY2(data.error().message.find(named.toStdString()) != std::string::npos, data.error().message.c_str());
}

QTEST_GUILESS_MAIN(TokenDataTest)
#include "tst_token_data.moc"
