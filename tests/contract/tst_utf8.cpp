// SPDX-License-Identifier: GPL-3.0-or-later
#include "runtime/contract/Utf8.h"

#include <QtTest>

#include <string>

using shardscope::contract::isUtf8;
using shardscope::contract::shortened;
using shardscope::contract::toUtf8;
using shardscope::contract::withoutMiddle;

class tst_utf8 : public QObject {
    Q_OBJECT

private slots:
    void textIsWellFormedOrNot_data() {
        QTest::addColumn<QByteArray>("text");
        QTest::addColumn<QByteArray>("valid");
        const QByteArray mark = "\xef\xbf\xbd";
        const auto right = [](const char* what, const QByteArray& text) { QTest::newRow(what) << text << text; };
        const auto wrong = [](const char* what, const QByteArray& text, const QByteArray& valid) {
            QTest::newRow(what) << text << valid;
        };
        right("nothing", "");
        right("ASCII", "plain\n\x7f");
        right("a zero byte", QByteArray("a\0b", 3));
        right("two bytes", "\xc2\x80\xdf\xbf");
        right("three bytes", "\xe0\xa0\x80\xed\x9f\xbf\xee\x80\x80\xef\xbf\xbf");
        right("four bytes", "\xf0\x90\x80\x80\xf4\x8f\xbf\xbf");
        wrong("a byte that continues nothing", "a\x80z", "a" + mark + "z");
        wrong("cut off", "a\xe2\x82", "a" + mark + mark);
        wrong("cut off by another", "\xe2\x82z", mark + mark + "z");
        wrong("longer than need be", "\xc0\x80\xe0\x80\x80", mark + mark + mark + mark + mark);
        wrong("a surrogate", "\xed\xa0\x80", mark + mark + mark);
        wrong("beyond the last character", "\xf4\x90\x80\x80\xf5", mark + mark + mark + mark + mark);
        wrong("bytes that are nowhere", "\xff\xfe", mark + mark);
    }
    void textIsWellFormedOrNot() {
        QFETCH(QByteArray, text);
        QFETCH(QByteArray, valid);
        QCOMPARE(isUtf8(text.toStdString()), text == valid);
        QCOMPARE(QByteArray::fromStdString(toUtf8(text.toStdString())), valid);
        QVERIFY(isUtf8(valid.toStdString()));
    }

    void textIsCutBetweenCharacters() {
        QCOMPARE(shortened("abc", 3), std::string("abc"));
        QCOMPARE(shortened("abcd", 3), std::string("abc..."));
        QCOMPARE(shortened("ab\xe2\x82\xac", 4), std::string("ab..."));
        QCOMPARE(shortened("\xe2\x82\xac\xe2\x82\xac", 3), std::string("\xe2\x82\xac..."));
        std::string message;
        while (message.size() < 2000)
            message += "\xe2\x82\xac";
        QCOMPARE(withoutMiddle("short"), std::string("short"));
        const std::string cut = withoutMiddle("x" + message);
        QVERIFY(cut.size() < 610 && isUtf8(cut) && cut.find(" ... ") != std::string::npos);
    }
};

QTEST_GUILESS_MAIN(tst_utf8)
#include "tst_utf8.moc"
