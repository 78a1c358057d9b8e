// SPDX-License-Identifier: GPL-3.0-or-later
#include "planner/cost/MegatronActivations.h"
#include "planner/cost/ZeroEstimates.h"
#include "planner/validate/Tables.h"
#include "runtime/contract/Bytes.h"
#include "runtime/contract/Preset.h"

#include <fmt/format.h>

namespace shardscope::planner {

namespace {

constexpr std::size_t kMaximumRows = 1000;

double inGiB(double bytes) {
    return bytes / static_cast<double>(contract::kGiB);
}
double inMiB(double bytes) {
    return bytes / static_cast<double>(contract::kMiB);
}

struct MegatronCase {
    std::string name;
    MegatronDecoder decoder;
    ActivationBatch batch;
    MegatronOptions options;
};

MegatronCase readCase(const contract::JsonCursor& row) {
    constexpr std::int64_t kLargest = 1 << 20;
    const auto size = [&](const char* key) { return row.at(key).integer(1, kLargest); };
    MegatronCase result;
    result.name = row.at("name").text();
    result.decoder = {size("hidden"), size("heads"), size("layers")};
    result.batch = {size("sequence"), size("micro_batch"), 2};
    result.options.tensor = size("tensor");
    result.options.pipeline = size("pipeline");
    result.options.interleave = size("interleave");
    return result;
}

} // namespace

ValidationTable zeroTable(const contract::JsonCursor& published) {
    ValidationTable table{"ZeRO model states", published.at("source").text(), {}};
    const double parameters = static_cast<double>(published.at("parameters").integer());
    const double ranks = static_cast<double>(published.at("ranks").integer(1));
    const contract::Preset preset = *contract::findPreset("bf16-adam");
    const char* const kRules[] = {"(2 + 2) P + 12 P/N", "2 P + (2 + 12) P/N", "(2 + 2 + 12) P/N"};
    const double kDigits[] = {0.1, 0.1, 0.01}; // how many decimals the paper prints
    for (int stage = 1; stage <= 3; ++stage) {
        const double theirs = published.at("decimal_gb").at("stage" + std::to_string(stage)).number();
        table.rows.push_back(roundedRow(fmt::format("stage {}", stage), "GB",
                                        zeroStateBytes(parameters, stage, ranks, preset) / 1e9, theirs,
                                        kDigits[stage - 1], kRules[stage - 1]));
    }
    return table;
}

ValidationTable megatronActivationTable(const contract::JsonCursor& published) {
    ValidationTable table{"Megatron activations", published.at("source").text(), {}};
    const contract::JsonCursor rows = published.at("rows");
    const std::size_t count = rows.arraySize(kMaximumRows);
    for (std::size_t i = 0; i < count && !rows.failed(); ++i) {
        const contract::JsonCursor row = rows.element(i);
        MegatronCase entry = readCase(row);
        const double none = row.at("none_gib").number();
        const double selective = row.at("sequence_parallel_selective_gib").number();
        if (rows.failed())
            break;
        const auto ours = [&] {
            return inGiB(static_cast<double>(megatronFirstStageBytes(entry.decoder, entry.batch, entry.options)));
        };
        const char* const factor = entry.options.interleave > 1 ? " x L (1 + (p-1)/(p v))" : " x L";
        table.rows.push_back(exactRow(entry.name + ", no recomputation", "GiB", ours(), none,
                                      fmt::format("megatron: s m h (10 + 24/t + 5 A s/(h t)){}", factor)));
        entry.options.sequenceParallel = true;
        entry.options.recompute = MegatronRecompute::Selective;
        table.rows.push_back(exactRow(entry.name + ", sequence parallel, selective", "GiB", ours(), selective,
                                      fmt::format("megatron: 34 s m h / t{}", factor)));
    }
    return table;
}

ValidationTable megatronStateTable(const contract::JsonCursor& published) {
    ValidationTable table{"Megatron parameters and optimizer", published.at("source").text(), {}};
    const contract::JsonCursor rows = published.at("rows");
    const std::size_t count = rows.arraySize(kMaximumRows);
    const contract::Preset preset = *contract::findPreset("bf16-adam-fp32grad");
    for (std::size_t i = 0; i < count && !rows.failed(); ++i) {
        const contract::JsonCursor row = rows.element(i);
        const MegatronCase entry = readCase(row);
        const double theirs = row.at("parameters_optimizer_gib").number();
        if (rows.failed())
            break;
        table.rows.push_back(exactRow(
            entry.name, "GiB", inGiB(megatronStateBytes(entry.decoder, entry.options, preset.statePerParameter())),
            theirs, "18 x 12 L h^2 / (t p), embeddings left out"));
    }
    return table;
}

ValidationTable megatronStepTable(const contract::JsonCursor& published) {
    ValidationTable table{"Megatron step times", published.at("source").text(), {}};
    const contract::JsonCursor rows = published.at("rows");
    const std::size_t count = rows.arraySize(kMaximumRows);
    for (std::size_t i = 0; i < count && !rows.failed(); ++i) {
        const contract::JsonCursor row = rows.element(i);
        table.notReproduced.push_back(
            {fmt::format("{} on {} GPUs: {} s, {} s", row.at("name").text(), row.at("gpus").integer(),
                         row.at("full_recompute").number(), row.at("sequence_parallel_selective").number()),
             "needs tensor + pipeline plans, which are not priced yet"});
    }
    return table;
}

ValidationTable deepspeedTable(const contract::JsonCursor& published) {
    ValidationTable table{"DeepSpeed ZeRO-3 estimators", published.at("source").text(), {}};
    const contract::JsonCursor rows = published.at("rows");
    const std::size_t count = rows.arraySize(kMaximumRows);
    for (std::size_t i = 0; i < count && !rows.failed(); ++i) {
        const contract::JsonCursor row = rows.element(i);
        const contract::JsonCursor sizes = row.at("sizes");
        const auto size = [&](const char* key) { return sizes.at(key).integer(1, 1 << 20); };
        const T5Parameters parameters =
            countT5Parameters({size("hidden"), size("head_width"), size("heads"), size("intermediate"), size("layers"),
                               size("vocabulary"), size("position_buckets")});
        const std::string name = row.at("name").text();
        const std::int64_t gpus = row.at("gpus").integer(1);
        const bool gib = row.at("unit").choice<bool>({{"GiB", true}, {"MiB", false}});
        struct Offload {
            const char* key;
            const char* text;
            const char* rule;
            DeepSpeedOffload offload;
        };
        for (const Offload& variant :
             {Offload{"none", "no offload", "4 x largest layer + 18 P/N", DeepSpeedOffload::None},
              Offload{"optimizer", "optimizer offloaded", "4 x largest layer + 2 P/N", DeepSpeedOffload::Optimizer},
              Offload{"optimizer_and_parameters", "both offloaded", "4 x largest layer",
                      DeepSpeedOffload::OptimizerAndParameters}}) {
            const auto cell = row.find(variant.key);
            if (!cell || rows.failed())
                continue;
            const double bytes = deepspeedZero3Bytes(parameters.total, parameters.largestLayer, gpus, variant.offload);
            const std::string convention = fmt::format("{}; P = {}, largest layer {}, counted", variant.rule,
                                                       parameters.total, parameters.largestLayer);
            const std::string label = fmt::format("{} on {} GPUs, {}", name, gpus, variant.text);
            ValidationRow made = gib ? roundedRow(label, "GiB", inGiB(bytes), cell->number(), 0.01, convention)
                                     : exactRow(label, "MiB", inMiB(bytes), cell->number(), convention);
            if (!gib) {
                made.tolerance = 1;
                made.toleranceText = "whole MiB, cut off";
            }
            table.rows.push_back(std::move(made));
        }
    }
    return table;
}

ValidationTable llmcTable(const contract::JsonCursor& published, const Graph& graph) {
    ValidationTable table{"llm.c GPT-2 124M", published.at("source").text(), {}};
    contract::Architecture architecture = graph.architecture.value_or(contract::Architecture{});
    architecture.vocabulary = published.at("padded_vocabulary").integer(1, 1 << 24);
    const std::int64_t sequence = published.at("sequence").integer(1, 1 << 20);
    const std::int64_t samples = published.at("micro_batch").integer(1, 1 << 20);
    const auto operators = contract::lowerArchitecture(architecture, sequence);
    if (!operators) {
        published.at("graph").fail(operators.error().message);
        return table;
    }
    std::int64_t parameters = 0;
    for (const contract::Operator& op : *operators)
        parameters += op.parameters();
    const auto add = [&](const char* key, double bytes, const std::string& convention) {
        table.rows.push_back(
            relativeRow(key, "MiB", inMiB(bytes), published.at("mib").at(key).number(), 1, convention));
    };
    const double count = static_cast<double>(parameters);
    const std::string counted =
        fmt::format("P = {} with the vocabulary padded to {}", parameters, architecture.vocabulary);
    add("parameters", 2 * count, "2 P; " + counted);
    add("gradients", 2 * count, "2 P");
    add("adam_m", 4 * count, "4 P");
    add("adam_v", 4 * count, "4 P");
    const KeptByOperator kept =
        llmcActivations(architecture, *operators, {sequence, samples, 2}, AttentionKernel::Materialised);
    add("activations", static_cast<double>(totalBytes(kept)),
        "llm.c: every forward tensor, whole attention probabilities and logits, operator by operator");
    ValidationRow& row = table.rows.back();
    double blocks = 0;
    double outside = 0;
    for (std::size_t i = 0; i < kept.size(); ++i) {
        for (const KeptTensor& tensor : kept[i])
            ((*operators)[i].block >= 0 ? blocks : outside) += inMiB(static_cast<double>(tensor.bytes));
    }
    row.parts = {{"blocks", blocks}, {"embedding, last norm, logits, losses", outside}};
    return table;
}

} // namespace shardscope::planner
