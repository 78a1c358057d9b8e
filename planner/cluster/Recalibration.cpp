// SPDX-License-Identifier: GPL-3.0-or-later
#include "planner/cluster/Recalibration.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace shardscope::planner {

namespace {

constexpr double kLargestRatio = 1000;

bool isSensible(double ratio) {
    return ratio >= 1 / kLargestRatio && ratio <= kLargestRatio; // false for NaN
}

/// The kernels' seconds are all by the same ratio larger, so that their shape stays what was fitted.
contract::KernelRates scaled(const contract::KernelRates& rates, double ratio) {
    contract::OrderedJson json = contract::toJson(rates);
    for (auto& [name, value] : json.items())
        if (value.is_number())
            value = value.get<double>() * ratio;
    const contract::Json plain = contract::Json::parse(json.dump());
    return contract::readKernelRates(contract::JsonCursor(plain, "kernels"));
}

void scale(contract::Link& link, double ratio) {
    link.latencySeconds *= ratio;
    link.bytesPerSecond /= ratio;
}

} // namespace

contract::Result<contract::Cluster> recalibrated(contract::Cluster cluster, const BusyRatio& ratio,
                                                 const std::string& why) {
    if (!isSensible(ratio.compute) || !isSensible(ratio.communication))
        return contract::badInput(
            fmt::format("a run that computed {:.3g} and communicated {:.3g} times as long as predicted says nothing "
                        "about the rates",
                        ratio.compute, ratio.communication));
    contract::Device& device = cluster.device;
    for (double* rate : {&device.flopsFp32, &device.flopsBf16, &device.memoryBandwidth})
        *rate /= ratio.compute;
    scale(cluster.inside, ratio.communication);
    scale(cluster.between, ratio.communication);
    cluster.hostSecondsPerCollective *= ratio.communication;
    cluster.source = why;
    if (cluster.kernels) {
        cluster.kernels = scaled(*cluster.kernels, ratio.compute);
        contract::OrderedJson measured = contract::OrderedJson::parse(cluster.measured);
        measured["kernels"] = contract::toJson(*cluster.kernels);
        cluster.measured = measured.dump();
    }
    return cluster;
}

} // namespace shardscope::planner
