// SPDX-License-Identifier: GPL-3.0-or-later
#include "runtime/data/Dataset.h"
#include "runtime/data/Tokenizer.h"

#include <QtCore/QDir>
#include <QtCore/QFile>
#include <QtCore/QTemporaryDir>
#include <QtTest/QtTest>

#include <algorithm>
#include <set>

using namespace shardscope;

namespace {

constexpr std::int64_t kSequence = 8;
const std::string kTokenizer = SHARDSCOPE_SOURCE_DIR "/tests/engine/data/tokenizers/gpt2";

void write(const QString& path, const QByteArray& content) {
    QFile file(path);
    QVERIFY(file.open(QIODevice::WriteOnly));
    QCOMPARE(file.write(content), content.size());
}

} // namespace

/// Text of files as tokens.
class TextDataTest : public QObject {
    Q_OBJECT

private Q_SLOTS:
    void init();
    void windowsAreOfTheEncodedText();
    void everyRankHasTheSame();
    void whatDoesNotFitIsRefused();
    void progressIsSaid();

private:
    engine::DatasetRequest request(std::int64_t vocabulary = 700) const {
        return {m_folder.path().toStdString(), 1, kSequence, vocabulary, kTokenizer};
    }
    QTemporaryDir m_folder;
};

void TextDataTest::init() {
    QDir(m_folder.path()).mkpath("inner");
    write(m_folder.filePath("a.txt"), QByteArray("The loss of sharded plans. ").repeated(40));
    write(m_folder.filePath("inner/b.txt"), QByteArray("Zw\xc3\xb6lf\n\xff\xfe").repeated(60));
}

void TextDataTest::windowsAreOfTheEncodedText() {
    auto tokenizer = engine::Tokenizer::open(kTokenizer);
    QVERIFY(tokenizer);
    std::vector<std::int32_t> ids;
    for (const char* const name : {"a.txt", "inner/b.txt"}) { // each on its own, in the order of their names
        QFile file(m_folder.filePath(name));
        QVERIFY(file.open(QIODevice::ReadOnly));
        QVERIFY((*tokenizer)->encode(file.readAll().toStdString(), ids));
    }
    const auto data = engine::openDataset(request());
    QVERIFY2(data, data ? "" : data.error().message.c_str());
    const std::size_t heldOutBegin = ids.size() - ids.size() / 10;
    std::set<std::ptrdiff_t> begins;
    for (std::int64_t i = 0; i < 400; ++i)
        for (const bool heldOut : {false, true}) {
            std::vector<std::int32_t> window(kSequence + 1);
            std::int32_t targets[kSequence];
            heldOut ? (*data)->heldOutSample(i, window.data(), targets)
                    : (*data)->trainingSample(i, i, window.data(), targets);
            QVERIFY(std::equal(targets, targets + kSequence - 1, window.data() + 1));
            window.back() = targets[kSequence - 1];
            const auto from = ids.begin() + static_cast<std::ptrdiff_t>(heldOut ? heldOutBegin : 0);
            const auto to = heldOut ? ids.end() : ids.begin() + static_cast<std::ptrdiff_t>(heldOutBegin);
            const auto found = std::search(from, to, window.begin(), window.end());
            QVERIFY(found != to);
            begins.insert(found - ids.begin());
        }
    QVERIFY(begins.size() > 20);
}

void TextDataTest::everyRankHasTheSame() {
    const auto one = engine::openDataset(request());
    const auto other = engine::openDataset(request());
    QVERIFY(one && other);
    for (std::int64_t i = 0; i < 50; ++i) {
        std::int32_t a[2][kSequence];
        std::int32_t b[2][kSequence];
        (*one)->trainingSample(3, i, a[0], a[1]);
        (*other)->trainingSample(3, i, b[0], b[1]);
        QVERIFY(std::equal(&a[0][0], &a[0][0] + 2 * kSequence, &b[0][0]));
    }
}

void TextDataTest::whatDoesNotFitIsRefused() {
    const auto refused = [](const engine::DatasetRequest& asked, const char* named, contract::ErrorKind kind) {
        const auto opened = engine::openDataset(asked);
        const auto checked = engine::checkDataset(asked);
        return !opened && !checked && opened.error().message == checked.error().message &&
               opened.error().kind == kind && opened.error().message.find(named) != std::string::npos;
    };
    QVERIFY(engine::checkDataset(request()));
    QVERIFY(refused(request(699), "needs a vocabulary of 700; the plan's graph.architecture.vocabulary is 699",
                    contract::ErrorKind::BadInput));
    engine::DatasetRequest asked = request();
    asked.name = m_folder.filePath("a.txt").toStdString();
    asked.sequence = 1000;
    QVERIFY(refused(asked, "sequences of 1000 tokens need at least 10010", contract::ErrorKind::BadInput));
    asked = request();
    asked.name = "builtin:addition";
    QVERIFY(refused(asked, "leave the option out", contract::ErrorKind::Usage));
    asked = request();
    asked.name = m_folder.filePath("nothing").toStdString();
    QVERIFY(refused(asked, "there is no such file", contract::ErrorKind::BadInput));
    asked = request();
    asked.tokenizer = m_folder.path().toStdString();
    QVERIFY(refused(asked, "tokenizer.json: cannot be opened", contract::ErrorKind::BadInput));
}

void TextDataTest::progressIsSaid() {
    std::vector<std::string> said;
    engine::DatasetRequest asked = request(802);
    asked.tokenizer = SHARDSCOPE_SOURCE_DIR "/tests/engine/data/tokenizers/llama3/tokenizer.json";
    asked.say = [&](const std::string& line) { said.push_back(line); };
    QVERIFY(engine::openDataset(asked));
    QCOMPARE(said.size(), std::size_t{2}); // the post-processor that is left out, and what came out
    QVERIFY(said[0].find("post_processor") != std::string::npos);
    QVERIFY(said[1].starts_with("encoded 0.0 MB of text as "));
    write(m_folder.filePath("inner/long.txt"), QByteArray("word ").repeated(100'000));
    asked.isStopped = [] { return true; };
    const auto stopped = engine::openDataset(asked);
    QVERIFY(!stopped);
    QCOMPARE(stopped.error().kind, contract::ErrorKind::Interrupted);
    QFile::remove(m_folder.filePath("inner/long.txt"));
}

QTEST_GUILESS_MAIN(TextDataTest)
#include "tst_text_data.moc"
