// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/export/Exporter.h"

#include "app/look/Theme.h"
#include "app/run/RunRecord.h"
#include "app/views/FrontierView.h"
#include "app/views/LossChart.h"
#include "app/views/MessageStrip.h"
#include "app/views/OperatorMap.h"
#include "app/views/PlanPage.h"
#include "app/views/RunPage.h"
#include "app/window/MainWindow.h"
#include "app/work/Planning.h"

#include <QApplication>
#include <QDir>
#include <QElapsedTimer>
#include <QEventLoop>
#include <QPainter>
#include <QTimer>

namespace shardscope::app {

namespace {

constexpr int kPatienceMilliseconds = 180'000;
/// After this the certified plan is drawn without its proof.
constexpr int kProofMilliseconds = 30'000;
/// Pictures are for paper and screens of twice the density.
constexpr double kScale = 2;

QImage picture(QWidget& widget, const QSize& size) {
    widget.setFixedSize(size);
    widget.ensurePolished();
    QImage image(size * kScale, QImage::Format_RGB32);
    image.setDevicePixelRatio(kScale);
    image.fill(colorsOf(&widget).card);
    widget.render(&image);
    return image;
}

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
    waitUntil(window, [&] {
        return window.document().surroundings() && window.document().surroundings()->isFinal &&
               window.document().comparison();
    });

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
    QApplication::processEvents();
    QImage whole(window.size() * kScale, QImage::Format_RGB32);
    whole.setDevicePixelRatio(kScale);
    window.render(&whole);
    if (!save(whole, QStringLiteral("window.png")))
        return tl::unexpected(unwritable);
    OperatorMap map;
    map.setRows(mapRows(*answer->plan), answer->plan->peakOperator);
    if (!save(picture(map, {1100, 380}), QStringLiteral("map.png")))
        return tl::unexpected(unwritable);
    FrontierView frontier;
    frontier.setPicture(window.planPage().frontier().picture());
    if (!save(picture(frontier, {1100, 320}), QStringLiteral("frontier.png")))
        return tl::unexpected(unwritable);
    if (!record)
        return written;
    LossChart loss;
    loss.resize(900, 320);
    loss.setRecord(*record);
    if (!save(picture(loss, {900, 320}), QStringLiteral("loss.png")))
        return tl::unexpected(unwritable);
    MemoryBars memory;
    memory.setWorkers(record->workers());
    if (!save(picture(memory, {900, 320}), QStringLiteral("memory.png")))
        return tl::unexpected(unwritable);
    return written;
}

} // namespace shardscope::app
