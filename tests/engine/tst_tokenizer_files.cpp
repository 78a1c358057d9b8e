// SPDX-License-Identifier: GPL-3.0-or-later
// Tokenizer files that are refused: what is not byte-level BPE, contradictions, and files made to break readers.
#include "runtime/contract/Json.h"
#include "runtime/data/ByteAlphabet.h"
#include "runtime/data/Tokenizer.h"

#include <QtCore/QElapsedTimer>
#include <QtCore/QFile>
#include <QtCore/QTemporaryDir>
#include <QtTest/QtTest>
#include <nlohmann/json.hpp>

#include <functional>

using namespace shardscope;
using contract::Json;

namespace {

std::string utf8(std::int32_t character) {
    return QString::fromUcs4(reinterpret_cast<const char32_t*>(&character), 1).toStdString();
}

/// All bytes, "ab", "abc" and an end token.
Json smallest() {
    Json vocabulary = Json::object();
    for (int byte = 0; byte < 256; ++byte)
        vocabulary[utf8(engine::characterOfByte(static_cast<unsigned char>(byte)))] = byte;
    vocabulary["ab"] = 256;
    vocabulary["abc"] = 257;
    return {{"version", "1.0"},
            {"added_tokens", Json::array({{{"id", 258}, {"content", "<end>"}, {"special", true}}})},
            {"normalizer", nullptr},
            {"pre_tokenizer", {{"type", "ByteLevel"}, {"add_prefix_space", false}, {"use_regex", true}}},
            {"decoder", {{"type", "ByteLevel"}}},
            {"model", {{"type", "BPE"}, {"vocab", vocabulary}, {"merges", {"a b", "ab c"}}}}};
}

Json splitBy(const std::string& pattern) {
    Json file = smallest();
    file["pre_tokenizer"] = {
        {"type", "Sequence"},
        {"pretokenizers",
         Json::array(
             {{{"type", "Split"}, {"pattern", {{"Regex", pattern}}}, {"behavior", "Isolated"}, {"invert", false}},
              {{"type", "ByteLevel"}, {"use_regex", false}}})}};
    return file;
}

} // namespace

class TokenizerFilesTest : public QObject {
    Q_OBJECT

    QTemporaryDir m_folder;

    contract::Result<std::unique_ptr<engine::Tokenizer>> open(const std::string& text) {
        QFile file(m_folder.filePath("tokenizer.json"));
        if (!file.open(QIODevice::WriteOnly))
            qFatal("no file");
        file.write(text.data(), static_cast<qint64>(text.size()));
        file.close();
        return engine::Tokenizer::open(m_folder.path().toStdString());
    }

private Q_SLOTS:
    void theSmallestFileIsRead();
    void othersAreRefused_data();
    void othersAreRefused();
    void brokenFilesAreRefused_data();
    void brokenFilesAreRefused();
    void patternsAreReadOrRefused_data();
    void patternsAreReadOrRefused();
    void slowPatternsEnd();
};

void TokenizerFilesTest::theSmallestFileIsRead() {
    const auto tokenizer = open(smallest().dump());
    QVERIFY2(tokenizer, tokenizer ? "" : tokenizer.error().message.c_str());
    std::vector<std::int32_t> ids;
    QVERIFY((*tokenizer)->encode("abcab<end>x", ids));
    QCOMPARE(ids, (std::vector<std::int32_t>{257, 256, 258, 'x'}));
    QVERIFY(!engine::Tokenizer::open("/nowhere/tokenizer.json"));
}

void TokenizerFilesTest::othersAreRefused_data() {
    QTest::addColumn<QString>("pointer"); ///< what of the smallest file is replaced
    QTest::addColumn<QString>("value");
    QTest::addColumn<QString>("named");
    const auto row = [](const char* pointer, const char* value, const char* named) {
        QTest::addRow("%s = %.40s", pointer, value) << pointer << value << named;
    };
    row("/model/type", R"("WordPiece")", R"(model.type is "WordPiece")");
    row("/model/type", R"("Unigram")", R"(model.type is "Unigram")");
    row("/model/type", "7", "model.type must be a string");
    row("/model/byte_fallback", "true", "model.byte_fallback must be false");
    row("/model/dropout", "0.1", "model.dropout must be null or 0");
    row("/model/dropout", R"("x")", "model.dropout must be a number");
    row("/model/continuing_subword_prefix", R"("##")", "model.continuing_subword_prefix");
    row("/model/end_of_word_suffix", R"("</w>")", "model.end_of_word_suffix");
    row("/model/ignore_merges", "1", "model.ignore_merges must be true or false");
    row("/model", "null", "model must be an object");
    row("/model/vocab", "[]", "model.vocab must be an object");
    row("/model/vocab", "{}", "no token for the byte 0x00 (U+0100)");
    row("/model/vocab/a", "-1", "model.vocab gives \"a\" no id");
    row("/model/vocab/a", "1.5", "model.vocab gives \"a\" no id");
    row("/model/vocab/a", R"("3")", "model.vocab gives \"a\" no id");
    row("/model/vocab/a", "2097152", "model.vocab gives \"a\" no id from 0 to 2097151");
    row("/model/vocab/a", "18446744073709551615", "model.vocab gives \"a\" no id");
    row("/model/vocab/ab", "257", "model.vocab gives the id 257 twice");
    row("/model/merges", "7", "model.merges must be an array");
    row("/model/merges/0", R"("ab")", "model.merges[0] must be two tokens");
    row("/model/merges/0", R"("a b c")", "model.merges[0] must be two tokens");
    row("/model/merges/0", R"(["a"])", "model.merges[0] must be two tokens");
    row("/model/merges/0", R"(["a","b","c"])", "model.merges[0] has 3 elements");
    row("/model/merges/0", R"(["a",7])", "model.merges[0][1] must be a string");
    row("/model/merges/0", "{}", "model.merges[0] must be an array");
    row("/model/merges/1", R"("q r")", "model.merges[1] needs \"qr\", which is not in model.vocab");
    row("/model/merges/1", R"("ab unheard")", "model.merges[1] needs \"unheard\"");
    row("/normalizer", R"({"type":"Lowercase"})", R"(normalizer.type is "Lowercase")");
    row("/normalizer", R"({"type":"Sequence","normalizers":[]})", R"(normalizer.type is "Sequence")");
    row("/normalizer", "7", "normalizer must be an object");
    row("/pre_tokenizer", "null", "pre_tokenizer must be an object");
    row("/pre_tokenizer", R"({"type":"Metaspace"})", R"(pre_tokenizer.type is "Metaspace")");
    row("/pre_tokenizer", R"({"type":"Sequence","pretokenizers":[]})", "pre_tokenizer.pretokenizers must hold");
    row("/pre_tokenizer", R"({"type":"Sequence","pretokenizers":[{"type":"Digits"},{"type":"ByteLevel"}]})",
        R"(pre_tokenizer.pretokenizers[0].type is "Digits")");
    row("/pre_tokenizer", R"({"type":"Sequence","pretokenizers":[{"type":"ByteLevel"},{"type":"Split"}]})",
        R"(pre_tokenizer.pretokenizers[0].type is "ByteLevel")");
    row("/pre_tokenizer",
        R"({"type":"Sequence","pretokenizers":[{"type":"Split","pattern":{"Regex":"a"},"behavior":"Contiguous"},{"type":"ByteLevel"}]})",
        R"(pretokenizers[0].behavior is "Contiguous")");
    row("/pre_tokenizer",
        R"({"type":"Sequence","pretokenizers":[{"type":"Split","pattern":{"String":"a"},"behavior":"Isolated"},{"type":"ByteLevel"}]})",
        "pretokenizers[0].pattern.Regex is missing");
    row("/decoder", "null", "decoder must be an object");
    row("/decoder", R"({"type":"WordPiece"})", R"(decoder.type is "WordPiece")");
    row("/version", R"("2.0")", "version must be \"1.0\"");
    row("/added_tokens", "7", "added_tokens must be an array");
    row("/added_tokens/0/id", "-1", "added_tokens[0].id is -1");
    row("/added_tokens/0/id", "99999999", "added_tokens[0].id is 99999999");
    row("/added_tokens/0/id", "256", "added_tokens[0].id is 256, which another token has");
    row("/added_tokens/0/content", R"("")", "added_tokens[0].content must not be empty");
    row("/added_tokens/0/content", R"("ab")", "\"ab\" is token 256 in model.vocab");
    row("/added_tokens/0/special", R"("yes")", "added_tokens[0].special must be true or false");
    row("/added_tokens/1", R"({"id":259,"content":"<end>"})",
        "added_tokens[1].content is \"<end>\", which is added twice");
    row("/added_tokens/1", R"({"id":258,"content":"<other>"})", "added_tokens[1].id is 258, which another token has");
}

void TokenizerFilesTest::othersAreRefused() {
    QFETCH(const QString, pointer);
    QFETCH(const QString, value);
    QFETCH(const QString, named);
    Json file = smallest();
    file[Json::json_pointer(pointer.toStdString())] = Json::parse(value.toStdString());
    const auto tokenizer = open(file.dump());
    QVERIFY(!tokenizer);
    QCOMPARE(tokenizer.error().kind, contract::ErrorKind::BadInput);
    const std::string& message = tokenizer.error().message;
    QVERIFY2(message.find("tokenizer.json: ") != std::string::npos, message.c_str());
    QVERIFY2(message.find(named.toStdString()) != std::string::npos, message.c_str());
}

void TokenizerFilesTest::brokenFilesAreRefused_data() {
    QTest::addColumn<QByteArray>("content");
    QTest::addColumn<QString>("named");
    QTest::newRow("empty") << QByteArray() << "is not valid JSON";
    QTest::newRow("a list") << QByteArray("[]") << "must be an object";
    QTest::newRow("cut off") << QByteArray::fromStdString(smallest().dump().substr(0, 2000)) << "is not valid JSON";
    QTest::newRow("invalid UTF-8") << QByteArray("{\"version\":\"\xff\"}") << "is not valid JSON";
    QTest::newRow("deep") << QByteArray("{\"model\":") + QByteArray(1'000'000, '[') << "nested deeper";
    QTest::newRow("a key twice") << QByteArray(R"({"model":{"vocab":{"a":1,"a":2}}})") << "the key \"a\" twice";
    QTest::newRow("huge") << QByteArray(65 << 20, ' ') << "more than the 67108864";
    QTest::newRow("long token") << QByteArray(R"({"model":{"vocab":{")") + QByteArray(5000, 'a') +
                                       QByteArray(R"(":0},"merges":[]},"decoder":{"type":"ByteLevel"}})")
                                << "a token of 5000 bytes";
    QTest::newRow("merges of millions of empty lists")
        << QByteArray::fromStdString(smallest().dump())
               .replace("[\"a b\",\"ab c\"]", '[' + QByteArray("[],").repeated(3'000'000) + "[]]")
        << "model.merges has 3000001 elements";
}

void TokenizerFilesTest::brokenFilesAreRefused() {
    QFETCH(const QByteArray, content);
    QFETCH(const QString, named);
    QElapsedTimer timer;
    timer.start();
    const auto tokenizer = open(content.toStdString());
    QVERIFY(!tokenizer);
    QCOMPARE(tokenizer.error().kind, contract::ErrorKind::BadInput);
    const std::string& message = tokenizer.error().message;
    QVERIFY2(message.find("tokenizer.json: ") != std::string::npos &&
                 message.find(named.toStdString()) != std::string::npos,
             message.c_str());
    QVERIFY2(message.size() < 1000, message.c_str());
    QVERIFY(timer.elapsed() < 20'000); // two on an idle machine
}

void TokenizerFilesTest::patternsAreReadOrRefused_data() {
    QTest::addColumn<QString>("pattern");
    QTest::addColumn<QString>("named"); ///< empty: it is read
    for (
        const char* const read :
        {R"(\p{L}+|\p{N}{1,3}|[^\s\S]|[\]\[]|\x41\u00e9\x{1F600}|(?i:a|b)|(?<=a)b|a++|\d*?|{|}|a{2}|[\d\w]|\W)",
         R"((?i)'s|x)",
         R"([!"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+| ?[\p{P}\p{S}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)"})
        QTest::newRow(read) << read << "";
    const auto refuse = [](const char* pattern, const char* named) { QTest::newRow(pattern) << pattern << named; };
    refuse("(a+)+$b", "backtracks without bound");
    refuse("(?:a|a)*!!", "backtracks without bound");
    refuse(R"((\s*\s*\s*)*x)", "backtracks without bound");
    refuse("(?:a*)*(?:a*)*(?:a*)*(?:a*)*\\x{2}", "backtracks without bound");
    refuse("(", "is no regular expression");
    refuse("[a", "is no regular expression");
    refuse("[z-a]", "is no regular expression");
    refuse(R"(\p{Nonsense})", "is no regular expression");
    refuse(R"(\pL)", "must follow it");
    refuse("a**", "is no regular expression"); // Oniguruma reads it, PCRE2 does not
    refuse("((a{1000}){1000}){1000}", "is no regular expression");
    refuse("[a[bc]]", "[ in a class");
    refuse("[a&&b]", "&& in a class");
    refuse("[]a]", "empty class");
    refuse(R"([\W])", "\\W");
    refuse(R"(\h)", "\\h");
    refuse(R"(\bword\b)", "\\b");
    refuse(R"((a)\1)", "\\1");
    refuse("(?R)", "a group that is not read");
    refuse("(?1)", "a group that is not read");
    refuse("(?C1)", "a group that is not read");
    refuse("(*LIMIT_MATCH=1)a", "a group that is not read");
    refuse("(?m)a", "a group that is not read");
    refuse("(?<name>a)", "a group that is not read");
    refuse("a(?i)b", "a group that is not read");
    refuse("a{1,3}+", "after an interval");
    refuse("a{3}?", "after an interval");
    refuse("a{,3}", "without its least number");
    refuse(R"(\x{110000})", "is no regular expression");
    refuse(R"(\x{})", "a code point");
    refuse("\\", "nothing follows");
}

void TokenizerFilesTest::patternsAreReadOrRefused() {
    QFETCH(const QString, pattern);
    QFETCH(const QString, named);
    QElapsedTimer timer;
    timer.start();
    const auto tokenizer = open(splitBy(pattern.toStdString()).dump());
    QVERIFY(timer.elapsed() < 10'000);
    if (named.isEmpty()) {
        QVERIFY2(tokenizer, tokenizer ? "" : tokenizer.error().message.c_str());
        return;
    }
    QVERIFY(!tokenizer);
    const std::string& message = tokenizer.error().message;
    QVERIFY2(message.find("pre_tokenizer.pretokenizers[0].pattern.Regex") != std::string::npos, message.c_str());
    QVERIFY2(message.find(named.toStdString()) != std::string::npos, message.c_str());
}

/// Quadratic ones look harmless on a short text; on a long one they are given up.
void TokenizerFilesTest::slowPatternsEnd() {
    const auto tokenizer = open(splitBy("a*b").dump());
    QVERIFY2(tokenizer, tokenizer ? "" : tokenizer.error().message.c_str());
    std::vector<std::int32_t> ids;
    QElapsedTimer timer;
    timer.start();
    const auto encoded = (*tokenizer)->encode(std::string(3'000'000, 'a'), ids);
    QVERIFY(!encoded);
    QVERIFY2(encoded.error().message.find("is too slow") != std::string::npos, encoded.error().message.c_str());
    QVERIFY(timer.elapsed() < 120'000); // six seconds of processor time
    // A long word is no fault of the pattern, but bounded.
    const auto plain = open(splitBy("\\s+").dump());
    QVERIFY(plain);
    ids.clear();
    const auto tooLong = (*plain)->encode(std::string((16 << 20) + 1, 'a'), ids);
    QVERIFY(!tooLong && tooLong.error().message.find("a word of 16777217 bytes") != std::string::npos);
}

QTEST_GUILESS_MAIN(TokenizerFilesTest)
#include "tst_tokenizer_files.moc"
