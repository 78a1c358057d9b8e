// SPDX-License-Identifier: GPL-3.0-or-later
// Token ids against those of the tokenizers library (tests/pytorch/tokenizer_fixtures.py made the fixtures).
#include "runtime/contract/Json.h"
#include "runtime/data/Tokenizer.h"

#include <QtCore/QElapsedTimer>
#include <QtTest/QtTest>
#include <nlohmann/json.hpp>

#include <map>
#include <random>

using namespace shardscope;

namespace {

const std::string kFolder = SHARDSCOPE_SOURCE_DIR "/tests/engine/data/tokenizers/";

std::unique_ptr<engine::Tokenizer> openFixture(const std::string& name) {
    auto tokenizer = engine::Tokenizer::open(kFolder + name);
    if (!tokenizer)
        qFatal("%s", tokenizer.error().message.c_str());
    return std::move(*tokenizer);
}

std::string decode(const engine::Tokenizer& tokenizer, const std::vector<std::int32_t>& ids) {
    std::string text;
    for (const std::int32_t id : ids)
        text += tokenizer.bytesOf(id);
    return text;
}

std::vector<std::int32_t> encode(engine::Tokenizer& tokenizer, const std::string& text) {
    std::vector<std::int32_t> ids;
    if (auto encoded = tokenizer.encode(text, ids); !encoded)
        qFatal("%s", encoded.error().message.c_str());
    return ids;
}

} // namespace

class TokenizerTest : public QObject {
    Q_OBJECT

private Q_SLOTS:
    void idsAreThoseOfTheLibrary();
    void bytesThatAreNoTextComeBack_data();
    void bytesThatAreNoTextComeBack();
    void pairsAreMergedAsByTheDefinition();
    void tokensOfTheVocabularyAreKnown();
    void anEncodingIsStopped();
    void longTextTakesSeconds();
};

void TokenizerTest::idsAreThoseOfTheLibrary() {
    const auto golden = contract::readJsonFile(kFolder + "golden.json");
    QVERIFY(golden);
    std::map<std::string, std::unique_ptr<engine::Tokenizer>> tokenizers;
    int cases = 0;
    for (const contract::Json& entry : golden->at("cases")) {
        const auto name = entry.at("tokenizer").get<std::string>();
        if (!tokenizers.contains(name))
            tokenizers[name] = openFixture(name);
        const auto text = golden->at("texts").at(entry.at("text").get<std::size_t>()).get<std::string>();
        const auto expected = entry.at("ids").get<std::vector<std::int32_t>>();
        // Twice: words come from the cache then.
        for (int time = 0; time < 2; ++time) {
            const auto ids = encode(*tokenizers[name], text);
            QVERIFY2(ids == expected, qPrintable(QStringLiteral("%1: \"%2\": got \"%3\"")
                                                     .arg(QString::fromStdString(name), QString::fromStdString(text),
                                                          QString::fromStdString(contract::Json(ids).dump()))));
            const std::string decoded = entry.value("decoded", text);
            QVERIFY2(decode(*tokenizers[name], ids) == decoded, name.c_str());
        }
        ++cases;
    }
    QVERIFY(tokenizers.size() == 6 && cases >= 6 * 40);
}

void TokenizerTest::bytesThatAreNoTextComeBack_data() {
    QTest::addColumn<QString>("name");
    for (const char* const name : {"gpt2", "llama3", "qwen2"})
        QTest::newRow(name) << name;
}

/// Bytes drawn at random, cut-off characters, surrogates, overlong forms; what is text beside them is encoded as text.
void TokenizerTest::bytesThatAreNoTextComeBack() {
    QFETCH(const QString, name);
    const auto tokenizer = openFixture(name.toStdString());
    std::mt19937 random(7);
    std::string noise(20'000, '\0');
    for (char& byte : noise)
        byte = static_cast<char>(random() % 3 == 0 ? 'a' + random() % 26 : random());
    for (const std::string& bytes :
         {std::string("\xff"), std::string("caf\xc3"), std::string("\xed\xa0\x80"), std::string("\xc0\x80 x"),
          std::string("\xf4\x90\x80\x80"), std::string("\0a\0", 3)})
        QCOMPARE(decode(*tokenizer, encode(*tokenizer, bytes)), bytes);
    if (name != "qwen2") // NFC changes some characters that appear by chance
        QVERIFY(decode(*tokenizer, encode(*tokenizer, noise)) == noise);
    auto whole = encode(*tokenizer, "the model\xfe");
    const auto text = encode(*tokenizer, "the model");
    QCOMPARE(whole.size(), text.size() + 1);
    whole.pop_back();
    QCOMPARE(whole, text);
}

/// The queue against the definition: look for the earliest pair, the leftmost of these, and join it, again and again.
void TokenizerTest::pairsAreMergedAsByTheDefinition() {
    std::array<std::int32_t, 256> bytes{};
    for (std::size_t byte = 0; byte < bytes.size(); ++byte)
        bytes[byte] = static_cast<std::int32_t>(byte);
    std::mt19937 random(1);
    for (int round = 0; round < 300; ++round) {
        std::vector<engine::BytePairs::Merge> merges;
        std::map<std::pair<std::int32_t, std::int32_t>, std::pair<int, std::int32_t>> ranks;
        for (int i = 0; i < 12; ++i) {
            const auto any = [&] {
                const auto draw = static_cast<std::int32_t>(random() % (3 + static_cast<unsigned>(i)));
                return draw < 3 ? 'a' + draw : 256 + draw - 3;
            };
            const engine::BytePairs::Merge merge{any(), any(), 256 + i};
            if (ranks.emplace(std::pair(merge.left, merge.right), std::pair(static_cast<int>(merges.size()), 256 + i))
                    .second)
                merges.push_back(merge);
            else
                --i;
        }
        engine::BytePairs pairs(bytes, merges);
        std::string word(1 + random() % 40, 'a');
        for (char& letter : word)
            letter = static_cast<char>('a' + random() % 3);
        std::vector<std::int32_t> expected;
        for (const char letter : word)
            expected.push_back(letter);
        for (;;) {
            auto best = ranks.end();
            std::size_t place = 0;
            for (std::size_t i = 0; i + 1 < expected.size(); ++i)
                if (const auto it = ranks.find({expected[i], expected[i + 1]});
                    it != ranks.end() && (best == ranks.end() || it->second.first < best->second.first)) {
                    best = it;
                    place = i;
                }
            if (best == ranks.end())
                break;
            expected[place] = best->second.second;
            expected.erase(expected.begin() + static_cast<std::ptrdiff_t>(place) + 1);
        }
        std::vector<std::int32_t> ids;
        pairs.encode(word, ids);
        QCOMPARE(ids, expected);
    }
}

void TokenizerTest::tokensOfTheVocabularyAreKnown() {
    const auto tokenizer = openFixture("llama3");
    QCOMPARE(tokenizer->vocabulary(), std::int64_t{802});
    QVERIFY(tokenizer->hasToken(801));
    QVERIFY(!tokenizer->hasToken(802) && !tokenizer->hasToken(-1));
    QCOMPARE(tokenizer->bytesOf(801), std::string_view("<|im_end|>"));
    QCOMPARE(tokenizer->bytesOf(5000), std::string_view());
    // The begin token of its template is not added to what is trained on.
    QCOMPARE(tokenizer->notes().size(), std::size_t{1});
    QVERIFY(tokenizer->notes().front().find("post_processor") != std::string::npos);
    QCOMPARE(tokenizer->sha256().size(), std::size_t{64});
    QCOMPARE(tokenizer->path(), kFolder + "llama3/tokenizer.json");
}

void TokenizerTest::anEncodingIsStopped() {
    const auto tokenizer = openFixture("gpt2");
    std::string text;
    while (text.size() < 1'000'000)
        text += "word ";
    std::vector<std::int32_t> ids;
    std::size_t done = 0;
    const auto encoded = tokenizer->encode(text, ids, [&](std::size_t bytes) {
        done = bytes;
        return bytes < 300'000;
    });
    QVERIFY(!encoded);
    QCOMPARE(encoded.error().kind, contract::ErrorKind::Cancelled);
    QVERIFY(done >= 300'000 && done < 400'000);
}

/// 10 MB of words, most of them different, and a word of 1 MB, which a loop over all pairs would take hours for.
void TokenizerTest::longTextTakesSeconds() {
    const auto tokenizer = openFixture("qwen2");
    std::mt19937 random(3);
    std::string text;
    while (text.size() < 10'000'000) {
        for (unsigned letters = 1 + random() % 9; letters > 0; --letters)
            text += static_cast<char>('a' + random() % 26);
        text += random() % 12 == 0 ? "ö,\n" : " ";
    }
    QElapsedTimer timer;
    timer.start();
    const auto ids = encode(*tokenizer, text);
    const double seconds = static_cast<double>(timer.restart()) / 1000;
    const auto longWord = encode(*tokenizer, std::string(1'000'000, 'e'));
    qInfo("10 MB: %.2f s, %zu tokens; a word of 1 MB: %.2f s, %zu tokens", seconds, ids.size(),
          static_cast<double>(timer.elapsed()) / 1000, longWord.size());
    QVERIFY(seconds < 60); // a few on an idle machine
    QVERIFY(decode(*tokenizer, ids) == text);
}

QTEST_GUILESS_MAIN(TokenizerTest)
#include "tst_tokenizer.moc"
