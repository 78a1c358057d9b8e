// SPDX-License-Identifier: GPL-3.0-or-later
#include "runtime/contract/Spelling.h"

#include <QtTest>

#include <string>

using shardscope::contract::editDistance;
using shardscope::contract::nearestWord;

class tst_spelling : public QObject {
    Q_OBJECT

private slots:
    void lettersAreCounted_data() {
        QTest::addColumn<QString>("first");
        QTest::addColumn<QString>("second");
        QTest::addColumn<int>("distance");
        QTest::newRow("nothing") << ""
                                 << "" << 0;
        QTest::newRow("one side") << ""
                                  << "name" << 4;
        QTest::newRow("equal") << "overlap_efficiency"
                               << "overlap_efficiency" << 0;
        QTest::newRow("a letter left out") << "overlap_eficiency"
                                           << "overlap_efficiency" << 1;
        QTest::newRow("a letter too many") << "nodess"
                                           << "nodes" << 1;
        QTest::newRow("another letter") << "nodas"
                                        << "nodes" << 1;
        QTest::newRow("two letters swapped") << "ndoes"
                                             << "nodes" << 1;
        QTest::newRow("swapped at the end") << "nodse"
                                            << "nodes" << 1;
        QTest::newRow("different") << "kitten"
                                   << "sitting" << 3;
    }
    void lettersAreCounted() {
        QFETCH(QString, first);
        QFETCH(QString, second);
        QFETCH(int, distance);
        QCOMPARE(int(editDistance(first.toStdString(), second.toStdString())), distance);
        QCOMPARE(int(editDistance(second.toStdString(), first.toStdString())), distance);
    }

    void theNearestWordIsFound() {
        const auto nearest = [](std::string_view word) {
            return nearestWord(word, {"kind", "name", "tied_to", "latency_seconds", "memory_bandwidth"});
        };
        QCOMPARE(nearest("nmae"), std::string_view("name"));
        QCOMPARE(nearest("tied"), std::string_view("tied_to")); // "kind" has two letters in common with it
        QCOMPARE(nearest("latency"), std::string_view("latency_seconds"));
        QCOMPARE(nearest("bandwidth"), std::string_view("memory_bandwidth"));
        QCOMPARE(nearest(""), std::string_view("kind"));
    }

    void onlyTheBeginningOfAnEndlessWordCounts() {
        const std::string endless(10'000'000, 'n');
        QCOMPARE(int(editDistance(endless, endless + "x")), 0);
        QCOMPARE(int(editDistance(endless, "")), 64);
    }
};

QTEST_GUILESS_MAIN(tst_spelling)
#include "tst_spelling.moc"
