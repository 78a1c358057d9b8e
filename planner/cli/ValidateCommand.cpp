// SPDX-License-Identifier: GPL-3.0-or-later
#include "planner/cli/Commands.h"
#include "planner/cli/Print.h"
#include "planner/cli/RequestOptions.h"
#include "planner/readers/Readers.h"
#include "planner/validate/Validation.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <memory>

namespace shardscope::planner::cli {

namespace {

contract::OrderedJson tableJson(const ValidationTable& table) {
    contract::OrderedJson rows = contract::OrderedJson::array();
    for (const ValidationRow& row : table.rows) {
        contract::OrderedJson entry{{"name", row.name},
                                    {"unit", row.unit},
                                    {"ours", row.ours},
                                    {"theirs", row.theirs},
                                    {"error_percent", row.errorPercent()},
                                    {"tolerance", row.tolerance},
                                    {"tolerance_text", row.toleranceText},
                                    {"reproduced", row.isReproduced()},
                                    {"convention", row.convention}};
        if (!row.parts.empty()) {
            entry["parts"] = contract::OrderedJson::object();
            for (const auto& [name, value] : row.parts)
                entry["parts"][name] = value;
        }
        rows.push_back(std::move(entry));
    }
    contract::OrderedJson missing = contract::OrderedJson::array();
    for (const NotReproduced& entry : table.notReproduced)
        missing.push_back({{"name", entry.name}, {"reason", entry.reason}});
    contract::OrderedJson json{{"name", table.name},
                               {"source", table.source},
                               {"reproduced", table.isReproduced()},
                               {"mean_error_percent", nullptr},
                               {"max_error_percent", nullptr},
                               {"bar", nullptr},
                               {"rows", rows},
                               {"not_reproduced", missing},
                               {"notes", table.notes}};
    if (!table.rows.empty()) {
        json["mean_error_percent"] = table.meanErrorPercent();
        json["max_error_percent"] = table.maxErrorPercent();
    }
    if (table.bar)
        json["bar"] = {{"mean_percent", table.bar->meanPercent}, {"max_percent", table.bar->maxPercent}};
    return json;
}

void printTable(const ValidationTable& table) {
    print("{}\n  {}\n", table.name, table.source);
    if (!table.rows.empty())
        print("  {:<58} {:>14} {:>14} {:<8} {:>8}  {}\n", "", "ours", "theirs", "", "error", "tolerance");
    for (const ValidationRow& row : table.rows) {
        print("  {:<58} {:>14.10g} {:>14.10g} {:<8} {:>7.2f}%  {}{}\n", row.name, row.ours, row.theirs, row.unit,
              row.errorPercent(), row.toleranceText, row.isReproduced() ? "" : "   NOT REPRODUCED");
        print("      {}\n", row.convention);
        if (row.parts.empty())
            continue;
        std::string parts;
        for (const auto& [name, value] : row.parts)
            parts += fmt::format("{}{} {:.2f}", parts.empty() ? "" : " + ", name, value);
        print("      = {}\n", parts);
    }
    for (const NotReproduced& entry : table.notReproduced)
        print("  not reproduced: {}\n      {}\n", entry.name, entry.reason);
    for (const std::string& note : table.notes)
        print("  note: {}\n", note);
    print("\n");
}

void printSummary(const std::vector<ValidationTable>& tables) {
    print("{:<46} {:>5} {:>9} {:>9}   {}\n", "Summary", "rows", "mean", "max", "best public estimator, its own set");
    for (const ValidationTable& table : tables) {
        if (table.rows.empty()) {
            print("{:<46} {:>5}   not reproduced\n", table.name, 0);
            continue;
        }
        const std::string bar =
            table.bar ? fmt::format("mean {:.2f} %, max {:.2f} %", table.bar->meanPercent, table.bar->maxPercent) : "";
        print("{:<46} {:>5} {:>7.2f} % {:>7.2f} %  {}{}\n", table.name, table.rows.size(), table.meanErrorPercent(),
              table.maxErrorPercent(), bar, table.isReproduced() ? "" : "   NOT REPRODUCED");
    }
}

int runValidate(bool json) {
    const auto tables = validate(modelsFolder() + "/published.json");
    if (!tables)
        return report(tables.error(), json);
    const bool reproduced =
        std::all_of(tables->begin(), tables->end(), [](const ValidationTable& table) { return table.isReproduced(); });
    if (json) {
        contract::OrderedJson list = contract::OrderedJson::array();
        for (const ValidationTable& table : *tables)
            list.push_back(tableJson(table));
        printJson(contract::OrderedJson{{"reproduced", reproduced}, {"tables", list}});
    } else {
        for (const ValidationTable& table : *tables)
            printTable(table);
        printSummary(*tables);
    }
    return reproduced ? 0 : contract::exitCode(contract::ErrorKind::RunFailed);
}

} // namespace

void addValidate(CLI::App& app, int& exitCode) {
    const auto json = std::make_shared<bool>(false);
    CLI::App* command = app.add_subcommand("validate", "published tables of other systems: ours, theirs, error");
    command->add_flag("--json", *json, "one JSON document on standard output");
    command->callback([json, &exitCode] { exitCode = runValidate(*json); });
}

} // namespace shardscope::planner::cli
