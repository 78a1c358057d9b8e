// SPDX-License-Identifier: GPL-3.0-or-later
#include "runtime/contract/Bytes.h"
#include "runtime/contract/Plan.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>
#include <unordered_set>

namespace shardscope::contract {

namespace {

constexpr std::int64_t kMaximumBytes = std::int64_t{1} << 56;
constexpr std::size_t kMaximumRows = 4'000'000;

PlanGraph readGraph(const JsonCursor& cursor) {
    PlanGraph graph{cursor.at("name").text(), cursor.at("family").text(64), cursor.at("sha256").text(64), std::nullopt};
    if (const auto architecture = cursor.find("architecture"))
        graph.architecture = readArchitecture(*architecture);
    return graph;
}

PlanOperator readOperator(const JsonCursor& cursor) {
    PlanOperator op;
    op.name = cursor.at("name").text();
    op.placement.kind = cursor.at("placement")
                            .choice<PlacementKind>({{"replicate", PlacementKind::Replicate},
                                                    {"keep", PlacementKind::Keep},
                                                    {"keep-held", PlacementKind::Keep},
                                                    {"shard", PlacementKind::Shard}});
    op.placement.held = !cursor.failed() && cursor.at("placement").text() == "keep-held";
    constexpr std::int64_t kMaximumSlices = 1 << 26;
    op.placement.slices = static_cast<std::int32_t>(cursor.at("slices").integer(1, kMaximumSlices));
    const std::int64_t sharded = cursor.at("sharded_slices").integer(0, op.placement.slices);
    if (op.placement.isSharded() && sharded < 1)
        cursor.at("sharded_slices").fail("must be at least 1 for placement shard");
    op.placement.shardedSlices = op.placement.isSharded() ? static_cast<std::int32_t>(sharded) : 1;
    if (!op.placement.isSharded() && (op.placement.slices != 1 || sharded != 0))
        cursor.at("slices").fail("and sharded_slices must be 1 and 0 unless the placement is shard");
    op.placement.group =
        cursor.at("group").choice<ShardGroup>({{"world", ShardGroup::World}, {"node", ShardGroup::Node}});
    op.recompute = cursor.at("recompute").boolean();
    if (const auto tied = cursor.find("tied_to"))
        op.tiedTo = tied->text();
    if (const auto coalesced = cursor.find("coalesced"))
        op.coalesced = coalesced->boolean();
    return op;
}

template<typename E, typename FromName> E readNamed(const JsonCursor& cursor, FromName fromName) {
    const std::string name = cursor.text(64);
    const std::optional<E> value = fromName(name);
    if (!value)
        cursor.fail("is \"" + name + "\", which this version does not know");
    return value.value_or(E{});
}

Buffer readBuffer(const JsonCursor& cursor) {
    Buffer buffer;
    buffer.name = cursor.at("name").text();
    buffer.category = readNamed<Category>(cursor.at("category"), categoryFromName);
    buffer.arena = readNamed<Arena>(cursor.at("arena"), arenaFromName);
    buffer.offset = cursor.at("offset").integer(0, kMaximumBytes);
    buffer.bytes = cursor.at("bytes").integer(0, kMaximumBytes);
    if (!cursor.failed() && buffer.offset % kBufferAlignment != 0)
        cursor.at("offset").fail(fmt::format("is {}; it must be a multiple of {}", buffer.offset, kBufferAlignment));
    buffer.first = static_cast<std::int32_t>(cursor.at("first").integer(0, 1 << 30));
    buffer.last = static_cast<std::int32_t>(cursor.at("last").integer(0, 1 << 30));
    return buffer;
}

Predicted readPredicted(const JsonCursor& cursor) {
    Predicted predicted;
    predicted.peakBytes = cursor.at("peak_bytes").integer(0, kMaximumBytes);
    const JsonCursor peaks = cursor.at("peaks");
    predicted.peaks.firstStep = peaks.at("first_step").integer(0, kMaximumBytes);
    predicted.peaks.resume = peaks.at("resume").integer(0, kMaximumBytes);
    predicted.peaks.optimizerStep = peaks.at("optimizer_step").integer(0, kMaximumBytes);
    predicted.ledger = readLedger(cursor.at("ledger"));
    predicted.stepSeconds = cursor.at("step_seconds").number();
    predicted.samplesPerSecond = cursor.at("samples_per_second").number();
    const JsonCursor perOperator = cursor.at("per_operator");
    const std::size_t count = perOperator.arraySize(kMaximumRows);
    for (std::size_t i = 0; i < count && !cursor.failed(); ++i) {
        const JsonCursor op = perOperator.element(i);
        predicted.perOperator.push_back({op.at("name").text(), op.at("state_bytes").integer(0, kMaximumBytes),
                                         op.at("kept_bytes").integer(0, kMaximumBytes),
                                         op.at("slot_bytes").integer(0, kMaximumBytes),
                                         op.at("compute_seconds").number(), op.at("communication_seconds").number(),
                                         op.at("exposed_seconds").number()});
    }
    return predicted;
}

Certificate readCertificate(const JsonCursor& cursor) {
    Certificate certificate;
    certificate.provenOptimal = cursor.at("proven_optimal").boolean();
    certificate.value = cursor.at("value").number();
    certificate.upperBound = cursor.at("upper_bound").number();
    certificate.gap = cursor.at("gap").number();
    certificate.lowerBoundSeconds = cursor.at("lower_bound_seconds").number();
    certificate.thresholds = cursor.at("thresholds").integer();
    certificate.shadowPrice = cursor.at("shadow_price").number();
    certificate.work = cursor.at("work").integer();
    certificate.stoppedBy = cursor.at("stopped_by").text(64);
    return certificate;
}

/// Where the architecture is known the plan must speak of exactly its operators.
void checkOperators(const JsonCursor& root, const Plan& plan) {
    const auto lowered = lowerArchitecture(*plan.graph.architecture, plan.training.sequence);
    if (!lowered) {
        root.at("training").at("sequence").fail("does not suit the architecture: " + lowered.error().message);
        return;
    }
    const JsonCursor operators = root.at("operators");
    if (lowered->size() != plan.operators.size()) {
        operators.fail(
            fmt::format("has {} entries; the architecture has {} operators", plan.operators.size(), lowered->size()));
        return;
    }
    const std::vector<std::int32_t> owners = storageOwners(*lowered);
    for (std::size_t i = 0; i < lowered->size(); ++i) {
        const auto owner = static_cast<std::size_t>(owners[i]);
        const Operator& expected = (*lowered)[i];
        const PlanOperator& given = plan.operators[i];
        const JsonCursor entry = operators.element(i);
        if (given.name != expected.name)
            entry.at("name").fail(
                fmt::format("is \"{}\"; the architecture has \"{}\" there", given.name, expected.name));
        else if (given.tiedTo != expected.tiedTo)
            entry.at("tied_to").fail(fmt::format("is \"{}\"; it must be \"{}\"", given.tiedTo, expected.tiedTo));
        else if (given.placement != plan.operators[owner].placement)
            entry.at("placement")
                .fail(fmt::format("differs from that of {}, whose storage it uses", plan.operators[owner].name));
        else if (given.placement.slices > expected.maximumSlices() && !expected.isTied())
            entry.at("slices").fail(fmt::format("is {}; {} allows at most {}", given.placement.slices, given.name,
                                                expected.maximumSlices()));
        else if (i > 0 && expected.block >= 0 && expected.block == (*lowered)[i - 1].block &&
                 given.recompute != plan.operators[i - 1].recompute)
            entry.at("recompute").fail("differs from the operator before it in the same block");
        else if (expected.block < 0 && given.recompute)
            entry.at("recompute").fail("is true outside a block");
        if (root.failed())
            return;
    }
    if (const auto fault = findCoalescingFault(*lowered, planDecisions(plan)))
        operators.element(static_cast<std::size_t>(fault->op)).at("coalesced").fail(fault->reason);
}

void checkBuffers(const JsonCursor& root, const Plan& plan) {
    std::unordered_set<std::string_view> names;
    for (std::size_t i = 0; i < plan.buffers.buffers.size(); ++i) {
        if (!names.insert(plan.buffers.buffers[i].name).second) {
            root.at("buffers").element(i).at("name").fail("occurs twice");
            return;
        }
    }
}

} // namespace

Result<Plan> parsePlan(std::string_view text, std::string_view file) {
    const auto document = parseJson(text, file);
    if (!document)
        return tl::unexpected(document.error());
    const JsonCursor root(*document, file);
    Plan plan;
    root.at("format").choice<int>({{"shardscope-plan", 0}});
    if (const std::int64_t version = root.at("version").integer(); !root.failed() && version != kPlanVersion)
        root.at("version").fail(fmt::format("is {}; this version reads {}", version, kPlanVersion));
    if (root.failed())
        return root.error();
    plan.createdBy = root.at("created_by").text();
    plan.graph = readGraph(root.at("graph"));
    plan.cluster = readCluster(root.at("cluster"));
    plan.training = readTraining(root.at("training"));
    const JsonCursor parallel = root.at("parallel");
    plan.parallel = {parallel.at("pipeline").integer(1, 1 << 20), parallel.at("tensor").integer(1, 1 << 20),
                     parallel.at("data").integer(1, 1 << 20)};
    plan.target = root.at("target").choice<std::string>({{"cpu", "cpu"}, {"cuda", "cuda"}, {"pytorch", "pytorch"}});
    if (const auto mode = root.find("mode"))
        plan.mode = mode->choice<std::string>({{"paper", "paper"}, {"full", "full"}});
    if (const auto limit = root.find("limit_bytes"))
        plan.limitBytes = limit->integer(0, kMaximumBytes);
    if (const auto depth = root.find("prefetch_depth"))
        plan.prefetchDepth = static_cast<std::int32_t>(depth->integer(0, 64));
    const JsonCursor operators = root.at("operators");
    const std::size_t operatorCount = operators.arraySize(kMaximumRows);
    for (std::size_t i = 0; i < operatorCount && !root.failed(); ++i)
        plan.operators.push_back(readOperator(operators.element(i)));
    const JsonCursor buffers = root.at("buffers");
    const std::size_t bufferCount = buffers.arraySize(kMaximumRows);
    for (std::size_t i = 0; i < bufferCount && !root.failed(); ++i)
        plan.buffers.buffers.push_back(readBuffer(buffers.element(i)));
    plan.predicted = readPredicted(root.at("predicted"));
    plan.certificate = readCertificate(root.at("certificate"));
    if (!root.failed() &&
        plan.training.globalBatch != plan.training.microBatch * plan.training.accumulate * plan.parallel.data)
        root.at("training")
            .at("global_batch")
            .fail(fmt::format("is {}; it must be micro_batch {} x accumulate {} x data ranks {}",
                              plan.training.globalBatch, plan.training.microBatch, plan.training.accumulate,
                              plan.parallel.data));
    if (!root.failed() && plan.graph.architecture)
        checkOperators(root, plan);
    if (!root.failed())
        checkBuffers(root, plan);
    if (root.failed())
        return root.error();
    return plan;
}

Result<Plan> readPlanFile(const std::string& path) {
    return readTextFile(path).and_then([&](const std::string& text) { return parsePlan(text, path); });
}

std::vector<OperatorDecision> planDecisions(const Plan& plan) {
    std::vector<OperatorDecision> decisions;
    decisions.reserve(plan.operators.size());
    for (const PlanOperator& op : plan.operators)
        decisions.push_back({op.placement, op.recompute, op.coalesced});
    return decisions;
}

} // namespace shardscope::contract
