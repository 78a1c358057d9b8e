// SPDX-License-Identifier: GPL-3.0-or-later
#include "planner/cli/Commands.h"
#include "planner/cli/InspectReport.h"
#include "planner/cli/Print.h"
#include "planner/cli/RequestOptions.h"
#include "planner/graph/PaperFamilies.h"
#include "planner/readers/GraphFile.h"
#include "planner/readers/Readers.h"
#include "runtime/contract/Json.h"

#include <fmt/format.h>

#include <memory>

namespace shardscope::planner::cli {

namespace {

struct InspectOptions {
    std::string graph;
    PaperFamily family;
    std::int64_t sequence = 0;
    std::string attention = "fused";
    std::string exportTo;
    bool json = false;
};

contract::Result<GraphPointer> openOrMake(const InspectOptions& options) {
    if (options.graph.empty() == options.family.name.empty())
        return contract::usageError("inspect: name a GRAPH, or a --family to make one");
    return options.graph.empty() ? makePaperFamily(options.family, options.sequence)
                                 : openGraph(options.graph, options.sequence);
}

int inspect(const InspectOptions& options) {
    const auto graph = openOrMake(options);
    if (!graph)
        return report(graph.error(), options.json);
    warn((*graph)->unknownKeys);
    if (!options.exportTo.empty()) {
        if (const auto written = contract::writeFileAtomically(options.exportTo, graphFileText(**graph)); !written)
            return report(written.error(), options.json);
        complain("wrote " + options.exportTo);
    }
    const auto shown = withAttention(*graph, options.attention == "unfused" ? contract::AttentionKernel::Materialised
                                                                            : contract::AttentionKernel::Fused);
    if (!shown)
        return report(shown.error(), options.json);
    if (options.json)
        fmt::print("{}", inspectJson(**shown));
    else
        print("{}", inspectTable(**shown));
    return 0;
}

} // namespace

void addInspect(CLI::App& app, int& exitCode) {
    const auto options = std::make_shared<InspectOptions>();
    CLI::App* command = app.add_subcommand("inspect", "parameters, FLOPs and activations of every operator");
    command->add_option("GRAPH", options->graph, kGraphHelp);
    command->add_option("--sequence", options->sequence, "tokens of a sample")->check(positiveCount());
    command->add_option("--attention", options->attention, "fused, or unfused: its scores are kept")
        ->check(CLI::IsMember({"fused", "unfused"}))
        ->capture_default_str();
    command->add_option("--family", options->family.name, "make a network of a paper's family: " + paperFamilyNames());
    command->add_option("--layers", options->family.layers, "its blocks")->check(positiveCount());
    command->add_option("--hidden", options->family.hidden, "its width, or widths with commas")->delimiter(',');
    command->add_option("--vocabulary", options->family.vocabulary, "its tokens")->capture_default_str();
    command->add_option("--positions", options->family.positions, "its context")->capture_default_str();
    command->add_option("--export", options->exportTo, "write the graph as *.graph.json");
    command->add_flag("--json", options->json, "one JSON document on standard output");
    command->callback([options, &exitCode] { exitCode = inspect(*options); });
}

} // namespace shardscope::planner::cli
