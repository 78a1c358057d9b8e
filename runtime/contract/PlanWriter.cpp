// SPDX-License-Identifier: GPL-3.0-or-later
#include "runtime/contract/Plan.h"

#include <nlohmann/json.hpp>

namespace shardscope::contract {

namespace {

OrderedJson graphJson(const PlanGraph& graph) {
    OrderedJson json{
        {"name", graph.name}, {"family", graph.family}, {"sha256", graph.sha256}, {"architecture", nullptr}};
    if (graph.architecture)
        json["architecture"] = toJson(*graph.architecture);
    return json;
}

OrderedJson operatorJson(const PlanOperator& op) {
    OrderedJson json{{"name", op.name},
                     {"placement", op.placement.kind == PlacementKind::Replicate ? "replicate"
                                   : op.placement.held                           ? "keep-held"
                                   : op.placement.kind == PlacementKind::Keep    ? "keep"
                                                                                 : "shard"},
                     {"slices", op.placement.slices},
                     {"sharded_slices", op.placement.isSharded() ? op.placement.shardedSlices : 0},
                     {"group", op.placement.group == ShardGroup::Node ? "node" : "world"},
                     {"recompute", op.recompute},
                     {"tied_to", nullptr}};
    if (!op.tiedTo.empty())
        json["tied_to"] = op.tiedTo;
    if (op.coalesced)
        json["coalesced"] = true;
    return json;
}

OrderedJson bufferJson(const Buffer& buffer) {
    return {{"name", buffer.name},
            {"category", categoryName(buffer.category)},
            {"arena", arenaName(buffer.arena)},
            {"offset", buffer.offset},
            {"bytes", buffer.bytes},
            {"first", buffer.first},
            {"last", buffer.last}};
}

OrderedJson predictedJson(const Predicted& predicted) {
    OrderedJson perOperator = OrderedJson::array();
    for (const PredictedOperator& op : predicted.perOperator) {
        perOperator.push_back({{"name", op.name},
                               {"state_bytes", op.stateBytes},
                               {"kept_bytes", op.keptBytes},
                               {"slot_bytes", op.slotBytes},
                               {"compute_seconds", op.computeSeconds},
                               {"communication_seconds", op.communicationSeconds},
                               {"exposed_seconds", op.exposedSeconds}});
    }
    return {{"peak_bytes", predicted.peakBytes},
            {"peaks",
             {{"first_step", predicted.peaks.firstStep},
              {"resume", predicted.peaks.resume},
              {"optimizer_step", predicted.peaks.optimizerStep}}},
            {"ledger", toJson(predicted.ledger)},
            {"step_seconds", predicted.stepSeconds},
            {"samples_per_second", predicted.samplesPerSecond},
            {"per_operator", perOperator}};
}

OrderedJson certificateJson(const Certificate& certificate) {
    return {{"proven_optimal", certificate.provenOptimal},
            {"value", certificate.value},
            {"upper_bound", certificate.upperBound},
            {"gap", certificate.gap},
            {"lower_bound_seconds", certificate.lowerBoundSeconds},
            {"thresholds", certificate.thresholds},
            {"shadow_price", certificate.shadowPrice},
            {"work", certificate.work},
            {"stopped_by", certificate.stoppedBy}};
}

/// One array element a line keeps plan files diffable without making them long.
void appendArray(std::string& text, const char* key, const OrderedJson& array) {
    text += "  \"" + std::string(key) + "\": [";
    for (std::size_t i = 0; i < array.size(); ++i)
        text += (i == 0 ? "\n    " : ",\n    ") + array[i].dump();
    text += "\n  ],\n";
}

} // namespace

std::string formatPlan(const Plan& plan) {
    OrderedJson operators = OrderedJson::array();
    for (const PlanOperator& op : plan.operators)
        operators.push_back(operatorJson(op));
    OrderedJson buffers = OrderedJson::array();
    for (const Buffer& buffer : plan.buffers.buffers)
        buffers.push_back(bufferJson(buffer));
    const auto line = [](const char* key, const OrderedJson& value) {
        return "  \"" + std::string(key) + "\": " + value.dump() + ",\n";
    };
    std::string text = "{\n";
    text += line("format", "shardscope-plan");
    text += line("version", kPlanVersion);
    text += line("created_by", plan.createdBy);
    text += line("graph", graphJson(plan.graph));
    text += line("cluster", toJson(plan.cluster));
    text += line("training", toJson(plan.training));
    text +=
        line("parallel",
             {{"pipeline", plan.parallel.pipeline}, {"tensor", plan.parallel.tensor}, {"data", plan.parallel.data}});
    text += line("target", plan.target);
    text += line("mode", plan.mode);
    text += line("limit_bytes", plan.limitBytes);
    text += line("prefetch_depth", plan.prefetchDepth);
    appendArray(text, "operators", operators);
    appendArray(text, "buffers", buffers);
    text += line("predicted", predictedJson(plan.predicted));
    text += "  \"certificate\": " + certificateJson(plan.certificate).dump() + "\n}\n";
    return text;
}

} // namespace shardscope::contract
