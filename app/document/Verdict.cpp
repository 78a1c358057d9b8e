// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/document/Verdict.h"

#include "app/layout/FrontierAxis.h"
#include "app/look/Units.h"

#include <QCoreApplication>

#include <algorithm>

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

QString memoryOwnerWord(const contract::Cluster& cluster) {
    return cluster.isCpu ? translate("device") : translate("card");
}

QString proofText(const Answer& answer) {
    const planner::PlanResult& plan = *answer.plan;
    if (!plan.feasible)
        return translate("No plan fits this budget");
    if (plan.certificate.provenOptimal)
        return translate("Best plan, proven for this cost model");
    const QString gap = percentText(plan.certificate.gap, 2);
    return answer.isFinal ? translate("At most %1 from the best plan, certified").arg(gap)
                          : translate("At most %1 from the best plan, still proving").arg(gap);
}

namespace {

QString shortProof(const Answer& answer) {
    if (answer.plan->certificate.provenOptimal)
        return translate("proven");
    const QString gap = percentText(answer.plan->certificate.gap, 2);
    return answer.isFinal ? translate("at most %1 from the best").arg(gap)
                          : translate("at most %1 from the best, still proving").arg(gap);
}

/// How the plan compares with FSDP under the same budget; empty when that is not known (yet).
QString gainText(const planner::PlanResult& plan, const std::vector<planner::Baseline>& baselines) {
    const auto fsdp = std::find_if(baselines.begin(), baselines.end(),
                                   [](const planner::Baseline& baseline) { return baseline.name == "FSDP"; });
    if (fsdp == baselines.end())
        return {};
    if (!fsdp->feasible)
        return translate("FSDP does not fit");
    if (fsdp->samplesPerSecond <= 0)
        return {};
    const double gain = plan.samplesPerSecond / fsdp->samplesPerSecond - 1;
    return gain >= 0.0005 ? translate("%1 faster than FSDP").arg(percentText(gain)) : translate("as fast as FSDP");
}

} // namespace

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
    const QString owner = memoryOwnerWord(cluster);
    verdict.proof = shortProof(answer);
    if (spare < 0) {
        verdict.kind = VerdictKind::Beyond;
        verdict.headline = translate("Beyond the %1").arg(owner);
        verdict.detail = translate("peak %1, %2 more than the %4's %3")
                             .arg(unit.text(plan.peakBytes), unit.number(-spare), unit.number(card), owner);
    } else if (spare < error) {
        verdict.kind = VerdictKind::Tight;
        verdict.headline = translate("Tight");
        verdict.detail = translate("peak %1 of %2; %3 spare is less than the estimate's error, %4")
                             .arg(peak, unit.text(card), unit.number(spare), unit.number(error));
    } else {
        verdict.kind = VerdictKind::Fits;
        verdict.headline = translate("Fits");
        verdict.detail = isWholeCard
                             ? translate("peak %1 of %2, %3 spare").arg(peak, unit.text(card), unit.number(spare))
                             : translate("peak %1 of %2 budget, %3 of the %4 spare")
                                   .arg(peak, unit.text(plan.limitBytes), unit.number(spare), owner);
    }

    const planner::Graph& graph = *plan.request.graph;
    const double rate = plan.samplesPerSecond * unitsPerSample(graph);
    verdict.rate = rateText(rate) + ' ' + rateUnit(graph);
    const auto add = [&verdict](const QString& text, int importance) {
        if (!text.isEmpty())
            verdict.numbers.push_back({text, importance});
    };
    const std::int64_t devices = cluster.devices();
    if (devices > 1)
        add(translate("%1 per %2").arg(rateText(rate / static_cast<double>(devices)), deviceWord(cluster, 1)), 2);
    if (plan.modelFlopsUtilization > 0)
        add(translate("MFU %1").arg(percentText(plan.modelFlopsUtilization, 0)), 3);
    add(translate("step %1").arg(secondsText(plan.stepSeconds)), 5);
    add(plan.training.accumulate > 1
            ? translate("batch %1 = %2 × %3 × %4")
                  .arg(plan.training.globalBatch)
                  .arg(plan.training.microBatch)
                  .arg(plan.training.accumulate)
                  .arg(devices)
            : translate("micro-batch %1, global %2").arg(plan.training.microBatch).arg(plan.training.globalBatch),
        1);
    if (comparison && comparison->generation == answer.generation)
        add(gainText(plan, comparison->baselines), 4);
    if (plan.counts.coalesced > 0)
        add(translate("%1 of %2 operators coalesced").arg(plan.counts.coalesced).arg(plan.operators.size()), 0);
    return verdict;
}

} // namespace shardscope::app
