// SPDX-License-Identifier: GPL-3.0-or-later
#include "planner/support/PlannerFixtures.h"

namespace shardscope::testing {

contract::Cluster exampleCluster(std::int64_t devices, double latency, double inverseBandwidth) {
    contract::Cluster cluster;
    cluster.name = cluster.title = "example";
    cluster.devicesPerNode = devices;
    cluster.device = {"device", std::int64_t{1} << 40, kDeviceFlops, 0, kDeviceFlops, 0, 1e12};
    cluster.inside = {latency, 1 / inverseBandwidth};
    cluster.between = cluster.inside;
    return cluster;
}

contract::Operator matrixOperator(const std::string& name, std::int64_t parameters) {
    contract::Operator op;
    op.name = name;
    op.kind = contract::OperatorKind::Linear;
    if (parameters > 0)
        op.tensors = {{"weight", {parameters / 1024, 1024}, parameters / 1024, 1024}};
    return op;
}

planner::GraphPointer matrixGraph(const std::vector<std::int64_t>& parameters, double keptMiB, double computeSeconds) {
    auto graph = std::make_shared<planner::Graph>();
    graph->name = graph->title = "matrices";
    graph->family = "example";
    graph->sequence = 1;
    for (std::size_t i = 0; i < parameters.size(); ++i) {
        contract::Operator op = matrixOperator("m" + std::to_string(i), parameters[i]);
        op.flopsForward = computeSeconds / 3 * kDeviceFlops;
        if (keptMiB > 0)
            op.kept = {{"input", static_cast<std::int64_t>(keptMiB * 1048576 / 4), false, false}};
        graph->operators.push_back(std::move(op));
    }
    return graph;
}

planner::PlanRequest paperRequest(planner::GraphPointer graph, const contract::Cluster& cluster,
                                  std::vector<std::int32_t> slices) {
    planner::PlanRequest request;
    request.graph = std::move(graph);
    request.cluster = cluster;
    request.mode = planner::CostMode::Paper;
    request.precision = "fp32-adam";
    request.microBatch = 1;
    request.recompute = contract::RecomputePolicy::Off;
    request.slices = std::move(slices);
    return request;
}

contract::Architecture smallArchitecture(std::int64_t layers, std::int64_t hidden, std::int64_t heads,
                                         std::int64_t vocabulary, bool tied) {
    contract::Architecture a;
    a.family = "gpt2";
    a.layers = layers;
    a.hidden = hidden;
    a.heads = a.kvHeads = heads;
    a.headDim = hidden / heads;
    a.intermediate = 4 * hidden;
    a.vocabulary = vocabulary;
    a.positions = 64;
    a.attentionBias = a.attentionOutputBias = a.mlpBias = true;
    a.tied = tied;
    return a;
}

planner::GraphPointer smallGraph(const contract::Architecture& architecture, std::int64_t sequence) {
    auto graph = std::make_shared<planner::Graph>();
    graph->name = graph->title = "small";
    graph->family = architecture.family;
    graph->sequence = sequence;
    graph->architecture = architecture;
    graph->operators = *contract::lowerArchitecture(architecture, sequence);
    return graph;
}

planner::PlanRequest smallRequest(std::mt19937_64& random, std::int64_t layers) {
    const auto pick = [&](std::int64_t low, std::int64_t high) {
        return std::uniform_int_distribution<std::int64_t>(low, high)(random);
    };
    planner::PlanRequest request;
    const std::int64_t heads = pick(1, 3);
    request.graph =
        smallGraph(smallArchitecture(layers, heads * pick(3, 17), heads, pick(20, 300), pick(0, 1) == 1), pick(5, 40));
    request.cluster =
        exampleCluster(pick(2, 5), 1e-6 * static_cast<double>(pick(0, 20)), 1e-9 * static_cast<double>(pick(1, 30)));
    request.cluster.device.flopsFp32 = request.cluster.device.peakFlopsFp32 = 1e9 * static_cast<double>(pick(1, 60));
    request.cluster.device.memoryBandwidth = 1e9 * static_cast<double>(pick(1, 50));
    request.cluster.device.flopsBf16 = request.cluster.device.peakFlopsBf16 = 2 * request.cluster.device.flopsFp32;
    request.cluster.hostSecondsPerCollective = 1e-6 * static_cast<double>(pick(0, 5));
    request.cluster.isCpu = pick(0, 1) == 1;
    request.precision = pick(0, 1) == 1 ? "fp32-adam" : "bf16-adam";
    request.slices = {1, 2};
    request.prefetchDepth = static_cast<std::int32_t>(pick(0, 2));
    return request;
}

} // namespace shardscope::testing
