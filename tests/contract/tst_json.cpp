// SPDX-License-Identifier: GPL-3.0-or-later
#include "runtime/contract/Bytes.h"
#include "runtime/contract/Json.h"
#include "runtime/contract/Placement.h"

#include <QFileInfo>
#include <QTemporaryDir>
#include <QtTest>
#include <nlohmann/json.hpp>

#include <sys/stat.h>

using namespace shardscope::contract;

class TestJson : public QObject {
    Q_OBJECT

private slots:
    void hostileTextIsRefused_data() {
        QTest::addColumn<QByteArray>("text");
        QTest::addColumn<QByteArray>("word");
        QTest::newRow("empty") << QByteArray("") << QByteArray("not valid JSON");
        QTest::newRow("truncated") << QByteArray("{\"a\": [1, 2") << QByteArray("not valid JSON");
        QTest::newRow("duplicate key") << QByteArray("{\"a\":1,\"b\":{\"c\":1,\"c\":2}}") << QByteArray("\"c\" twice");
        QTest::newRow("deep") << QByteArray(100000, '[') << QByteArray("nested deeper");
        QTest::newRow("deep objects") << QByteArray("{\"a\":").repeated(5000) << QByteArray("nested deeper");
        QTest::newRow("invalid UTF-8") << QByteArray("{\"a\": \"\xff\xfe\"}") << QByteArray("not valid JSON");
        QTest::newRow("NaN") << QByteArray("{\"a\": NaN}") << QByteArray("not valid JSON");
        QTest::newRow("1e999") << QByteArray("{\"a\": 1e999}") << QByteArray("not valid JSON");
        QTest::newRow("trailing") << QByteArray("{} {}") << QByteArray("not valid JSON");
    }
    void hostileTextIsRefused() {
        QFETCH(QByteArray, text);
        QFETCH(QByteArray, word);
        const auto result =
            parseJson(std::string_view(text.constData(), static_cast<std::size_t>(text.size())), "some.json");
        QVERIFY(!result);
        QCOMPARE(exitCode(result.error().kind), 3);
        const QByteArray message = QByteArray::fromStdString(result.error().message);
        QVERIFY2(message.startsWith("some.json: "), message.constData());
        QVERIFY2(message.contains(word), message.constData());
    }

    void valuesAreBounded() {
        const auto messageOf = [](const char* text, std::size_t values) {
            const auto document = parseJson(text, "f.json", values);
            return document ? std::string("read") : document.error().message;
        };
        QCOMPARE(messageOf(R"({"a": [1, 2, {}]})", 5), std::string("read"));
        QCOMPARE(messageOf(R"({"a": [1, 2, {}]})", 4), std::string("f.json: has more than 4 values"));
        QCOMPARE(messageOf("[[[[]]]]", 3), std::string("f.json: has more than 3 values"));
        QCOMPARE(messageOf("0", 0), std::string("f.json: has more than 0 values"));
    }

    void whatIsReadIsWhatWasWritten() {
        const char* text =
            R"({"a":[1,-2,2.5,1e3,true,false,null,"t\u00fcx\n",[],{}],"b":{"c":{"d":[[1],[2,[3]]]},"e":0},)"
            R"("f":18446744073709551615,"g":-9223372036854775808,"":""})";
        const auto document = parseJson(text, "f.json");
        QVERIFY(document);
        QCOMPARE(*document, Json::parse(text));
        QVERIFY((*document)["a"][0].is_number_unsigned() && (*document)["a"][1].is_number_integer());
        QVERIFY((*document)["a"][3].is_number_float());
        for (const char* scalar : {"1", "null", "\"x\"", "[]", "{}"})
            QCOMPARE(*parseJson(scalar, "f.json"), Json::parse(scalar));
    }

    void cursorRemembersTheFirstFailureWithItsPath() {
        const Json document = Json::parse(R"({"list": [{"n": -1}, {"n": "x"}]})");
        const JsonCursor root(document, "f.json");
        root.at("list").element(0).at("n").integer(0, 10);
        root.at("missing").text();
        QVERIFY(root.failed());
        QCOMPARE(root.error().value().message,
                 std::string("f.json: list[0].n is -1; it must be an integer from 0 to 10"));
    }

    void unknownKeysAreSaidWithTheNearestKnownOne() {
        const Json document = Json::parse(
            R"({"name": "x", "nmae": 1, "list": [{"size": 1, "szie": 2}, {"size": 1}, {"szie": 3, "other": null}]})");
        const JsonCursor root(document, "f.json");
        root.expectOnly({"name", "list"});
        const JsonCursor list = root.at("list");
        for (std::size_t i = 0; i < list.arraySize(); ++i)
            list.element(i).expectOnly({"size", "bytes"});
        QVERIFY(!root.failed());
        const std::vector<std::string> expected{
            "f.json: nmae is not a key that is known here and is ignored; the nearest known key is \"name\"",
            "f.json: list[0].szie is not a key that is known here and is ignored, as are 1 more like it; the nearest "
            "known key is \"size\"",
            "f.json: list[2].other is not a key that is known here and is ignored; the nearest known key is \"size\""};
        QCOMPARE(root.unknownKeys(), expected);
        list.at("name").text(); // what is no object has no members
        list.expectOnly({"name"});
        QCOMPARE(root.unknownKeys().size(), expected.size());
    }

    void manyUnknownKeysAreFewSentences() {
        Json document = Json::object();
        for (int i = 0; i < 1000; ++i)
            document["key" + std::to_string(i)] = i;
        document[std::string(5000, '\xc3') + "\xbc"] = 0; // cut between characters: there is none before the end
        const JsonCursor root(document, "f.json");
        root.expectOnly({"name"});
        const std::vector<std::string> sentences = root.unknownKeys();
        QCOMPARE(sentences.size(), std::size_t(17));
        QCOMPARE(sentences.back(), std::string("f.json: 985 more keys are ignored, since they are not known here"));
        Json longer = Json::object();
        longer[std::string(63, 'x') + std::string(100, '\n')] = 0;
        const JsonCursor other(longer, "f.json");
        other.expectOnly({"name"});
        QVERIFY(other.unknownKeys().front().size() < 250);
    }

    void aMissingKeyNamesWhatIsThereInstead() {
        const auto messageOf = [](const char* text) {
            const Json document = Json::parse(text);
            const JsonCursor root(document, "f.json");
            root.at("flops_forward").number();
            return root.error().value().message;
        };
        QCOMPARE(messageOf(R"({"flops_foward": 1})"),
                 std::string("f.json: flops_forward is missing (there is \"flops_foward\")"));
        QCOMPARE(messageOf(R"({"flops": 1})"), std::string("f.json: flops_forward is missing"));
    }

    void integersAreExact() {
        const Json document = Json::parse(R"([9007199254740992, 1.5, 1e3, 18446744073709551615, true])");
        const auto fails = [&](std::size_t i) {
            const JsonCursor root(document, "f");
            root.element(i).integer();
            return root.failed();
        };
        QVERIFY(!fails(0));
        QVERIFY(fails(1));
        QVERIFY(fails(2));
        QVERIFY(fails(3));
        QVERIFY(fails(4));
    }

    void filesAreWrittenWholeOrNotAtAll() {
        const QTemporaryDir folder;
        const std::string path = folder.filePath("a.json").toStdString();
        QVERIFY(writeFileAtomically(path, "one").has_value());
        QVERIFY(writeFileAtomically(path, "two").has_value());
        QCOMPARE(*readTextFile(path), std::string("two"));
        QCOMPARE(QDir(folder.path()).entryList(QDir::Files).size(), 1);
        const auto missing = writeFileAtomically(folder.filePath("no/such/a.json").toStdString(), "x");
        QVERIFY(!missing);
        QVERIFY(missing.error().message.find("no/such") != std::string::npos);
        QVERIFY(!readTextFile(folder.path().toStdString()));
    }

    void linksAndDevicesAreNotReplaced() {
        const QTemporaryDir folder;
        const std::string target = folder.filePath("target.json").toStdString();
        const std::string link = folder.filePath("link.json").toStdString();
        QVERIFY(writeFileAtomically(target, "old").has_value());
        QVERIFY(QFile::link(QString::fromStdString(target), QString::fromStdString(link)));
        QVERIFY(writeFileAtomically(link, "new").has_value());
        QCOMPARE(*readTextFile(target), std::string("new"));
        QVERIFY(QFileInfo(QString::fromStdString(link)).isSymLink());
        const std::string fifo = folder.filePath("fifo").toStdString();
        QCOMPARE(::mkfifo(fifo.c_str(), 0600), 0);
        const auto refused = writeFileAtomically(fifo, "x");
        QVERIFY(!refused && refused.error().message.find("not a regular file") != std::string::npos);
        QVERIFY(!readTextFile(fifo));
    }

    void sizes_data() {
        QTest::addColumn<QString>("text");
        QTest::addColumn<qint64>("bytes");
        QTest::newRow("GiB") << "16GiB" << qint64(16) * 1024 * 1024 * 1024;
        QTest::newRow("MiB") << "500MiB" << qint64(500) * 1024 * 1024;
        QTest::newRow("GB") << "24GB" << qint64(24'000'000'000);
        QTest::newRow("plain") << "123456" << qint64(123456);
        QTest::newRow("fraction") << "1.5 GiB" << qint64(1610612736);
        QTest::newRow("B") << "12B" << qint64(12);
        for (const char* wrong : {"", "GiB", "-1GiB", "16gib", "1e40GiB", "16 Gi", "nan", "inf", "0x10", "16GiBs"})
            QTest::newRow(wrong) << wrong << qint64(-1);
    }
    void sizes() {
        QFETCH(QString, text);
        QFETCH(qint64, bytes);
        const auto result = parseBytes(text.toStdString());
        QCOMPARE(result.has_value(), bytes >= 0);
        if (bytes >= 0)
            QCOMPARE(*result, std::int64_t(bytes));
        else
            QCOMPARE(exitCode(result.error().kind), 2);
    }

    void placementsRoundTrip() {
        for (const char* text :
             {"replicate", "keep", "keep@node", "shard", "shard:4", "shard:4:2", "shard:1@node", "shard:16:15@node"}) {
            const auto placement = parsePlacement(text);
            QVERIFY2(placement.has_value(), text);
            QCOMPARE(*parsePlacement(formatPlacement(*placement)), *placement);
        }
        for (const char* text : {"", "replicate:2", "replicate@node", "shard:0", "shard:2:3", "shard:2:0", "shard:-1",
                                 "shard:1:1:1", "Shard", "keep:1", "shard:99999999999"})
            QVERIFY2(!parsePlacement(text), text);
    }
};

QTEST_APPLESS_MAIN(TestJson)
#include "tst_json.moc"
