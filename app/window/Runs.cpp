// SPDX-License-Identifier: GPL-3.0-or-later
// What the window learns from runs.
#include "app/look/Units.h"
#include "app/run/TrainCheck.h"
#include "app/views/MessageStrip.h"
#include "app/views/PlanPage.h"
#include "app/views/PlanTabs.h"
#include "app/views/RunPage.h"
#include "app/window/MainWindow.h"
#include "planner/cluster/Clusters.h"
#include "planner/cluster/Recalibration.h"
#include "runtime/contract/Json.h"

#include <QDir>
#include <QFile>
#include <QFileInfo>
#include <QMetaObject>
#include <QRegularExpression>
#include <nlohmann/json.hpp>

namespace shardscope::app {

namespace {

/// The cluster as it is known now, with the rates with which the run was predicted: what its ratios are of.
contract::Cluster withRatesOf(contract::Cluster now, const contract::Cluster& then) {
    const std::int64_t memory = now.device.memoryBytes;
    now.device = then.device;
    now.device.memoryBytes = memory;
    now.inside = then.inside;
    now.between = then.between;
    now.hostSecondsPerCollective = then.hostSecondsPerCollective;
    now.overlapEfficiency = then.overlapEfficiency;
    now.kernels = then.kernels;
    now.measured = then.measured;
    return now;
}

struct Recalibrated {
    ClusterFileChange change;
    QString error;
};

Recalibrated writeRecalibrated(const RunReview& review) {
    Recalibrated done;
    const contract::Cluster& then = review.plan.cluster;
    const std::string cache = planner::localClusterCachePath();
    if (cache.empty()) {
        done.error = MainWindow::tr("There is no folder for cluster files: neither HOME nor XDG_CACHE_HOME is set");
        return done;
    }
    const auto known = planner::openCluster(then.name);
    const bool isLocal = then.name == "local";
    done.change.path = QString::fromStdString(cache);
    done.change.argument = QStringLiteral("local");
    if (!isLocal) {
        static const QRegularExpression unsafe(QStringLiteral("[^A-Za-z0-9._-]+"));
        done.change.path = QFileInfo(done.change.path).path() + '/' +
                           QString::fromStdString(then.name).replace(unsafe, QStringLiteral("-")) +
                           QStringLiteral("-recalibrated.cluster.json");
        done.change.argument = done.change.path;
    }
    const std::string why = "recalibrated: step " + std::to_string(review.step) + " of the run " +
                            QFileInfo(review.runDirectory).fileName().left(120).toStdString();
    auto cluster =
        planner::recalibrated(known && isLocal ? withRatesOf(*known, then) : then, review.ratio, why.substr(0, 200));
    if (!cluster) {
        done.error = QString::fromStdString(cluster.error().message);
        return done;
    }
    if (!isLocal)
        cluster->title += ", recalibrated";
    QFile file(done.change.path);
    done.change.existed = file.exists();
    if (done.change.existed && file.open(QIODevice::ReadOnly))
        done.change.before = file.readAll();
    QDir().mkpath(QFileInfo(done.change.path).path());
    const auto written =
        contract::writeFileAtomically(done.change.path.toStdString(), contract::toJson(*cluster).dump(2) + "\n");
    if (!written)
        done.error = QString::fromStdString(written.error().message);
    return done;
}

} // namespace

void MainWindow::showReview(const RunReviewPointer& review) {
    m_planPage->tabs().setMeasured(review);
    m_runPage->setReview(review);
}

void MainWindow::runTestStep() {
    const auto answer = m_document.answer();
    const TrainCheck check = checkTraining(answer);
    if (!check.isPossible() || m_trainer.isActive()) {
        m_messages->showMessage(check.isPossible() ? tr("A run is going on.") : check.reason);
        return;
    }
    TrainSettings settings = defaultSettings(*answer->plan->request.graph);
    settings.steps = 1;
    settings.runDirectory += QStringLiteral("-test");
    m_isTestStep = true;
    m_messages->hide();
    m_trainer.start(planner::emitPlan(*answer->plan, "shardscope " SHARDSCOPE_VERSION), settings);
}

void MainWindow::showTestStep() {
    if (!m_isTestStep)
        return;
    m_isTestStep = false;
    const RunRecord& record = m_trainer.record();
    if (!record.failureText().isEmpty() || record.workers().empty())
        return; // that is said already
    const RunWorker* most = nullptr;
    for (const RunWorker& worker : record.workers())
        if (worker.memory && (!most || worker.memory->peakAllocated > most->memory->peakAllocated))
            most = &worker;
    if (!most)
        return;
    const auto predicted = static_cast<double>(most->memory->predicted.total());
    m_messages->showMessage(
        tr("One step was trained: %1 held at most, %2 beside the prediction of %3; the process grew by %4.")
            .arg(bytesText(most->memory->peakAllocated),
                 signedPercentText(static_cast<double>(most->memory->peakAllocated) / predicted - 1),
                 bytesText(most->memory->predicted.total()), bytesText(most->memory->resident)),
        {{tr("Show the run"), [this] { showMode(1); }, false}});
}

void MainWindow::recalibrate() {
    const RunReviewPointer review = m_reviewing.newest();
    if (!review) {
        m_messages->showMessage(tr("There is no run with a traced step yet: the third step is the first that is."));
        return;
    }
    m_writer.submit([this, review](const std::stop_token&) {
        const Recalibrated done = writeRecalibrated(*review);
        QMetaObject::invokeMethod(
            this,
            [this, done, review] {
                if (!done.error.isEmpty()) {
                    m_messages->showMessage(done.error);
                    return;
                }
                const QString usedBefore = QString::fromStdString(m_document.choices().clusterArgument);
                if (!m_document.isOpen()) {
                    showRecalibrated(*review, done.change, {});
                    return;
                }
                // What is said goes when something else is opened, so this is said after it was.
                connect(
                    &m_document, &Document::opened, this,
                    [this, done, review, usedBefore] { showRecalibrated(*review, done.change, usedBefore); },
                    Qt::SingleShotConnection);
                m_document.openCluster(done.change.argument);
            },
            Qt::QueuedConnection);
    });
}

void MainWindow::showRecalibrated(const RunReview& review, const ClusterFileChange& change, const QString& usedBefore) {
    const auto undo = [this, change, usedBefore] {
        // The file as it was, then what was open.
        const bool isBack =
            change.existed
                ? contract::writeFileAtomically(change.path.toStdString(), change.before.toStdString()).has_value()
                : QFile::remove(change.path);
        if (!isBack)
            m_messages->showMessage(tr("%1 cannot be changed back").arg(change.path));
        else if (!usedBefore.isEmpty())
            m_document.openCluster(usedBefore);
    };
    m_messages->showMessage(
        tr("Recalibrated: computing took %1 and communication %2 beside the prediction. Plans for %3 follow.")
            .arg(signedPercentText(review.ratio.compute - 1), signedPercentText(review.ratio.communication - 1),
                 change.argument == QLatin1String("local") ? tr("this machine") : change.path),
        {{tr("Undo"), undo, false}});
}

} // namespace shardscope::app
