// SPDX-License-Identifier: GPL-3.0-or-later
// How quick the window is: its first picture, a drag of the budget, a graph of 10,000 nodes, the map of 100,000
// operators, a run of a million steps, and what memory it takes. Prints a table and asserts nothing.
//   bench_window [first] [drag] [onnx] [map] [steps]
#include "app/layout/MapRows.h"
#include "app/look/Theme.h"
#include "app/views/FrontierView.h"
#include "app/views/OperatorMap.h"
#include "app/views/PlanPage.h"
#include "app/views/RunPage.h"
#include "app/window/MainWindow.h"
#include "runtime/contract/Bytes.h"
#include "support/OnnxText.h"

#include <QApplication>
#include <QElapsedTimer>
#include <QFile>
#include <QProcess>
#include <QStandardPaths>
#include <QTemporaryDir>
#include <QTimer>

#include <algorithm>
#include <cstdio>
#include <functional>
#include <memory>
#include <unistd.h>
#include <vector>

using namespace shardscope;
using namespace shardscope::app;

namespace {

constexpr int kPatience = 120000;

void show(const char* what, const QString& figure, const char* goal) {
    std::printf("%-66s %22s   (goal %s)\n", what, qPrintable(figure), goal);
    std::fflush(stdout);
}

QString milliseconds(double value) {
    return QString::number(value, 'f', value < 10 ? 2 : 0) + " ms";
}

bool waitUntil(const std::function<bool()>& isDone) {
    QElapsedTimer clock;
    clock.start();
    while (!isDone() && clock.elapsed() < kPatience)
        QCoreApplication::processEvents(QEventLoop::WaitForMoreEvents | QEventLoop::AllEvents, 20);
    return isDone();
}

double percentile(std::vector<double> values, double share) {
    std::sort(values.begin(), values.end());
    return values.empty() ? -1 : values[static_cast<std::size_t>(share * static_cast<double>(values.size() - 1))];
}

/// Seconds since this process began, by the kernel's clock.
double secondsSinceStart() {
    QFile stat("/proc/self/stat"), uptime("/proc/uptime");
    if (!stat.open(QIODevice::ReadOnly) || !uptime.open(QIODevice::ReadOnly))
        return -1;
    const QByteArray text = stat.readAll();
    const double started = text.mid(text.lastIndexOf(')') + 2).split(' ').value(19).toDouble() /
                           static_cast<double>(::sysconf(_SC_CLK_TCK));
    return uptime.readAll().split(' ').value(0).toDouble() - started;
}

std::int64_t residentBytes() {
    QFile statm("/proc/self/statm");
    return statm.open(QIODevice::ReadOnly)
               ? statm.readAll().split(' ').value(1).toLongLong() * static_cast<std::int64_t>(::sysconf(_SC_PAGESIZE))
               : 0;
}

/// Tells how long the event loop was away at most.
class Heartbeat : public QObject {
public:
    Heartbeat() {
        m_timer.setTimerType(Qt::PreciseTimer);
        QObject::connect(&m_timer, &QTimer::timeout, this, [this] {
            m_longest = std::max(m_longest, static_cast<double>(m_clock.nsecsElapsed()) / 1e6 - kBeat);
            m_clock.restart();
        });
        m_clock.start();
        m_timer.start(kBeat);
    }
    double longest() const { return m_longest; }

private:
    static constexpr int kBeat = 5;
    QTimer m_timer;
    QElapsedTimer m_clock;
    double m_longest = 0;
};

/// Counts paints of a widget.
class PaintSpy : public QObject {
public:
    explicit PaintSpy(QWidget& widget) { widget.installEventFilter(this); }
    int count() const { return m_count; }

protected:
    bool eventFilter(QObject* watched, QEvent* event) override {
        if (event->type() == QEvent::Paint)
            ++m_count;
        return QObject::eventFilter(watched, event);
    }

private:
    int m_count = 0;
};

struct Window {
    Theme theme{*qApp};
    MainWindow window{theme};
    Window() {
        window.resize(1280, 800);
        window.show();
    }
    Document& document() { return window.document(); }
    bool isAnswered() {
        const auto answer = document().answer();
        return answer && answer->choices == document().choicesPointer();
    }
    bool open(const QString& graph, const QString& cluster) {
        document().open(graph, cluster, 0);
        return waitUntil([this] {
            return document().isOpen() && isAnswered() && document().answer()->isFinal && document().surroundings() &&
                   document().surroundings()->isFinal;
        });
    }
};

/// In a process of its own: from its start to the window's first paint.
int printFirstPaint() {
    Window window;
    PaintSpy paints(window.window);
    waitUntil([&] { return paints.count() > 0; });
    std::printf("%.0f\n", secondsSinceStart() * 1e3);
    return 0;
}

void firstPaint(const QString& program) {
    std::vector<double> times;
    for (int i = 0; i < 6; ++i) {
        QProcess process;
        process.start(program, {"--first-paint"});
        process.waitForFinished(30000);
        if (i > 0) // the first one warms the caches
            times.push_back(process.readAllStandardOutput().trimmed().toDouble());
    }
    show("process start to first paint, median of 5", milliseconds(percentile(times, 0.5)), "500 ms");
}

void dragging(const char* graph, const char* cluster) {
    Window window;
    if (!window.open(graph, cluster)) {
        std::printf("%s cannot be planned\n", graph);
        return;
    }
    PaintSpy paints(window.window.planPage().map());
    std::vector<double> times, exact;
    const std::int64_t card = window.document().choices().cardBytes();
    const int key = window.document().newMergeKey();
    window.document().setDragging(true);
    for (int i = 0; i < 300; ++i) {
        const double share = 0.35 + 0.6 * ((i * 37) % 300) / 300.0;
        const int before = paints.count();
        QElapsedTimer clock;
        clock.start();
        window.document().setBudget(static_cast<std::int64_t>(share * static_cast<double>(card)), key);
        waitUntil([&] { return window.isAnswered() && paints.count() > before; });
        times.push_back(static_cast<double>(clock.nsecsElapsed()) / 1e6);
    }
    window.document().setDragging(false);
    const QString name = QStringLiteral("%1 on %2: budget moved to plan painted, p50 / p99").arg(graph, cluster);
    show(qPrintable(name), milliseconds(percentile(times, 0.5)) + " / " + milliseconds(percentile(times, 0.99)),
         "p99 33 ms");
    std::printf("%-66s %22s   (goal 300 MiB)\n", "  memory of the process then",
                qPrintable(QString::number(residentBytes() >> 20) + " MiB"));
}

void tenThousandNodes(const QString& folder) {
    const QString path = folder + "/large.onnx";
    QFile file(path);
    const std::string bytes = test::onnx_text::tenThousandNodes();
    if (!file.open(QIODevice::WriteOnly) || file.write(bytes.data(), static_cast<qint64>(bytes.size())) < 0)
        return;
    file.close();
    Window window;
    waitUntil([&] { return window.window.isVisible(); });
    PaintSpy paints(window.window.planPage().map());
    QElapsedTimer clock;
    clock.start();
    Heartbeat heartbeat;
    window.document().openPath(path);
    waitUntil([&] { return window.isAnswered() && paints.count() > 0; });
    show("ONNX of 10,000 nodes: opened to first picture", milliseconds(static_cast<double>(clock.elapsed())), "1 s");
    show("  longest absence of the event loop meanwhile", milliseconds(heartbeat.longest()), "none");
}

/// The map alone, with the rows of a plan repeated until there are so many operators, no two alike.
void largeMap() {
    constexpr std::size_t kOperators = 100'000;
    Window window;
    if (!window.open("gpt3-175b", "16x8-h100"))
        return;
    const std::vector<MapRow> few = mapRows(*window.document().answer()->plan);
    std::vector<MapRow> rows;
    while (rows.size() < kOperators) {
        MapRow row = few[rows.size() % few.size()];
        row.op = static_cast<std::int32_t>(rows.size());
        row.block = row.block < 0 ? row.block : static_cast<std::int32_t>(rows.size() / few.size() * 1000) + row.block;
        rows.push_back(row);
    }
    OperatorMap map;
    map.resize(1000, 210);
    QElapsedTimer clock;
    clock.start();
    map.setFolded(false);
    map.setRows(rows, static_cast<std::int32_t>(kOperators / 2));
    const double layout = static_cast<double>(clock.nsecsElapsed()) / 1e6;
    QImage image(map.size(), QImage::Format_ARGB32_Premultiplied);
    std::vector<double> times;
    for (int i = 0; i < 50; ++i) {
        clock.start();
        map.render(&image);
        times.push_back(static_cast<double>(clock.nsecsElapsed()) / 1e6);
    }
    show("operator map of 100,000 operators: one paint, median / worst",
         milliseconds(percentile(times, 0.5)) + " / " + milliseconds(percentile(times, 1)), "5 ms");
    show("  its layout, once for every plan", milliseconds(layout), "none");
}

void millionSteps(const QString& folder) {
    const QString script = folder + "/million.sh";
    QFile file(script);
    if (!file.open(QIODevice::WriteOnly))
        return;
    file.write(
        "#!/bin/sh\n"
        "echo '{\"type\":\"hello\",\"t\":0,\"rank\":-1,\"seq\":0,\"version\":1,\"plan_sha256\":\"x\",\"world\":1,"
        "\"run_dir\":\"/tmp\",\"pid\":'$$',\"steps\":1000000}'\n"
        "exec awk 'BEGIN { for (i = 1; i <= 1000000; ++i) printf(\"{\\\"type\\\":\\\"step\\\",\\\"t\\\":%d,"
        "\\\"rank\\\":0,\\\"seq\\\":%d,\\\"step\\\":%d,\\\"loss\\\":%.5f,\\\"learning_rate\\\":0.001,"
        "\\\"gradient_norm\\\":1.0,\\\"tokens\\\":512,\\\"step_seconds\\\":0.1,\\\"compute_seconds\\\":0.08,"
        "\\\"exposed_communication_seconds\\\":0.01,\\\"tokens_per_second\\\":5120}\\n\", i, i, i, "
        "5 / (1 + i / 1000) + (i % 7) / 10);"
        " print \"{\\\"type\\\":\\\"bye\\\",\\\"t\\\":9,\\\"rank\\\":-1,\\\"seq\\\":1,\\\"status\\\":\\\"done\\\","
        "\\\"steps\\\":1000000,\\\"reason\\\":\\\"\\\"}\" }'\n");
    file.close();
    file.setPermissions(QFile::ReadOwner | QFile::WriteOwner | QFile::ExeOwner);
    Window window;
    window.window.trainer().setProgram(script);
    TrainSettings settings;
    settings.steps = 1000000;
    settings.runDirectory = folder + "/million";
    window.window.showMode(1);
    QElapsedTimer clock;
    clock.start();
    Heartbeat heartbeat;
    const contract::Plan nothing; // the script reads none
    window.window.trainer().start(nothing, settings);
    waitUntil([&] { return window.window.trainer().state() == Trainer::State::Ended; });
    show("1,000,000 steps of telemetry: from start to all shown",
         QString::number(window.window.trainer().record().steps().size()) + " in " +
             milliseconds(static_cast<double>(clock.elapsed())),
         "none lost");
    show("  longest absence of the event loop meanwhile", milliseconds(heartbeat.longest()), "200 ms");
    show("  memory of the process then", QString::number(residentBytes() >> 20) + " MiB", "300 MiB");
}

} // namespace

int main(int argc, char** argv) {
    QApplication application(argc, argv);
    QApplication::setOrganizationName("shardscope-bench");
    QStandardPaths::setTestModeEnabled(true);
    if (argc > 1 && QByteArray(argv[1]) == "--first-paint")
        return printFirstPaint();
    // Names of parts choose them; without any all are measured.
    const QStringList chosen = QApplication::arguments().mid(1);
    const auto isChosen = [&chosen](const char* part) { return chosen.isEmpty() || chosen.contains(part); };
    const QTemporaryDir folder;
    if (isChosen("first"))
        firstPaint(QApplication::applicationFilePath());
    if (isChosen("drag")) {
        dragging("gpt3-175b", "16x8-h100");
        dragging("gpt2-xl", "8x-titan-pcie3");
    }
    if (isChosen("onnx"))
        tenThousandNodes(folder.path());
    if (isChosen("map"))
        largeMap();
    if (isChosen("steps"))
        millionSteps(folder.path());
    return 0;
}
