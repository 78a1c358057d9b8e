// SPDX-License-Identifier: GPL-3.0-or-later
#include "planner/validate/Validation.h"

#include "planner/readers/Readers.h"
#include "planner/validate/Tables.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>

namespace shardscope::planner {

double ValidationRow::errorPercent() const {
    return theirs == 0 ? 0 : (ours - theirs) / theirs * 100;
}

bool ValidationRow::isReproduced() const {
    // The last bits of a difference of decimal fractions do not count.
    return std::abs(ours - theirs) <= tolerance + 1e-12 * std::abs(theirs);
}

double ValidationTable::meanErrorPercent() const {
    double sum = 0;
    for (const ValidationRow& row : rows)
        sum += std::abs(row.errorPercent());
    return rows.empty() ? 0 : sum / static_cast<double>(rows.size());
}

double ValidationTable::maxErrorPercent() const {
    double largest = 0;
    for (const ValidationRow& row : rows)
        largest = std::max(largest, std::abs(row.errorPercent()));
    return largest;
}

bool ValidationTable::isReproduced() const {
    return std::all_of(rows.begin(), rows.end(), [](const ValidationRow& row) { return row.isReproduced(); });
}

ValidationRow exactRow(std::string name, std::string unit, double ours, double theirs, std::string convention) {
    return {std::move(name), std::move(unit), ours, theirs, 0, "every digit", std::move(convention)};
}

ValidationRow roundedRow(std::string name, std::string unit, double ours, double theirs, double digit,
                         std::string convention) {
    return {std::move(name), std::move(unit), ours, theirs, digit / 2, "half of the last digit", std::move(convention)};
}

ValidationRow relativeRow(std::string name, std::string unit, double ours, double theirs, double percent,
                          std::string convention) {
    return {std::move(name),
            std::move(unit),
            ours,
            theirs,
            std::abs(theirs) * percent / 100,
            fmt::format("{} %", percent),
            std::move(convention)};
}

contract::Result<std::vector<ValidationTable>> validate(const std::string& publishedFile) {
    const auto document = contract::readJsonFile(publishedFile, 1 << 20);
    if (!document)
        return tl::unexpected(document.error());
    const contract::JsonCursor root(*document, publishedFile);
    root.at("format").choice<int>({{"shardscope-published", 1}});
    root.at("version").integer(1, 1);
    if (root.failed())
        return root.error();

    std::vector<ValidationTable> tables;
    const contract::JsonCursor bars = root.at("accuracy_to_beat");
    const auto add = [&](ValidationTable table, const char* bar = nullptr) {
        if (bar)
            table.bar = AccuracyBar{bars.at(bar).at("mean").number(), bars.at(bar).at("max").number()};
        tables.push_back(std::move(table));
    };
    add(zeroTable(root.at("zero_model_states")), "parameters_optimizer");
    add(megatronActivationTable(root.at("megatron")), "activations");
    add(megatronStateTable(root.at("megatron")), "parameters_optimizer");
    add(megatronStepTable(root.at("megatron_step_seconds")), "step_time");
    add(deepspeedTable(root.at("deepspeed")), "parameters_optimizer");
    if (root.failed())
        return root.error();

    const contract::JsonCursor llmc = root.at("llm_c");
    const auto gpt2 = openGraph(llmc.at("graph").text(256), llmc.at("sequence").integer(1));
    if (!gpt2)
        return tl::unexpected(gpt2.error());
    add(llmcTable(llmc, **gpt2), "activations");

    const contract::JsonCursor torchtitan = root.at("torchtitan");
    const auto llama = openGraph(torchtitan.at("graph").text(256), torchtitan.at("sequence").integer(1));
    if (!llama)
        return tl::unexpected(llama.error());
    for (ValidationTable& table : torchtitanMemoryTables(torchtitan, *llama))
        add(std::move(table));
    auto throughput = torchtitanThroughputTable(torchtitan, *llama);
    if (!throughput)
        return tl::unexpected(throughput.error());
    add(std::move(*throughput), "step_time");

    auto osdp = osdpTable(root.at("osdp"));
    if (!osdp)
        return tl::unexpected(osdp.error());
    add(std::move(*osdp));
    if (root.failed())
        return root.error();
    return tables;
}

} // namespace shardscope::planner
