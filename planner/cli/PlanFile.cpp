// SPDX-License-Identifier: GPL-3.0-or-later
#include "planner/cli/PlanFile.h"

#include "planner/cli/RequestOptions.h"
#include "planner/readers/Readers.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>

namespace shardscope::planner::cli {

namespace {

/// The graph of a plan without architecture; null when there is none.
contract::Result<GraphPointer> graphOf(const contract::Plan& plan, const std::string& given) {
    if (!given.empty() && !plan.graph.architecture)
        return openGraph(given, plan.training.sequence);
    const std::vector<ZooEntry> bundled = bundledGraphs();
    const bool known = std::any_of(bundled.begin(), bundled.end(),
                                   [&](const ZooEntry& entry) { return entry.name == plan.graph.name; });
    if (plan.graph.architecture || !known)
        return GraphPointer();
    return openGraph(plan.graph.name, plan.training.sequence);
}

} // namespace

contract::Result<OpenedPlan> openPlan(const std::string& path, const std::string& given) {
    auto plan = contract::readPlanFile(path);
    if (!plan)
        return tl::unexpected(plan.error());
    const auto graph = graphOf(*plan, given);
    if (!graph)
        return tl::unexpected(graph.error());
    if (*graph)
        warn((*graph)->unknownKeys);
    auto step = planStep(*plan, path, *graph);
    if (!step)
        return tl::unexpected(step.error());
    return OpenedPlan{std::move(*plan), std::move(*step)};
}

std::string durationText(double seconds) {
    const double size = std::abs(seconds);
    if (size >= 1)
        return fmt::format("{:.3f} s", seconds);
    if (size >= 1e-3)
        return fmt::format("{:.3f} ms", seconds * 1e3);
    // Less than half a nanosecond is what is left of sums of doubles.
    return size >= 5e-10 ? fmt::format("{:.3f} us", seconds * 1e6) : "0";
}

contract::OrderedJson waterfallJson(const Waterfall& waterfall) {
    contract::OrderedJson json = contract::OrderedJson::object();
    for (int i = 0; i < kCauseCount; ++i)
        json[std::string(causeName(static_cast<Cause>(i)))] = toSeconds(waterfall[static_cast<Cause>(i)]);
    return json;
}

} // namespace shardscope::planner::cli
