// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/export/Exporter.h"

#include "app/look/Theme.h"
#include "app/run/RunRecord.h"
#include "app/views/MessageStrip.h"
#include "app/views/PlanPage.h"
#include "app/views/PlanTabs.h"
#include "app/views/TimelineView.h"
#include "app/views/WaterfallView.h"
#include "app/window/MainWindow.h"
#include "app/work/Planning.h"

#include <QApplication>
#include <QDir>
#include <QElapsedTimer>
#include <QEventLoop>
#include <QPainter>
#include <QTimer>

#include <algorithm>

namespace shardscope::app {

namespace {

constexpr int kPatienceMilliseconds = 180'000;
/// After this the certified plan is drawn without its proof.
constexpr int kProofMilliseconds = 30'000;
/// Pictures are for paper and screens of twice the density.
constexpr double kScale = 2;

/// Runs the event loop until `isDone`, an error is shown, or patience ends.
template<typename Done> bool waitUntil(MainWindow& window, Done isDone) {
    QElapsedTimer clock;
    clock.start();
    while (!isDone() && window.messages().text().isEmpty() && clock.elapsed() < kPatienceMilliseconds)
        QApplication::processEvents(QEventLoop::WaitForMoreEvents | QEventLoop::AllEvents, 50);
    return isDone();
}

} // namespace

contract::Result<QStringList> exportPictures(const ExportRequest& request) {
    if (!QDir().mkpath(request.directory))
        return contract::runFailed("cannot create the folder " + request.directory.toStdString());
    std::optional<RunRecord> record;
    if (!request.runDirectory.isEmpty()) {
        auto read = RunRecord::readFile(request.runDirectory + QStringLiteral("/run.ndjson"));
        if (!read)
            return tl::unexpected(read.error());
        record = std::move(*read);
    }

    Theme theme(*static_cast<QApplication*>(QCoreApplication::instance()));
    theme.choose(Lightness::Light);
    MainWindow window(theme);
    window.resize(1440, 900);
    // A timer keeps the event loop turning while the planner's threads work.
    QTimer heartbeat;
    heartbeat.start(30);
    window.document().openPath(request.source);
    QElapsedTimer clock;
    clock.start();
    const bool isPlanned = waitUntil(window, [&] {
        const auto newest = window.document().answer();
        return newest && (newest->isFinal || clock.elapsed() > kProofMilliseconds);
    });
    if (!isPlanned)
        return contract::badInput(window.messages().text().isEmpty() ? "planning did not end"
                                                                     : window.messages().text().toStdString());
    const auto answer = window.document().answer();
    if (!answer->plan)
        return contract::usageError(answer->error.toStdString());
    if (!answer->plan->feasible)
        return contract::failure(contract::ErrorKind::Infeasible,
                                 "no plan fits the budget of " + request.source.toStdString());
    PlanTabs& tabs = window.planPage().tabs();
    tabs.showTab(PlanTabs::DifferenceTab);
    const auto hasOther = [&tabs] {
        const auto& rows = tabs.plansTable().rows();
        return std::any_of(rows.begin() + std::min<std::ptrdiff_t>(1, std::ssize(rows)), rows.end(),
                           [](const PlansTable::Row& row) { return row.plan != nullptr; });
    };
    waitUntil(window, [&] {
        const auto& difference = tabs.waterfall().comparison();
        return window.document().surroundings() && window.document().surroundings()->isFinal &&
               window.document().comparison() &&
               (!hasOther() || (difference && difference->a == window.document().answer()->plan));
    });
    tabs.showTab(PlanTabs::TimelineTab);
    waitUntil(window, [&] {
        const auto& step = tabs.timeline().picture();
        return step && step->plan == window.document().answer()->plan;
    });
    ExportContent content = window.exportContent();

    QStringList written;
    const auto save = [&](const QImage& image, const QString& name) {
        const QString path = QDir(request.directory).filePath(name);
        if (!image.save(path))
            return false;
        written << path;
        return true;
    };
    const contract::Error unwritable{contract::ErrorKind::RunFailed,
                                     "cannot write pictures into " + request.directory.toStdString()};

    window.show();
    const auto saveWindow = [&](const QString& name) {
        // Layouts answer to layouts: a few turns until nothing moves.
        for (int turn = 0; turn < 4; ++turn)
            QApplication::processEvents();
        QImage whole(window.size() * kScale, QImage::Format_RGB32);
        whole.setDevicePixelRatio(kScale);
        window.render(&whole);
        return save(whole, name);
    };
    if (!saveWindow(QStringLiteral("window.png")))
        return tl::unexpected(unwritable);
    if (record) {
        window.trainer().attach(request.runDirectory);
        // An ended run is one when its file has been read twice without news; one that goes on is shown as it is.
        QElapsedTimer attached;
        attached.start();
        waitUntil(window, [&] { return !window.trainer().isActive() || attached.elapsed() > 1000; });
        window.showMode(1);
        if (!saveWindow(QStringLiteral("run.png")))
            return tl::unexpected(unwritable);
        content.run = std::make_shared<RunRecord>(std::move(*record));
    }
    content.runDirectory = request.runDirectory;
    window.exportEverything(content, request.directory);
    QString failure;
    bool isDone = false;
    QObject::connect(&window.exporting(), &Exporting::failed, &window,
                     [&failure](const QString& text) { failure = text; });
    QObject::connect(&window.exporting(), &Exporting::finished, &window, [&](const QStringList& paths) {
        written << paths;
        isDone = true;
    });
    waitUntil(window, [&] { return isDone || !failure.isEmpty(); });
    if (!isDone)
        return contract::runFailed(failure.isEmpty() ? "writing did not end" : failure.toStdString());
    return written;
}

} // namespace shardscope::app
