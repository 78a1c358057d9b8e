// SPDX-License-Identifier: GPL-3.0-or-later
#include "planner/timeline/PlannedStep.h"

#include "planner/cost/OperatorPricer.h"

#include <fmt/format.h>

namespace shardscope::planner {

using contract::badInput;
using contract::Operator;
using contract::Result;

namespace {

/// Parts are instructions; a file may ask for as many slices as a vocabulary has rows.
constexpr std::int64_t kMaximumParts = std::int64_t{1} << 20;
/// Keeps every size of a micro-batch inside 63 bits, whatever the architecture.
constexpr std::int64_t kMaximumTokens = std::int64_t{1} << 31;

Result<void> checkLength(const PlannedStep& step, const std::string& file) {
    if (const std::int64_t count = step.executedInstructions(); count > kMaximumExecutedInstructions)
        return badInput(fmt::format("{}: a step has {} instructions in {} micro-steps; at most {} are simulated", file,
                                    count, step.training.accumulate, kMaximumExecutedInstructions));
    return {};
}

/// The operators of a plan against those of a graph; plans with an architecture were checked when they were read.
Result<void> checkOperators(const contract::Plan& plan, const Graph& graph, const std::string& file) {
    if (plan.operators.size() != graph.operators.size())
        return badInput(fmt::format("{}: operators has {} entries; {} has {} operators", file, plan.operators.size(),
                                    graph.name, graph.operators.size()));
    std::int64_t parts = 0;
    for (std::size_t i = 0; i < plan.operators.size(); ++i) {
        const contract::PlanOperator& given = plan.operators[i];
        const Operator& expected = graph.operators[i];
        const auto wrong = [&](const char* field, const std::string& message) {
            return badInput(fmt::format("{}: operators[{}].{} {}", file, i, field, message));
        };
        if (given.name != expected.name)
            return wrong("name", fmt::format("is \"{}\"; the graph has \"{}\" there", given.name, expected.name));
        if (given.tiedTo != expected.tiedTo)
            return wrong("tied_to", fmt::format("is \"{}\"; it must be \"{}\"", given.tiedTo, expected.tiedTo));
        if (!expected.isTied() && given.placement.slices > expected.maximumSlices())
            return wrong("slices", fmt::format("is {}; {} allows at most {}", given.placement.slices, given.name,
                                               expected.maximumSlices()));
        const bool continues = i > 0 && expected.block >= 0 && expected.block == graph.operators[i - 1].block;
        if (given.recompute && expected.block < 0)
            return wrong("recompute", "is true outside a block");
        if (continues && given.recompute != plan.operators[i - 1].recompute)
            return wrong("recompute", "differs from the operator before it in the same block");
        parts += given.placement.isSharded() ? given.placement.shardedSlices + 1 : 1;
    }
    if (parts > kMaximumParts)
        return badInput(
            fmt::format("{}: operators have {} slices together; at most {} are simulated", file, parts, kMaximumParts));
    return {};
}

Result<void> checkParallel(const contract::Plan& plan, const std::string& file) {
    if (plan.parallel.pipeline != 1 || plan.parallel.tensor != 1)
        return badInput(
            fmt::format("{}: parallel.pipeline and parallel.tensor must be 1, not {} and {}: the timeline is "
                        "that of data parallelism",
                        file, plan.parallel.pipeline, plan.parallel.tensor));
    if (plan.parallel.data != plan.cluster.devices())
        return badInput(fmt::format("{}: parallel.data is {}; the plan's cluster has {} devices", file,
                                    plan.parallel.data, plan.cluster.devices()));
    if (plan.training.microBatch > kMaximumTokens / plan.training.sequence)
        return badInput(fmt::format("{}: training.micro_batch {} times training.sequence {} is more than {} tokens",
                                    file, plan.training.microBatch, plan.training.sequence, kMaximumTokens));
    return {};
}

Result<GraphPointer> lowerGraph(const contract::Plan& plan, const std::string& file, const GraphPointer& known) {
    if (plan.graph.architecture) {
        auto operators = contract::lowerArchitecture(*plan.graph.architecture, plan.training.sequence);
        if (!operators)
            return badInput(fmt::format("{}: graph.architecture: {}", file, operators.error().message));
        auto graph = std::make_shared<Graph>();
        graph->name = graph->title = plan.graph.name;
        graph->family = plan.graph.family;
        graph->source = file;
        graph->sequence = plan.training.sequence;
        graph->architecture = plan.graph.architecture;
        graph->operators = std::move(*operators);
        return GraphPointer(std::move(graph));
    }
    if (!known)
        return badInput(
            fmt::format("{}: graph.architecture is missing and graph.name \"{}\" is no bundled graph, so the "
                        "operators of this plan are not known; name the graph that was planned (--graph)",
                        file, plan.graph.name));
    if (known->sha256() != plan.graph.sha256)
        return badInput(fmt::format("{}: graph.sha256 is \"{}\"; the graph \"{}\" has \"{}\", so the plan was "
                                    "made for another graph",
                                    file, plan.graph.sha256, known->name, known->sha256()));
    if (known->sequence != plan.training.sequence)
        return badInput(fmt::format("{}: training.sequence is {}; the graph was lowered for {}", file,
                                    plan.training.sequence, known->sequence));
    return known;
}

Result<GraphPointer> graphOf(const contract::Plan& plan, const std::string& file, const GraphPointer& known) {
    auto graph = lowerGraph(plan, file, known);
    return graph ? withAttentionOf(*graph, plan.training) : graph;
}

/// Where two tables differ first, in words.
std::string describeDifference(const contract::BufferTable& given, const contract::BufferTable& needed) {
    for (std::size_t i = 0; i < given.buffers.size() && i < needed.buffers.size(); ++i) {
        const contract::Buffer& a = given.buffers[i];
        const contract::Buffer& b = needed.buffers[i];
        if (a.name != b.name)
            return fmt::format("buffers[{}].name is \"{}\"; the decisions need \"{}\" there", i, a.name, b.name);
        if (a.bytes != b.bytes)
            return fmt::format("buffers[{}].bytes of \"{}\" is {}; {} are needed", i, a.name, a.bytes, b.bytes);
        if (a != b)
            return fmt::format("buffers[{}] \"{}\" has another category, arena, offset or lifetime than the decisions "
                               "need",
                               i, a.name);
    }
    return fmt::format("buffers has {} entries; the decisions need {}", given.buffers.size(), needed.buffers.size());
}

void lower(PlannedStep& step) {
    step.program = contract::buildStepProgram(step.operators(), step.decisions, step.request.prefetchDepth);
    step.buffers = contract::buildBufferTable({step.operators(), step.decisions, step.request.cluster.devices(),
                                               step.request.cluster.devicesPerNode, step.preset, step.training,
                                               step.request.prefetchDepth},
                                              step.program);
}

} // namespace

std::int64_t PlannedStep::executedInstructions() const {
    const auto all = static_cast<std::int64_t>(program.instructions.size());
    // Accumulation is bounded by 2^53 and programs by kMaximumParts: saturate instead of overflowing.
    constexpr std::int64_t kMost = std::int64_t{1} << 62;
    if (program.microStepEnd > 0 && training.accumulate > kMost / program.microStepEnd)
        return kMost;
    return training.accumulate * program.microStepEnd + (all - program.microStepEnd);
}

Result<PlannedStep> planStep(const PlanResult& result) {
    if (!result.feasible)
        return badInput("no plan fits the memory limit, so there is no step to simulate");
    const auto preset = contract::findPreset(result.training.precision);
    if (!preset)
        return badInput(fmt::format("precision \"{}\" is unknown; known are {}", result.training.precision,
                                    contract::presetNames()));
    PlannedStep step;
    step.request = result.request;
    if (step.request.mode == CostMode::Paper)
        step.request.prefetchDepth = 0;
    step.preset = *preset;
    step.training = result.training;
    for (const PlannedOperator& planned : result.operators)
        step.decisions.push_back({planned.placement, planned.recompute, planned.coalesced});
    lower(step);
    step.predictedStepSeconds = result.stepSeconds;
    step.predictedPeakBytes = result.peakBytes;
    step.predictedPeaks = result.peaks;
    if (auto fits = checkLength(step, step.request.graph->name); !fits)
        return tl::unexpected(fits.error());
    return step;
}

Result<PlannedStep> planStep(const contract::Plan& plan, const std::string& file, const GraphPointer& graph) {
    PlannedStep step;
    if (auto fine = checkParallel(plan, file); !fine)
        return tl::unexpected(fine.error());
    auto found = graphOf(plan, file, graph);
    if (!found)
        return tl::unexpected(found.error());
    step.request.graph = std::move(*found);
    if (auto fine = checkOperators(plan, *step.request.graph, file); !fine)
        return tl::unexpected(fine.error());
    const auto preset = contract::findPreset(plan.training.precision);
    if (!preset)
        return badInput(fmt::format("{}: training.precision is \"{}\"; known are {}", file, plan.training.precision,
                                    contract::presetNames()));
    step.preset = *preset;
    step.request.cluster = plan.cluster;
    step.request.mode = plan.mode == "paper" ? CostMode::Paper : CostMode::Full;
    step.request.precision = plan.training.precision;
    step.request.optimizer = plan.training.optimizer;
    step.request.prefetchDepth = plan.prefetchDepth;
    step.request.lossChunks = plan.training.lossChunks;
    step.training = plan.training;
    step.decisions = contract::planDecisions(plan);
    lower(step);
    if (step.buffers != plan.buffers)
        return badInput(
            fmt::format("{}: {}; solve the plan again", file, describeDifference(plan.buffers, step.buffers)));
    step.predictedStepSeconds = plan.predicted.stepSeconds;
    step.predictedPeakBytes = plan.predicted.peakBytes;
    step.predictedPeaks = plan.predicted.peaks;
    if (auto fits = checkLength(step, file); !fits)
        return tl::unexpected(fits.error());
    return step;
}

namespace {

/// One past the block that begins at `begin`, or past that single operator.
std::size_t endOfStretch(const std::vector<Operator>& operators, std::size_t begin) {
    std::size_t end = begin + 1;
    while (end < operators.size() && operators[begin].block >= 0 && operators[end].block == operators[begin].block)
        ++end;
    return end;
}

/// Gives the coalesced operators of a block their parts of its communication.
void shareBlock(const PlannedStep& step, const OperatorPricer& pricer, std::size_t begin, std::size_t end,
                std::vector<OperatorCost>& costs) {
    const std::vector<Operator>& operators = step.operators();
    std::vector<OperatorPricer::Member> members;
    double parameters = 0;
    for (std::size_t i = begin; i < end; ++i) {
        if (!step.decisions[i].coalesced)
            continue;
        members.push_back({operators[i], step.decisions[i].placement});
        parameters += static_cast<double>(operators[i].tensorElements());
    }
    if (members.empty())
        return;
    const auto forward = [&](std::size_t i) { return pricer.forwardSeconds(operators[i], step.training.microBatch); };
    OperatorPricer::Neighbours beside;
    for (std::size_t i = begin;
         i > 0 && (i == begin || (operators[i - 1].block >= 0 && operators[i - 1].block == operators[begin - 1].block));
         --i)
        beside.forwardSeconds += forward(i - 1);
    for (std::size_t i = end; end < operators.size() && i < endOfStretch(operators, end); ++i)
        beside.backwardSeconds += 2 * forward(i);
    const OperatorCost whole = pricer.priceCoalesced(pricer.coalesce(members), step.training.accumulate, beside);
    for (std::size_t i = begin; i < end; ++i) {
        if (step.decisions[i].coalesced)
            costs[i].takeCommunication(whole, static_cast<double>(operators[i].tensorElements()) / parameters);
    }
}

} // namespace

std::vector<OperatorCost> priceOperators(const PlannedStep& step) {
    const OperatorPricer pricer(step.request, step.preset);
    const std::vector<Operator>& operators = step.operators();
    const std::vector<std::int32_t> owners = contract::storageOwners(operators);
    const std::int64_t samples = step.training.microBatch;
    std::vector<OperatorCost> costs;
    costs.reserve(operators.size());
    for (std::size_t i = 0; i < operators.size(); ++i) {
        const bool last = i + 1 == operators.size();
        OperatorPricer::Situation situation{samples, step.training.accumulate, step.decisions[i].recompute, false, {}};
        situation.endsBlock = operators[i].block >= 0 && (last || operators[i + 1].block != operators[i].block);
        if (i > 0)
            situation.neighbours.forwardSeconds = pricer.forwardSeconds(operators[i - 1], samples);
        if (!last)
            situation.neighbours.backwardSeconds = 2 * pricer.forwardSeconds(operators[i + 1], samples);
        const auto owner = static_cast<std::size_t>(owners[i]);
        PlacementFacts facts = pricer.facts(operators[i], step.decisions[owner].placement);
        if (step.decisions[i].coalesced)
            facts.exchange = {}; // the block's is shared out below
        costs.push_back(pricer.price(facts, pricer.forwardSeconds(operators[i], samples), situation));
    }
    for (std::size_t begin = 0, end = 0; begin < operators.size(); begin = end) {
        end = endOfStretch(operators, begin);
        shareBlock(step, pricer, begin, end, costs);
    }
    return costs;
}

} // namespace shardscope::planner
