// SPDX-License-Identifier: GPL-3.0-or-later
// The abstract problem file: what is read, answered and refused.
#include "planner/search/AbstractProblem.h"

#include <QTest>
#include <nlohmann/json.hpp>

#include <cstdint>
#include <string>

using namespace shardscope::planner;

namespace {

const char* const kValid = R"({"format":"shardscope-problem","version":1,"limit_bytes":100,"base_bytes":10,"operators":[
    {"name":"a","options":[{"label":"x","state_bytes":50,"transient_bytes":0,"nanoseconds":3},
                           {"label":"y","state_bytes":10,"transient_bytes":20,"nanoseconds":5}]},
    {"name":"b","options":[{"label":"u","state_bytes":40,"transient_bytes":0,"nanoseconds":2},
                           {"label":"v","state_bytes":5,"transient_bytes":30,"nanoseconds":9}]}]})";

} // namespace

class tst_abstract_problem_file : public QObject {
    Q_OBJECT

private slots:
    void readsAndAnswers() {
        const auto problem = readAbstractProblem(kValid, "p.json");
        QVERIFY2(problem.has_value(), problem ? "" : problem.error().message.c_str());
        QCOMPARE(problem->operators.size(), 2u);
        const auto json = toJson(*solveAbstractProblem(*problem));
        QCOMPARE(json["feasible"].get<bool>(), true);
        QCOMPARE(json["proven_optimal"].get<bool>(), true);
        QCOMPARE(json["nanoseconds"].get<std::int64_t>(), 5);
        QCOMPARE(json["peak_bytes"].get<std::int64_t>(), 100);
        QCOMPARE(json["lower_bound_nanoseconds"].get<std::int64_t>(), 5);
        QCOMPARE(json["gap"].get<double>(), 0.0);
        QCOMPARE(json["choice"].dump(), std::string(R"(["x","u"])"));
        QCOMPARE(json["smallest_feasible_bytes"].get<std::int64_t>(), 55);
        QVERIFY(json["solve_milliseconds"].is_number());
    }

    void answersInfeasible() {
        auto problem = *readAbstractProblem(kValid, "p.json");
        problem.limitBytes = 54;
        const auto json = toJson(*solveAbstractProblem(problem));
        QCOMPARE(json["feasible"].get<bool>(), false);
        QCOMPARE(json["smallest_feasible_bytes"].get<std::int64_t>(), 55);
        problem.limitBytes = 55;
        QVERIFY(solveAbstractProblem(problem)->feasible);
    }

    void refusesHostileFiles_data() {
        QTest::addColumn<QByteArray>("from");
        QTest::addColumn<QByteArray>("to");
        QTest::addColumn<QByteArray>("named");
        const auto row = [](const char* name, const char* from, const char* to, const char* named) {
            QTest::newRow(name) << QByteArray(from) << QByteArray(to) << QByteArray(named);
        };
        row("other format", "shardscope-problem", "shardscope-plan", "format");
        row("unknown version", "\"version\":1", "\"version\":2", "version");
        row("version is text", "\"version\":1", "\"version\":\"1\"", "version");
        row("no limit", "\"limit_bytes\":100,", "", "limit_bytes");
        row("negative limit", "\"limit_bytes\":100", "\"limit_bytes\":-1", "limit_bytes");
        row("fraction", "\"limit_bytes\":100", "\"limit_bytes\":100.5", "limit_bytes");
        row("above 2^53", "\"limit_bytes\":100", "\"limit_bytes\":9007199254740993", "limit_bytes");
        row("above 2^64", "\"limit_bytes\":100", "\"limit_bytes\":99999999999999999999", "limit_bytes");
        row("null base", "\"base_bytes\":10", "\"base_bytes\":null", "base_bytes");
        row("text number", "\"state_bytes\":10", "\"state_bytes\":\"10\"", "operators[0].options[1].state_bytes");
        row("negative state", "\"state_bytes\":5,", "\"state_bytes\":-5,", "operators[1].options[1].state_bytes");
        row("negative transient", "\"transient_bytes\":30", "\"transient_bytes\":-30",
            "operators[1].options[1].transient_bytes");
        row("no time", ",\"nanoseconds\":9", "", "operators[1].options[1].nanoseconds");
        row("boolean time", "\"nanoseconds\":9", "\"nanoseconds\":true", "operators[1].options[1].nanoseconds");
        row("label is a number", "\"label\":\"y\"", "\"label\":7", "operators[0].options[1].label");
        row("repeated label", "\"label\":\"y\"", "\"label\":\"x\"", "operators[0].options[1].label");
        row("name is missing", "\"name\":\"b\",", "", "operators[1].name");
        row("repeated key", "\"base_bytes\":10", "\"base_bytes\":10,\"base_bytes\":11", "base_bytes");
        row("cut off", "]}]}", "]}", "p.json");
        row("not JSON", "{\"format\"", "format", "p.json");
    }
    void refusesHostileFiles() {
        QFETCH(QByteArray, from);
        QFETCH(QByteArray, to);
        QFETCH(QByteArray, named);
        QByteArray text(kValid);
        const auto at = text.indexOf(from);
        QVERIFY(at >= 0);
        text.replace(at, from.size(), to);
        const auto problem = readAbstractProblem({text.constData(), static_cast<std::size_t>(text.size())}, "p.json");
        QVERIFY(!problem.has_value());
        QCOMPARE(problem.error().kind, shardscope::contract::ErrorKind::BadInput);
        const QByteArray message(problem.error().message.c_str());
        QVERIFY2(message.contains(named) && message.contains("p.json"), message.constData());
    }

    void refusesWrongShapes() {
        for (
            const std::string text :
            {"", "[]", "null", "7", "\"x\"", "{}",
             R"({"format":"shardscope-problem","version":1,"limit_bytes":1,"base_bytes":0})",
             R"({"format":"shardscope-problem","version":1,"limit_bytes":1,"base_bytes":0,"operators":{}})",
             R"({"format":"shardscope-problem","version":1,"limit_bytes":1,"base_bytes":0,"operators":[7]})",
             R"({"format":"shardscope-problem","version":1,"limit_bytes":1,"base_bytes":0,"operators":[{"name":"a"}]})",
             R"({"format":"shardscope-problem","version":1,"limit_bytes":1,"base_bytes":0,"operators":[{"name":"a","options":[]}]})",
             R"({"format":"shardscope-problem","version":1,"limit_bytes":1,"base_bytes":0,"operators":[{"name":"a","options":[[]]}]})"})
            QVERIFY2(!readAbstractProblem(text, "p.json").has_value(), text.c_str());
        QVERIFY(!readAbstractProblem(std::string(100'000, '['), "p.json").has_value());
    }

    void refusesSumsThatOverflow() {
        std::string text = R"({"format":"shardscope-problem","version":1,"limit_bytes":1,"base_bytes":0,"operators":[)";
        for (int i = 0; i < 600; ++i) {
            text += i > 0 ? "," : "";
            text +=
                R"({"name":"a","options":[{"label":"x","state_bytes":9007199254740992,"transient_bytes":0,"nanoseconds":1}]})";
        }
        const auto problem = readAbstractProblem(text + "]}", "p.json");
        QVERIFY(!problem.has_value());
        QVERIFY(problem.error().message.find("operators[512]") != std::string::npos ||
                problem.error().message.find("operators[511]") != std::string::npos);
    }
};

QTEST_APPLESS_MAIN(tst_abstract_problem_file)
#include "tst_abstract_problem_file.moc"
