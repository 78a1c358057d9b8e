// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/document/Verdict.h"

#include "app/layout/FrontierAxis.h"
#include "app/look/Units.h"

#include <QCoreApplication>

namespace shardscope::app {

namespace {

QString translate(const char* text) {
    return QCoreApplication::translate("Verdict", text);
}

QString bindingText(const std::string& binding) {
    if (binding == "states")
        return translate("parameters, gradients and optimizer states stand in the way");
    if (binding == "activations")
        return translate("activations stand in the way: a smaller batch or recomputation would help");
    if (binding == "logits")
        return translate("logits and loss stand in the way: a smaller batch would help");
    if (binding == "slots")
        return translate("the largest gathered operator stands in the way: more slices would help");
    if (binding == "reserve")
        return translate("the reserve alone is larger than the budget");
    return QString::fromStdString(binding);
}

} // namespace

QString deviceWord(const contract::Cluster& cluster, std::int64_t count) {
    if (cluster.isCpu)
        return count == 1 ? translate("CPU worker") : translate("CPU workers");
    return count == 1 ? translate("GPU") : translate("GPUs");
}

QString rateUnit(const planner::Graph& graph) {
    return graph.family == "vit" ? translate("images/s") : translate("tokens/s");
}

double unitsPerSample(const planner::Graph& graph) {
    return graph.family == "vit" ? 1.0 : static_cast<double>(graph.sequence);
}

QString proofText(const planner::PlanResult& plan) {
    if (!plan.feasible)
        return translate("No plan fits this budget");
    if (plan.certificate.provenOptimal)
        return translate("Best plan, proven for this cost model");
    return translate("At most %1 from the best plan, certified").arg(percentText(plan.certificate.gap, 2));
}

Verdict verdictOf(const Answer& answer, const Comparison* comparison) {
    Verdict verdict;
    if (!answer.plan) {
        verdict.kind = VerdictKind::Contradiction;
        verdict.headline = translate("These settings contradict each other");
        verdict.detail = answer.error;
        return verdict;
    }
    const planner::PlanResult& plan = *answer.plan;
    const contract::Cluster& cluster = answer.choices->cluster;
    const std::int64_t card = cluster.device.memoryBytes;
    const bool isWholeCard = plan.limitBytes == card;
    if (!plan.feasible) {
        verdict.kind = VerdictKind::DoesNotFit;
        verdict.headline = translate("Does not fit");
        verdict.detail = plan.smallestFeasibleBytes > 0
                             ? translate("the smallest plan needs %1 a device, %2 are allowed")
                                   .arg(gibText(plan.smallestFeasibleBytes, 2), gibText(plan.limitBytes, 2))
                             : translate("no plan of these placements exists");
        verdict.rate = bindingText(plan.binding);
        verdict.remedyBytes = plan.smallestFeasibleBytes;
        return verdict;
    }

    const std::int64_t spare = card - plan.peakBytes;
    const std::int64_t error = estimateErrorBytes(plan.peakBytes, cluster.isCpu);
    const MemoryUnit unit = memoryUnit(std::max(card, plan.limitBytes));
    const QString peak = unit.number(plan.peakBytes);
    if (spare < 0) {
        verdict.kind = VerdictKind::Beyond;
        verdict.headline = translate("Beyond the card");
        verdict.detail = translate("peak %1, %2 more than the card's %3")
                             .arg(unit.text(plan.peakBytes), unit.number(-spare), unit.number(card));
    } else if (spare < error) {
        verdict.kind = VerdictKind::Tight;
        verdict.headline = translate("Tight");
        verdict.detail = translate("peak %1 of %2; %3 spare is less than this estimate's error of %4")
                             .arg(peak, unit.text(card), unit.number(spare), unit.number(error));
    } else {
        verdict.kind = VerdictKind::Fits;
        verdict.headline = translate("Fits");
        verdict.detail = isWholeCard
                             ? translate("peak %1 of %2, %3 spare").arg(peak, unit.text(card), unit.number(spare))
                             : translate("peak %1 of %2 budget, %3 of the card spare")
                                   .arg(peak, unit.text(plan.limitBytes), unit.number(spare));
    }

    const planner::Graph& graph = *plan.request.graph;
    const double rate = plan.samplesPerSecond * unitsPerSample(graph);
    verdict.rate = rateText(rate) + ' ' + rateUnit(graph);
    QStringList numbers;
    const std::int64_t devices = cluster.devices();
    if (devices > 1)
        numbers << translate("%1 per %2").arg(rateText(rate / static_cast<double>(devices)), deviceWord(cluster, 1));
    if (plan.modelFlopsUtilization > 0)
        numbers << translate("MFU %1").arg(percentText(plan.modelFlopsUtilization, 0));
    numbers << translate("step %1").arg(secondsText(plan.stepSeconds));
    numbers
        << (plan.training.accumulate > 1
                ? translate("batch %1 = %2 × %3 × %4")
                      .arg(plan.training.globalBatch)
                      .arg(plan.training.microBatch)
                      .arg(plan.training.accumulate)
                      .arg(devices)
                : translate("micro-batch %1, global %2").arg(plan.training.microBatch).arg(plan.training.globalBatch));
    if (comparison && comparison->generation == answer.generation) {
        for (const planner::Baseline& baseline : comparison->baselines) {
            if (baseline.name != "FSDP")
                continue;
            if (!baseline.feasible)
                numbers << translate("FSDP does not fit");
            else if (baseline.samplesPerSecond > 0) {
                const double gain = plan.samplesPerSecond / baseline.samplesPerSecond - 1;
                numbers << (gain >= 0.0005 ? translate("%1 faster than FSDP").arg(percentText(gain))
                                           : translate("as fast as FSDP"));
            }
        }
    }
    verdict.numbers = numbers.join(QStringLiteral(" · "));
    return verdict;
}

} // namespace shardscope::app
