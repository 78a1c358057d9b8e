// SPDX-License-Identifier: GPL-3.0-or-later
// Reads every #include of ours against the table of rooms: who may include whom.
#include <QDirIterator>
#include <QFile>
#include <QRegularExpression>
#include <QtTest>

namespace {

struct Room {
    QString folder;
    QStringList mayInclude; ///< folders of ours
    QStringList mustNotUse; ///< patterns of foreign headers
};

const QStringList kEngineRooms{"runtime/device",  "runtime/collective", "runtime/memory", "runtime/ops",
                               "runtime/network", "runtime/execute",    "runtime/data",   "runtime/launch"};
const QString kQt = QStringLiteral("^Q[A-Z]|^Qt");
const QString kCuda = QStringLiteral("^cuda|^cublas|^cudnn|^nccl");

QList<Room> rooms() {
    QList<Room> list{{"runtime/contract", {"runtime/contract"}, {kQt, kCuda, "^gloo", "^cblas"}},
                     {"planner", {"planner", "runtime/contract"}, {kQt, kCuda, "^gloo", "^cblas"}},
                     {"app", {"app", "planner", "runtime/contract"}, {kCuda, "^gloo", "^cblas"}}};
    // The timeline plays out a plan, wherever it came from; it does not search.
    list.append({"planner/timeline",
                 {"planner/timeline", "planner/cost", "planner/graph", "planner/search/Planner.h", "runtime/contract"},
                 {}});
    // Inside the planner: sizes and seconds know no tables of others, and those who compare know no command line.
    const QStringList pricing{"planner/cost", "planner/graph", "planner/search", "runtime/contract"};
    list.append({"planner/cost", pricing, {}});
    list.append(
        {"planner/validate", pricing + QStringList{"planner/validate", "planner/readers", "planner/cluster"}, {}});
    for (const QString& engine : kEngineRooms)
        list.append({engine, kEngineRooms + QStringList{"runtime/contract"}, {kQt}});
    return list;
}

bool isUnder(const QString& path, const QString& folder) {
    return path == folder || path.startsWith(folder + '/');
}

/// "file:line: what" for every include that breaks the table.
QStringList violations(const Room& room, const QString& file, const QString& text) {
    static const QRegularExpression include(QStringLiteral("^\\s*#\\s*include\\s*([<\"])([^>\"]+)[>\"]"));
    QStringList found;
    int number = 0;
    for (const QString& line : text.split('\n')) {
        ++number;
        const auto match = include.match(line);
        if (!match.hasMatch())
            continue;
        const QString path = match.captured(2);
        const bool ours = isUnder(path, "app") || isUnder(path, "planner") || isUnder(path, "runtime");
        bool allowed = !ours;
        for (const QString& folder : room.mayInclude)
            allowed = allowed || isUnder(path, folder);
        for (const QString& pattern : room.mustNotUse)
            allowed = allowed && !(match.captured(1) == "<" && QRegularExpression(pattern).match(path).hasMatch());
        if (!allowed)
            found.append(QStringLiteral("%1:%2: %3").arg(file).arg(number).arg(path));
    }
    return found;
}

} // namespace

class TestRooms : public QObject {
    Q_OBJECT

private slots:
    void everyIncludeKeepsToItsRoom() {
        int files = 0;
        QStringList all;
        for (const Room& room : rooms()) {
            QDirIterator it(QStringLiteral(SHARDSCOPE_SOURCE_DIR "/") + room.folder, {"*.h", "*.cpp", "*.cu", "*.cuh"},
                            QDir::Files, QDirIterator::Subdirectories);
            while (it.hasNext()) {
                QFile file(it.next());
                QVERIFY(file.open(QIODevice::ReadOnly));
                all += violations(room, file.fileName(), QString::fromUtf8(file.readAll()));
                ++files;
            }
        }
        QVERIFY2(files > 50, "the source tree was not found");
        QVERIFY2(all.isEmpty(), qPrintable(all.join('\n')));
    }

    void plantedFaultsAreFound() {
        const QList<Room> list = rooms();
        QCOMPARE(violations(list[1], "x.cpp", "#include <QString>\n").size(), 1);
        QCOMPARE(violations(list[1], "x.cpp", "#include \"runtime/execute/Lane.h\"\n").size(), 1);
        QCOMPARE(violations(list[0], "x.cpp", "#include \"planner/graph/Graph.h\"\n").size(), 1);
        QCOMPARE(violations(list[2], "x.cpp", "#include <cuda_runtime.h>\n").size(), 1);
        QCOMPARE(violations(list[3], "x.cpp", "#include \"planner/search/PlanSearch.h\"\n").size(), 1);
        QCOMPARE(violations(list[3], "x.cpp", "#include \"planner/search/Planner.h\"\n").size(), 0);
        QCOMPARE(violations(list[4], "x.cpp", "#include \"planner/validate/Validation.h\"\n").size(), 1);
        QCOMPARE(violations(list[5], "x.cpp", "#include \"planner/cli/Commands.h\"\n").size(), 1);
        QCOMPARE(violations(list[6], "x.cpp", "#include \"planner/graph/Graph.h\"\n").size(), 1);
        QCOMPARE(violations(list[2], "x.cpp", "#include <QString>\n#include \"planner/graph/Graph.h\"\n").size(), 0);
    }

    void sourceFilesStayShort() {
        QStringList tooLong;
        for (const char* folder : {"app", "planner", "runtime", "tests"}) {
            QDirIterator it(QStringLiteral(SHARDSCOPE_SOURCE_DIR "/") + folder, {"*.h", "*.cpp"}, QDir::Files,
                            QDirIterator::Subdirectories);
            while (it.hasNext()) {
                QFile file(it.next());
                QVERIFY(file.open(QIODevice::ReadOnly));
                const auto lines = file.readAll().count('\n');
                if (lines > 500)
                    tooLong.append(QStringLiteral("%1: %2 lines").arg(file.fileName()).arg(lines));
            }
        }
        QVERIFY2(tooLong.isEmpty(), qPrintable(tooLong.join('\n')));
    }
};

QTEST_APPLESS_MAIN(TestRooms)
#include "tst_rooms.moc"
