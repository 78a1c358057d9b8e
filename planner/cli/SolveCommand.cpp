// SPDX-License-Identifier: GPL-3.0-or-later
#include "planner/cli/Commands.h"
#include "planner/cli/PlanFile.h"
#include "planner/cli/Print.h"
#include "planner/cli/RequestOptions.h"
#include "planner/search/AbstractProblem.h"
#include "planner/search/DecisionSpace.h"
#include "planner/search/Remedies.h"
#include "planner/timeline/Finalists.h"
#include "runtime/contract/Bytes.h"
#include "runtime/contract/Json.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>
#include <memory>

namespace shardscope::planner::cli {

namespace {

struct SolveOptions : RequestOptions {
    std::string memory;
    std::string problem;
    std::string output;
    std::vector<std::string> why;
};

/// What else could be done with an operator, and what it would cost.
struct Explained {
    const PlannedOperator* planned = nullptr;
    std::vector<Reason> reasons;
};
struct Extras {
    std::vector<Remedy> remedies;
    std::vector<Finalist> finalists;
    std::vector<Explained> explained;
    PlanResultPointer withMore; ///< the plan with one GiB more a device; null where it is not known
};

/// What one more GiB brings is asked and not extrapolated: the relaxation's price holds for a few bytes only.
constexpr std::int64_t kMoreBytes = std::int64_t{1} << 30;
constexpr std::int64_t kMostBytes = std::int64_t{1} << 60; ///< to which it can be added

contract::OrderedJson whyJson(const PlanResult& plan, const std::vector<Explained>& explained) {
    contract::OrderedJson list = contract::OrderedJson::array();
    for (const Explained& entry : explained) {
        contract::OrderedJson alternatives = contract::OrderedJson::array();
        for (const Reason& reason : entry.reasons) {
            contract::OrderedJson json{{"placement", contract::formatPlacement(reason.alternative)},
                                       {"state_delta_bytes", reason.stateDeltaBytes},
                                       {"step_delta_seconds", reason.stepDeltaSeconds},
                                       {"whole_block", reason.wholeBlock}};
            if (reason.flipBytes) {
                json["flips_at_bytes"] = *reason.flipBytes;
                json["flips_to"] = contract::formatPlacement(*reason.flipPlacement);
            }
            alternatives.push_back(std::move(json));
        }
        list.push_back({{"name", plan.request.graph->operators[static_cast<std::size_t>(entry.planned->op)].name},
                        {"placement", contract::formatPlacement(entry.planned->placement)},
                        {"coalesced", entry.planned->coalesced},
                        {"recompute", entry.planned->recompute},
                        {"alternatives", alternatives}});
    }
    return list;
}

/// What an operator holds and costs now. Communication that computation hides costs nothing, which is why sharding can.
void printCost(const OperatorCost& cost) {
    const std::int64_t state = cost.memory[contract::Category::Parameters] +
                               cost.memory[contract::Category::Gradients] + cost.memory[contract::Category::Optimizer];
    print("  holds {:.3f} MiB of state and {:.3f} MiB of activations; computes {} a step\n",
          static_cast<double>(state) / 0x1p20,
          static_cast<double>(cost.memory[contract::Category::Activations]) / 0x1p20,
          durationText(cost.computeSeconds + cost.recomputeSeconds));
    const double seconds = cost.gatherSeconds + cost.reduceSeconds;
    if (seconds > 0)
        print("  communicates {} a step, of which computation hides {}\n", durationText(seconds),
              durationText(std::max(0.0, seconds - cost.exposedSeconds())));
}

void printWhy(const PlanResult& plan, const std::vector<Explained>& explained) {
    for (const Explained& entry : explained) {
        const contract::Operator& op = plan.request.graph->operators[static_cast<std::size_t>(entry.planned->op)];
        print("{}: {}{}{}{}{}\n", op.name, contract::formatPlacement(entry.planned->placement),
              entry.planned->coalesced ? ", coalesced with its block" : "",
              entry.planned->recompute ? ", recomputed" : "", entry.planned->pinned ? ", pinned" : "",
              op.isTied() ? ", tied to " + op.tiedTo : "");
        printCost(entry.planned->cost);
        for (const Reason& reason : entry.reasons) {
            print("  {}as {:<16} {:>+12.3f} MiB of state, {:>12} a step\n", reason.wholeBlock ? "its block " : "",
                  contract::formatPlacement(reason.alternative), static_cast<double>(reason.stateDeltaBytes) / 0x1p20,
                  (reason.stepDeltaSeconds > 0 ? "+" : "") + durationText(reason.stepDeltaSeconds));
        }
        if (entry.planned->coalesced && !entry.reasons.empty() && !entry.reasons.front().wholeBlock)
            print("  (alone: an operator that leaves its block's collective pays for one of its own)\n");
        for (const Reason& reason : entry.reasons) {
            if (reason.flipBytes)
                print("  with more memory it first changes at {}, to {}\n", contract::describeBytes(*reason.flipBytes),
                      contract::formatPlacement(*reason.flipPlacement));
        }
    }
}

contract::OrderedJson planJson(const PlanResult& plan, const Extras& extras) {
    contract::OrderedJson remedyList = contract::OrderedJson::array();
    for (const Remedy& remedy : extras.remedies)
        remedyList.push_back({{"change", remedy.change},
                              {"peak_bytes", remedy.peakBytes},
                              {"samples_per_second", remedy.samplesPerSecond},
                              {"changes_numerics", remedy.changesNumerics}});
    contract::OrderedJson json{{"feasible", plan.feasible}};
    if (plan.feasible) {
        json["proven_optimal"] = plan.certificate.provenOptimal;
        json["gap"] = plan.certificate.gap;
        json["lower_bound_seconds"] = plan.certificate.lowerBoundSeconds;
        json["step_seconds"] = plan.stepSeconds;
        json["samples_per_second"] = plan.samplesPerSecond;
        json["tokens_per_second"] = plan.tokensPerSecond;
        json["model_flops_utilization"] = plan.modelFlopsUtilization;
        json["batch"] = plan.training.microBatch;
        json["micro_batch"] = plan.training.microBatch;
        json["accumulate"] = plan.training.accumulate;
        json["global_batch"] = plan.training.globalBatch;
        json["peak_bytes"] = plan.peakBytes;
        json["peaks"] = {{"first_step", plan.peaks.firstStep},
                         {"resume", plan.peaks.resume},
                         {"optimizer_step", plan.peaks.optimizerStep}};
        json["ledger"] = contract::toJson(plan.ledger);
        json["counts"] = {{"replicate", plan.counts.replicate},
                          {"keep", plan.counts.keep},
                          {"shard", plan.counts.shard},
                          {"split", plan.counts.split},
                          {"coalesced", plan.counts.coalesced}};
        json["stopped_by"] = plan.certificate.stoppedBy;
        json["shadow_price_seconds_per_gib"] = plan.certificate.shadowPrice * 0x1p30;
        if (extras.withMore)
            json["with_one_gib_more"] = {{"limit_bytes", extras.withMore->limitBytes},
                                         {"samples_per_second", extras.withMore->samplesPerSecond},
                                         {"step_seconds", extras.withMore->stepSeconds},
                                         {"batch", extras.withMore->training.microBatch}};
        contract::OrderedJson finalists = contract::OrderedJson::array();
        for (const Finalist& finalist : extras.finalists) {
            if (finalist.what == "best")
                json["simulated_step_seconds"] = finalist.simulatedStepSeconds;
            finalists.push_back({{"what", finalist.what},
                                 {"batch", finalist.plan->training.microBatch},
                                 {"step_seconds", finalist.plan->stepSeconds},
                                 {"samples_per_second", finalist.plan->samplesPerSecond},
                                 {"simulated_step_seconds", finalist.simulatedStepSeconds},
                                 {"simulated_samples_per_second", finalist.simulatedSamplesPerSecond}});
        }
        json["finalists"] = finalists;
        if (!extras.explained.empty())
            json["why"] = whyJson(plan, extras.explained);
    }
    json["limit_bytes"] = plan.limitBytes;
    json["solve_milliseconds"] = plan.solveMilliseconds;
    json["smallest_feasible_bytes"] = plan.smallestFeasibleBytes;
    json["binding"] = plan.feasible ? contract::OrderedJson(nullptr) : contract::OrderedJson(plan.binding);
    json["remedies"] = remedyList;
    json["notes"] = plan.notes;
    return json;
}

std::string secondsText(double seconds) {
    return seconds >= 1 ? fmt::format("{:.2f} s", seconds) : fmt::format("{:.2f} ms", seconds * 1e3);
}

double bestSimulated(const std::vector<Finalist>& finalists) {
    for (const Finalist& finalist : finalists) {
        if (finalist.what == "best")
            return finalist.simulatedSamplesPerSecond;
    }
    return finalists.front().simulatedSamplesPerSecond;
}

void printPlan(const PlanResult& plan, const Extras& extras) {
    const auto size = [](std::int64_t bytes) { return contract::describeBytes(bytes); };
    const Graph& graph = *plan.request.graph;
    print("{} on {}, {}, sequence {}\n", graph.title, plan.request.cluster.title, plan.request.precision,
          graph.sequence);
    for (const std::string& note : plan.notes)
        print("note: {}\n", note);
    if (!plan.feasible) {
        // Rounded up, so that the size printed is one that works.
        const auto roundedUp =
            fmt::format("{:.3f} GiB", std::ceil(static_cast<double>(plan.smallestFeasibleBytes) / 0x1p30 * 1e3) / 1e3);
        print("Does not fit {}: at least {} a device are needed; what binds: {}.\n", size(plan.limitBytes), roundedUp,
              plan.binding);
        if (extras.remedies.empty())
            print("No single change and no pair of changes that is known fits.\n");
        std::size_t width = 0;
        for (const Remedy& remedy : extras.remedies)
            width = std::max(width, remedy.change.size());
        for (const Remedy& remedy : extras.remedies)
            print("  {:<{}}   peak {:>12} {:>12.2f} samples/s {:>10.0f} tokens/s{}\n", remedy.change, width,
                  size(remedy.peakBytes), remedy.samplesPerSecond,
                  remedy.samplesPerSecond * static_cast<double>(remedy.request.graph->sequence),
                  remedy.changesNumerics ? "   changes numerics" : "");
        return;
    }
    if (plan.request.cluster.isCpu && plan.limitBytes == plan.request.cluster.device.memoryBytes)
        print("note: the limit is a share of the memory that is free now; --memory fixes it\n");
    print("Fits {}: peak {}, {} spare\n", size(plan.limitBytes), size(plan.peakBytes),
          size(plan.limitBytes - plan.peakBytes));
    const std::int64_t card = plan.request.cluster.device.memoryBytes;
    if (plan.peakBytes > card)
        print("Beyond the device: it has {}\n", size(card));
    print("{:.2f} samples/s, {:.0f} tokens/s, step {}, model FLOPs utilisation {:.1f} %\n", plan.samplesPerSecond,
          plan.tokensPerSecond, secondsText(plan.stepSeconds), plan.modelFlopsUtilization * 100);
    print("micro-batch {} x accumulate {} x {} devices = global batch {}\n", plan.training.microBatch,
          plan.training.accumulate, plan.request.cluster.devices(), plan.training.globalBatch);
    print("{} replicated, {} kept, {} sharded ({} of them split); {} coalesced with their block\n",
          plan.counts.replicate, plan.counts.keep, plan.counts.shard, plan.counts.split, plan.counts.coalesced);
    print("{} of {} blocks recomputed\n", recomputedBlocks(plan), graph.blockCount());
    for (int i = 0; i < contract::kCategoryCount; ++i) {
        const auto category = static_cast<contract::Category>(i);
        if (plan.ledger[category] > 0)
            print("  {:<20} {:>12}\n", contract::categoryName(category), size(plan.ledger[category]));
    }
    if (extras.withMore)
        print("With one more GiB a device: {:.2f} samples/s ({:+.2f} %), batch {}, step {}\n",
              extras.withMore->samplesPerSecond, (extras.withMore->samplesPerSecond / plan.samplesPerSecond - 1) * 100,
              extras.withMore->training.microBatch, secondsText(extras.withMore->stepSeconds));
    for (const Finalist& finalist : extras.finalists) {
        if (finalist.what == "best")
            print("Played out on two streams a step takes {}\n", secondsText(finalist.simulatedStepSeconds));
    }
    if (!extras.finalists.empty() && extras.finalists.front().what != "best")
        print("note: played out, {} is {:.2f} % faster than the plan that is best where costs simply add up; to "
              "have it, add --batch {}\n",
              extras.finalists.front().what,
              (extras.finalists.front().simulatedSamplesPerSecond / bestSimulated(extras.finalists) - 1) * 100,
              extras.finalists.front().plan->training.microBatch);
    printWhy(plan, extras.explained);
    if (plan.certificate.provenOptimal)
        print("Best plan, proven for this cost model ({} {}, {:.2f} ms)\n", plan.certificate.thresholds,
              plan.certificate.thresholds == 1 ? "threshold" : "thresholds", plan.solveMilliseconds);
    else
        print("At most {:.4f} % from the best (stopped by {}, {:.2f} ms)\n", plan.certificate.gap * 100,
              plan.certificate.stoppedBy, plan.solveMilliseconds);
}

contract::Result<std::vector<Explained>> explain(const Planner& planner, const PlanResult& plan,
                                                 const SolveOptions& options) {
    std::vector<Explained> explained;
    for (const std::string& pattern : options.why) {
        const std::size_t before = explained.size();
        for (const PlannedOperator& planned : plan.operators) {
            if (globMatches(pattern, plan.request.graph->operators[static_cast<std::size_t>(planned.op)].name))
                explained.push_back({&planned, planner.reasons(plan, planned.op, options.searchBudget())});
        }
        if (explained.size() == before)
            return contract::usageError(
                fmt::format("--why \"{}\" matches no operator of {}", pattern, plan.request.graph->name));
    }
    return explained;
}

int solveGraph(const SolveOptions& options) {
    const auto request = options.request();
    if (!request)
        return report(request.error(), options.json);
    const auto limit = memoryLimit(options.memory, *request);
    if (!limit)
        return report(limit.error(), options.json);
    const auto planner = Planner::create(*request);
    if (!planner)
        return report(planner.error(), options.json);
    const PlanResultPointer plan = (*planner)->solve(*limit, options.searchBudget());
    Extras extras;
    if (!plan->feasible && !plan->cancelled)
        extras.remedies = findRemedies((*planner)->request(), *limit, options.searchBudget());
    if (plan->feasible && !plan->cancelled) {
        extras.finalists = scoreFinalists(*plan, options.searchBudget());
        if (plan->limitBytes <= kMostBytes) {
            PlanResultPointer more = (*planner)->solve(plan->limitBytes + kMoreBytes, options.searchBudget());
            if (more->feasible && !more->cancelled)
                extras.withMore = std::move(more);
        }
        auto explained = explain(**planner, *plan, options);
        if (!explained)
            return report(explained.error(), options.json);
        extras.explained = std::move(*explained);
    }
    if (plan->feasible && !options.output.empty()) {
        const contract::Plan file = emitPlan(*plan, std::string("shardscope-plan ") + SHARDSCOPE_VERSION);
        if (const auto written = contract::writeFileAtomically(options.output, contract::formatPlan(file)); !written)
            return report(written.error(), options.json);
    } else if (!options.output.empty()) {
        complain(options.output + " is not written, since there is no plan");
    }
    if (options.json)
        printJson(planJson(*plan, extras));
    else
        printPlan(*plan, extras);
    if (plan->cancelled)
        return 130;
    return plan->feasible ? 0 : contract::exitCode(contract::ErrorKind::Infeasible);
}

int solveProblem(const SolveOptions& options) {
    const auto text = contract::readTextFile(options.problem);
    if (!text)
        return report(text.error(), options.json);
    const auto problem = readAbstractProblem(*text, options.problem);
    if (!problem)
        return report(problem.error(), options.json);
    SearchLimits limits;
    limits.tolerance = options.tolerance;
    limits.workLimit = options.workLimit;
    limits.timeLimitSeconds = options.timeLimitSeconds;
    limits.stop = interruptToken();
    const auto answer = solveAbstractProblem(*problem, limits);
    if (!answer)
        return report(answer.error(), options.json);
    // An abstract answer is data for programs: it is JSON with or without --json.
    printJson(toJson(*answer));
    if (interruptToken().stop_requested())
        return 130;
    return answer->feasible ? 0 : contract::exitCode(contract::ErrorKind::Infeasible);
}

} // namespace

void addSolve(CLI::App& app, int& exitCode) {
    const auto options = std::make_shared<SolveOptions>();
    CLI::App* command = app.add_subcommand("solve", "the fastest plan under a memory limit, with its certificate");
    CLI::Option* graph = command->add_option("GRAPH", options->graph, kGraphHelp);
    CLI::Option* problem =
        command->add_option("--problem", options->problem, "an abstract problem file instead of a graph");
    graph->excludes(problem);
    command->add_option("--memory", options->memory, "limit of one device, for example 16GiB (default: all of it)");
    command->add_option("--why", options->why, "explain the operators of these names (globs)")->take_all();
    command->add_option("-o,--output", options->output, "write the plan file here");
    options->addTo(*command);
    command->callback([options, command, &exitCode] {
        if (options->graph.empty() && options->problem.empty()) {
            exitCode = report({contract::ErrorKind::Usage, "solve needs a GRAPH or --problem FILE"}, options->json);
            return;
        }
        if (!options->problem.empty()) {
            for (const CLI::Option* option : command->get_options()) {
                const std::string name = option->get_name();
                if (option->count() > 0 && name != "--problem" && name != "--json" && name != "--tolerance" &&
                    name != "--work-limit" && name != "--time-limit") {
                    exitCode = report({contract::ErrorKind::Usage,
                                       fmt::format("--problem is a problem of its own; {} does not go with it", name)},
                                      options->json);
                    return;
                }
            }
        }
        exitCode = options->problem.empty() ? solveGraph(*options) : solveProblem(*options);
    });
}

} // namespace shardscope::planner::cli
