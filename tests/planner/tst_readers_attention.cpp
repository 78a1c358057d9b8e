// SPDX-License-Identifier: GPL-3.0-or-later
// Which keys a query sees, layer by layer, and what unfused attention keeps.
#include "planner/cluster/Clusters.h"
#include "planner/readers/GraphFile.h"
#include "planner/readers/Readers.h"
#include "planner/search/Planner.h"
#include "runtime/contract/Bytes.h"
#include "runtime/contract/Json.h"
#include "runtime/contract/Plan.h"
#include "runtime/contract/Sizing.h"

#include <QtTest>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <fstream>

using namespace shardscope;
using contract::AttentionKernel;
using planner::GraphPointer;

namespace {

GraphPointer read(const contract::Json& config, std::int64_t sequence = 0) {
    const auto graph = planner::readConfig(config.dump(), "x", "x/config.json", sequence);
    if (!graph)
        qFatal("%s", graph.error().message.c_str());
    return *graph;
}

/// Keys that a query sees, by layer.
std::vector<std::int64_t> seenKeys(const planner::Graph& graph) {
    std::vector<std::int64_t> keys;
    for (const contract::Operator& op : graph.operators) {
        if (op.attention)
            keys.push_back(op.attention->keys);
    }
    return keys;
}

std::int64_t keptBytes(const planner::Graph& graph, const char* preset) {
    std::int64_t bytes = 0;
    for (const contract::Operator& op : graph.operators)
        bytes += contract::keptBytes(op, *contract::findPreset(preset), 1, false);
    return bytes;
}

GraphPointer unfused(const GraphPointer& graph) {
    const auto changed = planner::withAttention(graph, AttentionKernel::Materialised);
    if (!changed)
        qFatal("%s", changed.error().message.c_str());
    return *changed;
}

using Keys = std::vector<std::int64_t>;

} // namespace

class tst_readers_attention : public QObject {
    Q_OBJECT

private slots:
    void windowsAreThoseOfTheLibrary_data() {
        QTest::addColumn<QByteArray>("config");
        QTest::addColumn<QList<qint64>>("keys"); // of 4 layers at 64 tokens
        const auto row = [](const char* name, const char* config, const QList<qint64>& keys) {
            QTest::newRow(name) << QByteArray(config) << keys;
        };
        row("llama has none", R"({"model_type":"llama","sliding_window":16})", {64, 64, 64, 64});
        row("mistral: every layer", R"({"model_type":"mistral","sliding_window":16})", {16, 16, 16, 16});
        row("mistral: null is none", R"({"model_type":"mistral","sliding_window":null})", {64, 64, 64, 64});
        row("mistral: a window longer than the sequence", R"({"model_type":"mistral"})", {64, 64, 64, 64});
        row("mixtral: every layer", R"({"model_type":"mixtral","num_local_experts":2,"sliding_window":16})",
            {16, 16, 16, 16});
        row("mixtral: none by default", R"({"model_type":"mixtral","num_local_experts":2})", {64, 64, 64, 64});
        row("phi3: every layer", R"({"model_type":"phi3","sliding_window":16})", {16, 16, 16, 16});
        row("phi3: none by default", R"({"model_type":"phi3"})", {64, 64, 64, 64});
        row("qwen2: off by default", R"({"model_type":"qwen2","sliding_window":16,"max_window_layers":0})",
            {64, 64, 64, 64});
        row("qwen2: from a layer on",
            R"({"model_type":"qwen2","use_sliding_window":true,"sliding_window":16,"max_window_layers":3})",
            {64, 64, 64, 16});
        row("qwen2: layer 28 by default", R"({"model_type":"qwen2","use_sliding_window":true,"sliding_window":16})",
            {64, 64, 64, 64});
        row("qwen2: null is none",
            R"({"model_type":"qwen2","use_sliding_window":true,"sliding_window":null,"max_window_layers":0})",
            {64, 64, 64, 64});
        row("qwen3: layer_types come first",
            R"({"model_type":"qwen3","use_sliding_window":true,"sliding_window":16,"max_window_layers":0,)"
            R"("layer_types":["sliding_attention","full_attention","full_attention","sliding_attention"]})",
            {16, 64, 64, 16});
        row("qwen3: types without the switch",
            R"({"model_type":"qwen3","sliding_window":16,)"
            R"("layer_types":["sliding_attention","full_attention","full_attention","sliding_attention"]})",
            {64, 64, 64, 64});
        row("qwen2_moe: from a layer on",
            R"({"model_type":"qwen2_moe","num_experts":4,"use_sliding_window":true,"sliding_window":16,)"
            R"("max_window_layers":2})",
            {64, 64, 16, 16});
        row("qwen3_moe: every layer",
            R"({"model_type":"qwen3_moe","num_experts":8,"use_sliding_window":true,"sliding_window":16,)"
            R"("max_window_layers":2})",
            {16, 16, 16, 16});
        row("gemma has none", R"({"model_type":"gemma","sliding_window":16})", {64, 64, 64, 64});
        row("gemma2: every other layer", R"({"model_type":"gemma2","sliding_window":16})", {16, 64, 16, 64});
        row("gemma3: all but each nth",
            R"({"model_type":"gemma3_text","sliding_window":16,"sliding_window_pattern":3})", {16, 16, 64, 16});
        row("gemma3: all but each sixth", R"({"model_type":"gemma3_text","sliding_window":16})", {16, 16, 16, 16});
        row("gemma3: both ways",
            R"({"model_type":"gemma3_text","sliding_window":16,"use_bidirectional_attention":true})", {17, 17, 17, 17});
    }
    void windowsAreThoseOfTheLibrary() {
        QFETCH(QByteArray, config);
        QFETCH(QList<qint64>, keys);
        contract::Json document = contract::Json::parse(config.toStdString());
        document["num_hidden_layers"] = 4;
        const GraphPointer graph = read(document, 64);
        QCOMPARE(seenKeys(*graph), Keys(keys.begin(), keys.end()));
        // The work of attention is 4 tokens keys width; nothing else depends on the window.
        document["sliding_window"] = nullptr;
        const GraphPointer whole = read(document, 64);
        double less = 0;
        for (std::size_t i = 0; i < graph->operators.size(); ++i) {
            const contract::Operator& op = graph->operators[i];
            if (const auto& attention = op.attention) {
                const auto hidden = static_cast<double>(64 - attention->keys);
                less += 4.0 * 64 * hidden * static_cast<double>(attention->heads * attention->headDim);
            }
            QCOMPARE(contract::keptBytes(op, *contract::findPreset("bf16-adam"), 1, false),
                     contract::keptBytes(whole->operators[i], *contract::findPreset("bf16-adam"), 1, false));
        }
        QCOMPARE(whole->flopsForward() - graph->flopsForward(), less);
    }

    void aWindowThatHidesNothingChangesNothing() {
        const GraphPointer graph = *planner::openGraph("mistral-7b-v0.1", 4096);
        contract::Architecture whole = *graph->architecture;
        QVERIFY(whole.window);
        QCOMPARE(qint64(whole.window->keys), qint64(4096));
        whole.window.reset();
        const auto operators = contract::lowerArchitecture(whole, 4096);
        QVERIFY(operators);
        double flops = 0;
        for (const contract::Operator& op : *operators)
            flops += op.flopsForward;
        QCOMPARE(graph->flopsForward(), flops);
        const GraphPointer longer = *planner::openGraph("mistral-7b-v0.1", 16384);
        QCOMPARE(seenKeys(*longer), Keys(32, 4096));
        QVERIFY(!(*planner::openGraph("qwen2.5-7b"))->architecture->window);
    }

    void wrongWindowsAreRefused() {
        for (const auto& [config, expected] : std::vector<std::pair<std::string, std::string>>{
                 {R"({"model_type":"qwen3","num_hidden_layers":2,"layer_types":["full_attention"]})",
                  "layer_types must name the attention of 2 layers"},
                 {R"({"model_type":"qwen2","num_hidden_layers":1,"layer_types":["chunked_attention"]})",
                  "layer_types[0] is \"chunked_attention\""},
                 {R"({"model_type":"qwen2","max_window_layers":-1})", "max_window_layers is -1"},
                 {R"({"model_type":"phi3","sliding_window":0})", "sliding_window is 0"},
                 {R"({"model_type":"gpt2","attn_pdrop":2})", "attn_pdrop is 2"}}) {
            const auto graph = planner::readConfig(config, "x", "x/config.json");
            QVERIFY2(!graph, config.c_str());
            QVERIFY2(graph.error().message.find(expected) != std::string::npos, graph.error().message.c_str());
        }
    }

    void architecturesCarryTheirWindow() {
        const GraphPointer graph = read({{"model_type", "qwen3"},
                                         {"num_hidden_layers", 3},
                                         {"use_sliding_window", true},
                                         {"sliding_window", 16},
                                         {"max_window_layers", 1}});
        const contract::Json json = contract::Json::parse(contract::toJson(*graph->architecture).dump());
        QCOMPARE(json.at("sliding_window").dump(), std::string(R"({"keys":16,"layers":[1,2]})"));
        const contract::JsonCursor cursor(json, "x");
        QVERIFY(contract::readArchitecture(cursor) == *graph->architecture);
        for (const char* wrong :
             {R"({"keys":0,"layers":[1]})", R"({"keys":4,"layers":[]})", R"({"keys":4,"layers":[2,1]})",
              R"({"keys":4,"layers":[3]})", R"({"keys":4,"layers":[1,1]})", R"({"keys":4,"layers":7})"}) {
            contract::Json changed = json;
            changed["sliding_window"] = contract::Json::parse(wrong);
            const contract::JsonCursor bad(changed, "x");
            (void)contract::readArchitecture(bad);
            QVERIFY2(bad.failed(), wrong);
        }
    }

    void unfusedAttentionKeepsWhatMegatronCounts() {
        // 5 heads tokens^2 bytes a layer in 16 bits: softmax, its dropout's mask and output (arXiv 2205.05198).
        const GraphPointer fused = *planner::openGraph("gpt2-xl", 1024);
        const GraphPointer whole = unfused(fused);
        const std::int64_t scores = std::int64_t{25} * 1024 * 1024;
        const std::int64_t logSumExp = std::int64_t{25} * 1024 * 4;
        QCOMPARE(keptBytes(*whole, "bf16-adam") - keptBytes(*fused, "bf16-adam"), 48 * (5 * scores - logSumExp));
        QCOMPARE(keptBytes(*whole, "fp32-adam") - keptBytes(*fused, "fp32-adam"), 48 * (9 * scores - logSumExp));
        QCOMPARE(whole->flopsForward(), fused->flopsForward());
        QCOMPARE(whole->sha256(), fused->sha256());
        // Backward holds the gradients of probabilities and scores beside that of query, key and value.
        const auto live = [](const planner::Graph& graph) {
            return contract::sizeLive(graph.operators, *contract::findPreset("bf16-adam"), 1, {}).wideGradient;
        };
        QCOMPARE(live(*whole), 2 * (2 * scores + std::int64_t{3} * 1600 * 1024));
        QVERIFY(live(*fused) < live(*whole));
    }

    void withoutDropoutTheSoftmaxAloneIsKept() {
        for (const char* name : {"llama-3.2-1b", "vit-base-patch16-224", "mixtral-8x7b"}) {
            const GraphPointer fused = *planner::openGraph(name, name[0] == 'v' ? 197 : 512);
            QVERIFY(!fused->attentionDropout);
            std::int64_t expected = 0;
            for (const contract::Operator& op : fused->operators) {
                if (op.attention)
                    expected += contract::alignUp(2 * op.attention->heads * fused->sequence * fused->sequence) -
                                contract::alignUp(4 * op.attention->heads * fused->sequence);
            }
            QCOMPARE(keptBytes(*unfused(fused), "bf16-adam") - keptBytes(*fused, "bf16-adam"), expected);
        }
        QVERIFY((*planner::openGraph("bert-base-uncased"))->attentionDropout);
        QVERIFY((*planner::openGraph("t5-base"))->attentionDropout);
        QVERIFY(!read({{"model_type", "gpt2"}, {"attn_pdrop", 0.0}})->attentionDropout);
        QVERIFY(read({{"model_type", "llama"}, {"attention_dropout", 0.1}})->attentionDropout);
        QVERIFY(!read({{"model_type", "llama"}, {"attention_dropout", nullptr}})->attentionDropout);
    }

    void aMaskDoesNotMakeScoresSmaller() {
        const GraphPointer graph =
            read({{"model_type", "mistral"}, {"num_hidden_layers", 1}, {"sliding_window", 16}}, 64);
        const GraphPointer whole = unfused(graph);
        QCOMPARE(seenKeys(*whole), Keys{64});
        QCOMPARE(whole->flopsForward() - graph->flopsForward(), 4.0 * 64 * 48 * 4096);
    }

    void theKernelStaysUnderAnotherLength() {
        const GraphPointer whole = unfused(*planner::openGraph("t5-base", 128));
        const auto longer = planner::withSequence(whole, 256);
        QVERIFY(longer);
        QVERIFY((*longer)->attention == AttentionKernel::Materialised);
        QCOMPARE(keptBytes(**longer, "bf16-adam"),
                 keptBytes(*unfused(*planner::openGraph("t5-base", 256)), "bf16-adam"));
        const auto back = planner::withAttention(*longer, AttentionKernel::Fused);
        QVERIFY(back);
        QCOMPARE(keptBytes(**back, "bf16-adam"), keptBytes(**planner::openGraph("t5-base", 256), "bf16-adam"));
    }

    void scoresBeyondAllSizesAreRefused() {
        const auto changed = planner::withAttention(read({{"model_type", "llama"},
                                                          {"num_attention_heads", 4096},
                                                          {"hidden_size", 8192},
                                                          {"num_hidden_layers", 2},
                                                          {"max_position_embeddings", 1 << 22}},
                                                         1 << 22),
                                                    AttentionKernel::Materialised);
        QVERIFY(!changed);
        QVERIFY2(changed.error().message.find("too large to plan") != std::string::npos,
                 changed.error().message.c_str());
    }

    void graphFilesKeepWhatUnfusedAttentionNeeds() {
        const QTemporaryDir folder;
        const std::string path = folder.path().toStdString() + "/x.graph.json";
        for (const char* name : {"bert-base-uncased", "gpt2"}) {
            const GraphPointer graph = *planner::openGraph(name, 128);
            std::ofstream(path) << planner::graphFileText(*graph);
            const auto again = planner::openGraph(path);
            QVERIFY2(again, again ? "" : again.error().message.c_str());
            QVERIFY((*again)->attentionDropout);
            QCOMPARE(keptBytes(*unfused(*again), "bf16-adam"), keptBytes(*unfused(graph), "bf16-adam"));
        }
    }

    void plansSayHowAttentionRuns() {
        planner::PlanRequest request;
        request.graph = unfused(*planner::openGraph("demo-small"));
        request.cluster = *planner::openCluster("8x-titan-pcie3");
        request.precision = "fp32-adam";
        request.microBatch = 2;
        const auto planner = planner::Planner::create(request);
        QVERIFY2(planner, planner ? "" : planner.error().message.c_str());
        const auto result = (*planner)->solve(std::int64_t{8} << 30);
        QVERIFY(result->feasible);
        QVERIFY(result->training.attention == AttentionKernel::Materialised);
        const contract::Plan plan = planner::emitPlan(*result, "test");
        QVERIFY(std::any_of(plan.buffers.buffers.begin(), plan.buffers.buffers.end(),
                            [](const contract::Buffer& buffer) { return buffer.name.ends_with(".softmax"); }));
        const auto again = contract::parsePlan(contract::formatPlan(plan), "x");
        QVERIFY2(again, again ? "" : again.error().message.c_str());
        QVERIFY(again->training == plan.training);
        // Of the same graph fused a plan says nothing about it, as before there was a choice.
        request.graph = *planner::openGraph("demo-small");
        const auto fused = planner::emitPlan(*(*planner::Planner::create(request))->solve(std::int64_t{8} << 30), "x");
        QVERIFY(!contract::toJson(fused.training).contains("attention"));
        QVERIFY(fused.predicted.peakBytes < plan.predicted.peakBytes);
    }
};

QTEST_GUILESS_MAIN(tst_readers_attention)
#include "tst_readers_attention.moc"
