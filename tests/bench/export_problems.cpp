// SPDX-License-Identifier: GPL-3.0-or-later
// Writes abstract problem files for bench_highs.py: export_problems DIR
//   NAME-PP.json   operators of a bundled graph in paper mode with the eight placements below, the limit at PP % of the
//                  range from the smallest feasible to all replicated
//   different-PP   2,000 operators without equals, parameters uniform in 1e4..4e7, fixed seed
#include "planner/cluster/Clusters.h"
#include "planner/cost/OperatorPricer.h"
#include "planner/readers/Readers.h"
#include "planner/search/AbstractProblem.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <random>
#include <string>

using namespace shardscope;
using planner::AbstractOperator;
using planner::AbstractProblem;

namespace {

constexpr int kBudgetPercents[] = {10, 30, 50, 80};

std::vector<contract::Placement> placements(std::int64_t maximumSlices) {
    std::vector<contract::Placement> list{contract::Placement{}};
    for (const auto& [slices, sharded] : {std::pair{1, 1}, {2, 1}, {2, 2}, {4, 2}, {4, 4}, {8, 4}, {8, 8}}) {
        if (slices <= maximumSlices)
            list.push_back({contract::PlacementKind::Shard, slices, sharded, contract::ShardGroup::World});
    }
    return list;
}

AbstractOperator priceOperator(const contract::Operator& op, const planner::OperatorPricer& pricer) {
    AbstractOperator result{op.name, {}};
    planner::OperatorPricer::Situation situation;
    for (const contract::Placement& placement : placements(op.maximumSlices())) {
        const planner::PlacementBytes bytes = pricer.bytes(op, placement);
        const double seconds = pricer.price(op, placement, situation).exposedSeconds();
        result.options.push_back({contract::formatPlacement(placement), bytes.state.total(), bytes.slot.total(),
                                  std::llround(seconds * 1e9)});
    }
    return result;
}

/// Tied operators follow their owner and are left out.
contract::Result<AbstractProblem> graphProblem(const char* graphName, const char* clusterName) {
    const auto graph = planner::openGraph(graphName);
    if (!graph)
        return tl::unexpected(graph.error());
    const auto cluster = planner::openCluster(clusterName);
    if (!cluster)
        return tl::unexpected(cluster.error());
    planner::PlanRequest request;
    request.graph = *graph;
    request.cluster = *cluster;
    request.mode = planner::CostMode::Paper;
    const contract::Preset preset = *contract::findPreset("fp32-adam");
    const planner::OperatorPricer pricer(request, preset);
    AbstractProblem problem;
    problem.baseBytes = request.cluster.reserveBytes();
    for (const contract::Operator& op : (*graph)->operators) {
        problem.baseBytes += pricer.keptBytes(op, 1, false);
        if (!op.isTied())
            problem.operators.push_back(priceOperator(op, pricer));
    }
    return problem;
}

AbstractProblem differentProblem(int operators) {
    planner::PlanRequest request;
    request.mode = planner::CostMode::Paper;
    request.cluster.devicesPerNode = 8;
    request.cluster.inside = request.cluster.between = {1e-5, 1e10};
    request.cluster.device.flopsFp32 = request.cluster.device.memoryBandwidth = 1e12;
    const planner::OperatorPricer pricer(request, *contract::findPreset("fp32-adam"));
    std::mt19937_64 random(20240817);
    AbstractProblem problem;
    for (int i = 0; i < operators; ++i) {
        // Not std::uniform_real_distribution, whose values depend on the library.
        const double share = static_cast<double>(random() >> 11) / 9007199254740992.0;
        const auto parameters = static_cast<std::int64_t>(1e4 + share * (4e7 - 1e4));
        contract::Operator op;
        op.name = "x" + std::to_string(i);
        op.kind = contract::OperatorKind::Linear;
        op.tensors = {{"weight", {parameters, 1}, parameters, 1}};
        problem.operators.push_back(priceOperator(op, pricer));
    }
    return problem;
}

std::int64_t peakOf(const AbstractProblem& problem, std::size_t option) {
    std::int64_t state = 0;
    std::int64_t transient = 0;
    for (const AbstractOperator& op : problem.operators) {
        const planner::AbstractOption& chosen = op.options[std::min(option, op.options.size() - 1)];
        state += chosen.stateBytes;
        transient = std::max(transient, chosen.transientBytes);
    }
    return problem.baseBytes + state + transient;
}

bool write(AbstractProblem problem, const std::string& folder, const std::string& name) {
    problem.limitBytes = 0;
    const auto infeasible = planner::solveAbstractProblem(problem);
    if (!infeasible) {
        fmt::print(stderr, "{}: {}\n", name, infeasible.error().message);
        return false;
    }
    const std::int64_t smallest = infeasible->smallestFeasibleBytes;
    const std::int64_t largest = peakOf(problem, 0);
    for (const int percent : kBudgetPercents) {
        contract::OrderedJson operators = contract::OrderedJson::array();
        for (const AbstractOperator& op : problem.operators) {
            contract::OrderedJson options = contract::OrderedJson::array();
            for (const planner::AbstractOption& option : op.options)
                options.push_back({{"label", option.label},
                                   {"state_bytes", option.stateBytes},
                                   {"transient_bytes", option.transientBytes},
                                   {"nanoseconds", option.nanoseconds}});
            operators.push_back({{"name", op.name}, {"options", options}});
        }
        const contract::OrderedJson document{{"format", "shardscope-problem"},
                                             {"version", 1},
                                             {"limit_bytes", smallest + (largest - smallest) / 100 * percent},
                                             {"base_bytes", problem.baseBytes},
                                             {"operators", operators}};
        const std::string path = fmt::format("{}/{}-{}.json", folder, name, percent);
        if (const auto written = contract::writeFileAtomically(path, document.dump()); !written) {
            fmt::print(stderr, "{}\n", written.error().message);
            return false;
        }
        fmt::print("{}\n", path);
    }
    return true;
}

} // namespace

int main(int argc, char** argv) {
    if (argc != 2) {
        fmt::print(stderr, "usage: export_problems DIR\n");
        return 2;
    }
    const std::string folder = argv[1];
    std::error_code error;
    std::filesystem::create_directories(folder, error);
    bool done = true;
    for (const auto& [graph, cluster] :
         {std::pair{"gpt2-xl", "8x-titan-pcie3"}, {"llama-3.1-8b", "2x8-h100"}, {"gpt3-175b", "16x8-h100"}}) {
        const auto problem = graphProblem(graph, cluster);
        if (!problem)
            fmt::print(stderr, "{}: {}\n", graph, problem.error().message);
        done = problem && write(*problem, folder, graph) && done;
    }
    done = write(differentProblem(2000), folder, "different") && done;
    return done ? 0 : 1;
}
