// SPDX-License-Identifier: GPL-3.0-or-later
#include "planner/cli/Commands.h"
#include "planner/cli/Print.h"
#include "planner/cluster/Clusters.h"
#include "planner/readers/Readers.h"
#include "runtime/contract/Bytes.h"
#include "runtime/contract/Json.h"
#include "runtime/contract/Preset.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <memory>

namespace shardscope::planner::cli {

namespace {

void printTables() {
    contract::OrderedJson graphs = contract::OrderedJson::array();
    for (const ZooEntry& entry : bundledGraphs())
        graphs.push_back({{"name", entry.name}, {"title", entry.title}});
    contract::OrderedJson clusters = contract::OrderedJson::array();
    for (const ZooEntry& entry : bundledClusters())
        clusters.push_back({{"name", entry.name}, {"title", entry.title}});
    contract::OrderedJson presetList = contract::OrderedJson::array();
    for (const contract::Preset& preset : contract::presets())
        presetList.push_back({{"name", preset.name},
                              {"stored",
                               {{"weight", preset.weightBytes},
                                {"gradient", preset.gradientBytes},
                                {"optimizer", preset.optimizerBytes}}},
                              {"gathered", preset.gatheredBytes}});
    printJson(contract::OrderedJson{{"graphs", graphs}, {"clusters", clusters}, {"presets", presetList}});
}

void printLists() {
    print("Graphs\n");
    for (const ZooEntry& entry : bundledGraphs())
        print("  {:<26} {}\n", entry.name, entry.title);
    print("\nClusters\n");
    for (const ZooEntry& entry : bundledClusters())
        print("  {:<26} {}\n", entry.name, entry.title);
    print("  {:<26} {}\n", "local", detectLocalCluster().title);
    print("\nPrecisions: stored bytes per parameter (weight + gradient + optimizer)\n");
    for (const contract::Preset& preset : contract::presets())
        print("  {:<26} {} + {} + {}\n", preset.name, preset.weightBytes, preset.gradientBytes, preset.optimizerBytes);
}

} // namespace

void addZoo(CLI::App& app, int& exitCode) {
    const auto json = std::make_shared<bool>(false);
    CLI::App* command = app.add_subcommand("zoo", "bundled graphs, clusters and precisions");
    command->add_flag("--json", *json, "one JSON document on standard output");
    command->callback([json, &exitCode] {
        *json ? printTables() : printLists();
        exitCode = 0;
    });
}

} // namespace shardscope::planner::cli
