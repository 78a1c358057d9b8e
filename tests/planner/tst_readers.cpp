// SPDX-License-Identifier: GPL-3.0-or-later
#include "planner/readers/Readers.h"

#include <QtTest>
#include <nlohmann/json.hpp>

#include <map>
#include <numeric>
#include <set>

using namespace shardscope;
using planner::GraphPointer;

namespace {

contract::Json goldenGraphs() {
    const auto document =
        contract::readJsonFile(std::string(SHARDSCOPE_SOURCE_DIR) + "/tests/planner/data/parameter_counts.json");
    return document ? document->at("graphs") : contract::Json::object();
}

std::vector<std::string> operatorNames(const planner::Graph& graph) {
    std::vector<std::string> names;
    for (const contract::Operator& op : graph.operators)
        names.push_back(op.name);
    return names;
}

const contract::Operator& findOperator(const planner::Graph& graph, const std::string& name) {
    for (const contract::Operator& op : graph.operators) {
        if (op.name == name)
            return op;
    }
    qFatal("no operator %s", name.c_str());
}

/// Reads a configuration that must be right.
GraphPointer read(const std::string& text, std::int64_t sequence = 0) {
    const auto graph = planner::readConfig(text, "x", "x/config.json", sequence);
    if (!graph)
        qFatal("%s", graph.error().message.c_str());
    return *graph;
}

const contract::Architecture& architectureOf(const GraphPointer& graph) {
    return *graph->architecture;
}

} // namespace

class tst_readers : public QObject {
    Q_OBJECT

private slots:
    void countsOfConfigurationsAreThePublishedOnes_data() {
        QTest::addColumn<QString>("config");
        QTest::addColumn<qint64>("unique");
        QTest::addColumn<qint64>("active");
        const contract::Json golden = goldenGraphs();
        for (const auto& [name, entry] : golden.items())
            QTest::newRow(name.c_str())
                << QString::fromStdString(entry.at("config").dump()) << entry.at("unique_parameters").get<qint64>()
                << entry.value("active_parameters", entry.at("unique_parameters")).get<qint64>();
    }
    void countsOfConfigurationsAreThePublishedOnes() {
        QFETCH(QString, config);
        QFETCH(qint64, unique);
        QFETCH(qint64, active);
        const GraphPointer graph = read(config.toStdString());
        const auto count = graph->countParameters();
        QCOMPARE(qint64(count.unique), unique);
        QCOMPARE(qint64(count.stored), unique);
        QCOMPARE(qint64(count.active), active);
        QCOMPARE(qint64(count.duplicated), qint64(0));
    }

    void countsOfBundledGraphsAreThePublishedOnes() {
        const contract::Json golden = goldenGraphs();
        QVERIFY(golden.size() >= 27);
        for (const auto& [name, entry] : golden.items()) {
            if (name.find(" (") != std::string::npos && !name.ends_with(" (BertForMaskedLM)"))
                continue; // the same network under another head
            const auto graph = planner::openGraph(name.substr(0, name.find(" (")));
            QVERIFY2(graph, name.c_str());
            QCOMPARE(qint64((*graph)->countParameters().unique), entry.at("unique_parameters").get<qint64>());
        }
    }

    void everyBundledGraphOpens() {
        const auto entries = planner::bundledGraphs();
        QVERIFY(entries.size() >= 26);
        for (const planner::ZooEntry& entry : entries) {
            const auto graph = planner::openGraph(entry.name);
            QVERIFY2(graph, graph ? "" : graph.error().message.c_str());
            QCOMPARE((*graph)->name, entry.name);
            QCOMPARE((*graph)->title, entry.title);
            QCOMPARE((*graph)->source, entry.path);
            const qint64 longest = (*graph)->maximumSequence > 0 ? (*graph)->maximumSequence : 512;
            QCOMPARE(qint64((*graph)->sequence), std::min<qint64>(longest, 4096));
            QVERIFY((*graph)->blockCount() > 0);
            // A configuration as published leaves no size to a default.
            for (const std::string& warning : (*graph)->warnings)
                QVERIFY2(warning.find("is not given") == std::string::npos, warning.c_str());
        }
    }

    void everyNameBelongsToItsBlockAndIsGivenOnce() {
        for (const planner::ZooEntry& entry : planner::bundledGraphs()) {
            const GraphPointer graph = *planner::openGraph(entry.name);
            std::set<std::string> names;
            for (const contract::Operator& op : graph->operators) {
                QVERIFY2(names.insert(op.name).second, op.name.c_str());
                QCOMPARE(op.block >= 0, !op.blockName.empty());
                QVERIFY2(op.block < 0 || op.name.starts_with(op.blockName + "."), op.name.c_str());
                QVERIFY2(!op.isTied() || names.contains(op.tiedTo), op.name.c_str());
            }
        }
    }

    void gpt2OperatorsAreNamedAsInTheStateDict() {
        std::vector<std::string> expected{"wte", "wpe"};
        for (int i = 0; i < 12; ++i) {
            for (const char* part : {"ln_1", "attn.c_attn", "attn.c_proj", "ln_2", "mlp.c_fc", "mlp.c_proj"})
                expected.push_back("h." + std::to_string(i) + "." + part);
        }
        expected.insert(expected.end(), {"ln_f", "lm_head"});
        const auto graph = planner::openGraph("gpt2");
        QVERIFY(graph);
        QCOMPARE(operatorNames(**graph), expected);
        const contract::Operator& head = findOperator(**graph, "lm_head");
        QCOMPARE(head.tiedTo, std::string("wte"));
        QCOMPARE(qint64(head.parameters()), qint64(0));
        const contract::Operator& attention = findOperator(**graph, "h.0.attn.c_attn");
        QCOMPARE(attention.tensors.front().shape, (std::vector<std::int64_t>{768, 2304}));
        QCOMPARE(qint64(attention.parameters()), qint64(768) * 2304 + 2304);
    }

    void llamaOperatorsAreNamedAsInTheStateDict() {
        std::vector<std::string> expected{"embed_tokens"};
        for (int i = 0; i < 32; ++i) {
            for (const char* part :
                 {"input_layernorm", "self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj", "self_attn.o_proj",
                  "post_attention_layernorm", "mlp.gate_proj", "mlp.up_proj", "mlp.down_proj"})
                expected.push_back("layers." + std::to_string(i) + "." + part);
        }
        expected.insert(expected.end(), {"norm", "lm_head"});
        const auto graph = planner::openGraph("llama-3.1-8b");
        QVERIFY(graph);
        auto names = operatorNames(**graph);
        QCOMPARE(names, expected);
        QVERIFY(!findOperator(**graph, "lm_head").isTied());
        QCOMPARE(findOperator(**graph, "layers.0.self_attn.k_proj").tensors.front().shape,
                 (std::vector<std::int64_t>{1024, 4096}));
        QCOMPARE(findOperator(**graph, "layers.0.self_attn.k_proj").tensors.size(), std::size_t(1));
    }

    void qwenBiasesAndHeadNormsAreThere() {
        const auto qwen2 = planner::openGraph("qwen2.5-7b");
        QVERIFY(qwen2);
        for (const char* part : {"q_proj", "k_proj", "v_proj"})
            QCOMPARE(findOperator(**qwen2, std::string("layers.3.self_attn.") + part).tensors.size(), std::size_t(2));
        QCOMPARE(findOperator(**qwen2, "layers.3.self_attn.o_proj").tensors.size(), std::size_t(1));
        const auto qwen3 = planner::openGraph("qwen3-4b");
        QVERIFY(qwen3);
        QCOMPARE(findOperator(**qwen3, "layers.35.self_attn.q_norm").tensors.front().shape,
                 (std::vector<std::int64_t>{128}));
        QCOMPARE(findOperator(**qwen3, "layers.0.self_attn.q_proj").tensors.front().shape,
                 (std::vector<std::int64_t>{4096, 2560}));
        QCOMPARE(findOperator(**qwen3, "layers.0.self_attn.q_proj").tensors.size(), std::size_t(1));
    }

    void fieldsLeftOutTakeTheLibrarysDefaults() {
        const auto gpt2 = read(R"({"model_type":"gpt2"})");
        QCOMPARE(qint64(gpt2->countParameters().unique), qint64(124439808));
        QVERIFY(architectureOf(gpt2).tied);
        QCOMPARE(architectureOf(gpt2).normEpsilon, 1e-5);
        QVERIFY(architectureOf(gpt2).activation == contract::Activation::GeluTanh);

        const auto llama = read(R"({"model_type":"llama"})");
        QCOMPARE(qint64(llama->countParameters().unique), qint64(6738415616));
        QCOMPARE(qint64(architectureOf(llama).positions), qint64(2048));
        QCOMPARE(architectureOf(llama).normEpsilon, 1e-6);
        QCOMPARE(architectureOf(llama).rope->theta, 10000.0);
        QVERIFY(!llama->warnings.empty()); // every size that was guessed is said

        const auto mistral = read(R"({"model_type":"mistral"})");
        QCOMPARE(qint64(mistral->countParameters().unique), qint64(7241732096));
        QCOMPARE(qint64(architectureOf(mistral).positions), qint64(131072));

        const auto qwen2 = read(R"({"model_type":"qwen2","num_attention_heads":64})");
        QCOMPARE(qint64(architectureOf(qwen2).kvHeads), qint64(32));
        const auto qwen3 = read(R"({"model_type":"qwen3","hidden_size":2560})");
        QCOMPARE(qint64(architectureOf(qwen3).headDim), qint64(128));
        QVERIFY(!architectureOf(qwen3).attentionBias);
        for (const auto& graph : {llama, mistral, qwen2, qwen3})
            QVERIFY(!architectureOf(graph).tied);
    }

    void nullMeansWhatTheLibraryMakesOfIt() {
        QCOMPARE(qint64(architectureOf(read(R"({"model_type":"gpt2","n_inner":null})")).intermediate), qint64(3072));
        QCOMPARE(qint64(architectureOf(read(R"({"model_type":"gpt2","n_inner":100})")).intermediate), qint64(100));
        for (const char* family : {"llama", "mistral", "qwen2"}) {
            const contract::Json config{{"model_type", family},
                                        {"num_key_value_heads", nullptr},
                                        {"head_dim", nullptr},
                                        {"rope_scaling", nullptr},
                                        {"sliding_window", nullptr}};
            const auto graph = read(config.dump());
            QCOMPARE(qint64(architectureOf(graph).kvHeads), qint64(32));
            QCOMPARE(qint64(architectureOf(graph).headDim), qint64(128));
            QVERIFY(architectureOf(graph).rope->scalingKind.empty());
        }
    }

    void headDimMayDifferFromHiddenOverHeads() {
        // As Mistral Nemo: 32 heads of 128 in a width of 5120.
        const auto graph = read(
            R"({"model_type":"mistral","hidden_size":5120,"num_attention_heads":32,"head_dim":128,"vocab_size":131072})");
        QCOMPARE(findOperator(*graph, "layers.0.self_attn.q_proj").tensors.front().shape,
                 (std::vector<std::int64_t>{4096, 5120}));
        QCOMPARE(findOperator(*graph, "layers.0.self_attn.o_proj").tensors.front().shape,
                 (std::vector<std::int64_t>{5120, 4096}));
    }

    void biasesFollowTheirFlags() {
        const auto llama = read(R"({"model_type":"llama","attention_bias":true,"mlp_bias":true})");
        for (const char* part : {"self_attn.q_proj", "self_attn.o_proj", "mlp.gate_proj", "mlp.down_proj"})
            QCOMPARE(findOperator(*llama, std::string("layers.0.") + part).tensors.size(), std::size_t(2));
        // Mistral has no such flag.
        const auto mistral = read(R"({"model_type":"mistral","attention_bias":true})");
        QCOMPARE(findOperator(*mistral, "layers.0.self_attn.q_proj").tensors.size(), std::size_t(1));
    }

    void gpt2AnswersToCommonNames() {
        const auto graph =
            read(R"({"model_type":"gpt2","hidden_size":64,"num_hidden_layers":2,"num_attention_heads":4,)"
                 R"("max_position_embeddings":32})");
        QCOMPARE(qint64(architectureOf(graph).hidden), qint64(64));
        QCOMPARE(qint64(architectureOf(graph).layers), qint64(2));
        QCOMPARE(qint64(graph->sequence), qint64(32));
    }

    void ropeIsReadInOldAndNewSpelling() {
        const auto bundled = planner::openGraph("llama-3.1-8b");
        QVERIFY(bundled);
        QCOMPARE(architectureOf(*bundled).rope->theta, 500000.0);
        QCOMPARE(architectureOf(*bundled).rope->scalingKind, std::string("llama3"));
        QCOMPARE(contract::Json::parse(architectureOf(*bundled).rope->scaling).at("factor").get<double>(), 8.0);
        const auto older = read(R"({"model_type":"llama","rope_scaling":{"type":"linear","factor":2.0}})");
        QCOMPARE(architectureOf(older).rope->scalingKind, std::string("linear"));
        const auto newer = read(R"({"model_type":"llama","rope_parameters":{"rope_theta":1e6,"rope_type":"default"}})");
        QCOMPARE(architectureOf(newer).rope->theta, 1e6);
        QVERIFY(architectureOf(newer).rope->scalingKind.empty());
        const auto bare = read(R"({"model_type":"llama","rope_parameters":{"rope_theta":5e5}})");
        QCOMPARE(architectureOf(bare).rope->theta, 5e5);
    }

    void notesSayWhatSizesCannot() {
        const auto hasWarning = [](const GraphPointer& graph, const std::string& part) {
            return std::any_of(graph->warnings.begin(), graph->warnings.end(),
                               [&](const std::string& text) { return text.find(part) != std::string::npos; });
        };
        QVERIFY(hasWarning(*planner::openGraph("t5-base"), "in the decoder as in the encoder"));
        QVERIFY(hasWarning(read(R"({"model_type":"gemma3","text_config":{"num_hidden_layers":2}})"), "text part"));
        QVERIFY(hasWarning(read(R"({"model_type":"gpt2","reorder_and_upcast_attn":true})"), "reorder_and_upcast_attn"));
    }

    void sequenceIsTheContextUpTo4096() {
        QCOMPARE(qint64((*planner::openGraph("gpt2"))->sequence), qint64(1024));
        QCOMPARE(qint64((*planner::openGraph("llama-3.1-8b"))->sequence), qint64(4096));
        QCOMPARE(qint64((*planner::openGraph("llama-3.1-8b", 131072))->sequence), qint64(131072));
        for (const std::int64_t wrong : {std::int64_t{1025}, std::int64_t{-1}, std::int64_t{1} << 62}) {
            const auto graph = planner::openGraph("gpt2", wrong);
            QVERIFY(!graph);
            QVERIFY2(graph.error().message.find("n_positions") != std::string::npos, graph.error().message.c_str());
        }
    }

    void headsComeFromArchitectures() {
        const auto graph = read(R"({"model_type":"llama","num_hidden_layers":2,"num_labels":7,)"
                                R"("architectures":["LlamaForSequenceClassification"]})");
        QCOMPARE(graph->operators.back().name, std::string("score"));
        QCOMPARE(graph->operators.back().tensors.front().shape, (std::vector<std::int64_t>{7, 4096}));
        QVERIFY(!graph->architecture); // the runtime trains language models
        QVERIFY(planner::withSequence(graph, 64));
        const auto bare = read(R"({"model_type":"gpt2","architectures":["GPT2Model"]})");
        QCOMPARE(bare->operators.back().name, std::string("ln_f"));
        QVERIFY(!bare->operators.front().sharedStorage);
    }

    void expertsAreStoredAllAndWorkInPart() {
        const GraphPointer graph = *planner::openGraph("mixtral-8x7b", 4096);
        const contract::Operator& expert = findOperator(*graph, "layers.3.block_sparse_moe.experts.7.w2");
        QCOMPARE(expert.experts, 8);
        QCOMPARE(expert.activeExperts, 2);
        QCOMPARE(expert.tensors.front().shape, (std::vector<std::int64_t>{4096, 14336}));
        // A quarter of the tokens passes through one of eight experts.
        QCOMPARE(expert.flopsForward, 2.0 * 1024 * 4096 * 14336);
        QCOMPARE(qint64(expert.kept.front().elementsPerSample), qint64(1024) * 14336);
        const double weights = static_cast<double>(graph->countParameters().active) - 32000.0 * 4096;
        const double attention = 32 * 4.0 * 4096 * 4096 * 4096;
        QVERIFY(std::abs(graph->flopsForward() / (2 * 4096 * weights + attention) - 1) < 1e-3);
    }

    void imagesHaveOneLength() {
        const GraphPointer graph = *planner::openGraph("vit-base-patch16-224");
        QCOMPARE(qint64(graph->sequence), qint64(197));
        QVERIFY(planner::openGraph("vit-base-patch16-224", 197));
        QVERIFY(planner::openGraph("vit-base-patch16-224", 100).error().message.find("image_size") !=
                std::string::npos);
        QVERIFY(!planner::withSequence(graph, 100));
    }

    void encodersAndDecodersOfT5AreBlocksOfTheirOwn() {
        const GraphPointer graph = *planner::openGraph("t5-base");
        QCOMPARE(graph->blockCount(), 24);
        QCOMPARE(findOperator(*graph, "lm_head").tiedTo, std::string("shared"));
        QCOMPARE(findOperator(*graph, "decoder.embed_tokens").tiedTo, std::string("shared"));
        QVERIFY(planner::withSequence(graph, 2048)); // relative positions have no limit
        QCOMPARE(
            findOperator(*graph, "encoder.block.0.layer.0.SelfAttention.relative_attention_bias").tensors.front().shape,
            (std::vector<std::int64_t>{32, 12}));
    }

    void withSequenceLowersAgain() {
        const GraphPointer graph = *planner::openGraph("gpt2");
        const auto half = planner::withSequence(graph, 512);
        QVERIFY(half);
        QCOMPARE(qint64((*half)->sequence), qint64(512));
        QCOMPARE((*half)->countParameters().unique, graph->countParameters().unique);
        QCOMPARE(findOperator(**half, "h.0.mlp.c_fc").flopsForward * 2,
                 findOperator(*graph, "h.0.mlp.c_fc").flopsForward);
        QVERIFY((*half)->flopsForward() < graph->flopsForward() / 2);
        QCOMPARE((*half)->sha256(), graph->sha256());
        QCOMPARE(operatorNames(**half), operatorNames(*graph));
        QCOMPARE(planner::withSequence(graph, 1024).value(), graph);
        for (const std::int64_t wrong : {0, -5, 1025})
            QVERIFY(!planner::withSequence(graph, wrong));
    }

    void forwardWorkIsTwicePerWeightAndToken() {
        const GraphPointer graph = *planner::openGraph("gpt2-xl");
        // 2 per multiplied weight and token, plus attention 4 S^2 h per layer; norms are below a thousandth.
        const double weights = 48.0 * 12 * 1600 * 1600 + 50257.0 * 1600;
        const double expected = 2 * 1024 * weights + 48 * 4.0 * 1024 * 1024 * 1600;
        QVERIFY(std::abs(graph->flopsForward() / expected - 1) < 1e-3);
        QCOMPARE(graph->blockCount(), 48);
    }

    void identityDependsOnWhatIsComputedAlone() {
        const std::string text = R"({"model_type":"gpt2","n_embd":64,"n_layer":2,"n_head":4})";
        const auto one = planner::readConfig(text, "one", "one/config.json");
        const auto two = planner::readConfig(text, "two", "elsewhere/config.json");
        QVERIFY(one && two);
        QCOMPARE((*one)->sha256(), (*two)->sha256());
        QCOMPARE((*one)->sha256().size(), std::size_t(64));
        std::map<std::string, std::string> seen{{(*one)->sha256(), text}};
        for (const char* other :
             {R"({"model_type":"gpt2","n_embd":64,"n_layer":2,"n_head":8})",
              R"({"model_type":"gpt2","n_embd":64,"n_layer":3,"n_head":4})",
              R"({"model_type":"gpt2","n_embd":64,"n_layer":2,"n_head":4,"tie_word_embeddings":false})"})
            QVERIFY2(seen.emplace(read(other)->sha256(), other).second, other);
    }
};

QTEST_GUILESS_MAIN(tst_readers)
#include "tst_readers.moc"
