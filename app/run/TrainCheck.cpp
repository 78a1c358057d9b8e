// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/run/TrainCheck.h"

#include "app/document/Verdict.h"
#include "runtime/contract/NativeEngine.h"

#include <QCoreApplication>
#include <QDateTime>
#include <QStandardPaths>

#include <algorithm>

namespace shardscope::app {

namespace {

QString translate(const char* text) {
    return QCoreApplication::translate("TrainCheck", text);
}

} // namespace

TrainCheck checkTraining(const AnswerPointer& answer) {
    TrainCheck check;
    check.buttonText = translate("Train");
    if (!answer || !answer->plan) {
        check.reason = translate("There is no plan to train");
        return check;
    }
    const contract::Cluster& cluster = answer->choices->cluster;
    const planner::PlanResult& plan = *answer->plan;
    check.buttonText = translate("Train on %1 %2").arg(cluster.devices()).arg(deviceWord(cluster, cluster.devices()));
    const auto& graph = plan.request.graph;
    // What has an architecture is a decoder that the engine can build; it says itself what else it cannot do.
    const bool isOurs = graph && graph->architecture;
    if (!isOurs) {
        const QString family = graph ? QString::fromStdString(graph->family) : translate("this graph");
        check.reason = translate("Our engine does not train %1 yet").arg(family);
        return check;
    }
    const bool isHere = answer->choices->clusterArgument == "local" || cluster.isCpu;
    check.canReplan = !isHere;
    if (!plan.feasible) {
        check.reason = translate("No plan fits this budget");
        return check;
    }
    const QString precision = QString::fromStdString(plan.training.precision);
    const auto& trained = contract::trainedPresets(cluster.isCpu);
    if (std::find(trained.begin(), trained.end(), plan.training.precision) == trained.end()) {
        check.reason = (cluster.isCpu ? translate("CPU workers train in fp32; this plan is %1")
                                      : translate("Our engine does not train in %1 yet"))
                           .arg(precision);
        return check;
    }
    if (plan.training.attention != contract::AttentionKernel::Fused) {
        check.reason = translate("Our engine computes attention fused; this plan keeps its scores");
        return check;
    }
    if (!isHere) {
        check.isElsewhere = true;
        check.reason = translate("No %1 in this machine").arg(QString::fromStdString(cluster.device.name));
    }
    return check;
}

TrainSettings defaultSettings(const planner::Graph& graph) {
    TrainSettings settings;
    if (graph.name.starts_with("demo"))
        settings.learningRate = 1e-3;
    settings.runDirectory = QStandardPaths::writableLocation(QStandardPaths::AppLocalDataLocation) +
                            QStringLiteral("/runs/") + QString::fromStdString(graph.name) + '-' +
                            QDateTime::currentDateTime().toString(QStringLiteral("yyyyMMdd-HHmmss"));
    return settings;
}

} // namespace shardscope::app
