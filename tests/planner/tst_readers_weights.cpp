// SPDX-License-Identifier: GPL-3.0-or-later
#include "planner/readers/Readers.h"
#include "planner/readers/WeightFiles.h"
#include "planner/support/SafetensorsText.h"

#include <QtTest>

#include <algorithm>
#include <filesystem>
#include <fstream>

using namespace shardscope;
using test::TensorText;
namespace fs = std::filesystem;

/// Safetensors files: alone, in shards, and beside a configuration.
class tst_readers_weights : public QObject {
    Q_OBJECT

    QTemporaryDir m_folder;
    int m_count = 0;

    /// A file in a folder of its own.
    std::string write(const std::string& name, const std::string& text) {
        const fs::path folder = fs::path(m_folder.path().toStdString()) / std::to_string(m_count++);
        fs::create_directories(folder);
        std::ofstream(folder / name, std::ios::binary) << text;
        return (folder / name).string();
    }
    static std::string beside(const std::string& file, const std::string& name, const std::string& text) {
        const fs::path path = fs::path(file).parent_path() / name;
        std::ofstream(path, std::ios::binary) << text;
        return path.string();
    }
    static planner::GraphPointer open(const std::string& path) {
        const auto graph = planner::openGraph(path);
        if (!graph)
            qFatal("%s", graph.error().message.c_str());
        return *graph;
    }
    static bool notes(const planner::Graph& graph, const std::string& part) {
        return std::any_of(graph.warnings.begin(), graph.warnings.end(),
                           [&](const std::string& text) { return text.find(part) != std::string::npos; });
    }

    /// GPT-2 of 1 layer, width 8, 16 tokens, 4 positions, with masks and a head that is stored again.
    static std::vector<TensorText> gpt2(char head = 1) {
        return {{"transformer.wte.weight", "F32", {16, 8}, 1},
                {"transformer.wpe.weight", "F32", {4, 8}, 2},
                {"transformer.h.0.ln_1.weight", "F32", {8}},
                {"transformer.h.0.ln_1.bias", "F32", {8}},
                {"transformer.h.0.attn.bias", "F32", {1, 1, 4, 4}},
                {"transformer.h.0.attn.masked_bias", "F32", {}},
                {"transformer.h.0.attn.c_attn.weight", "F32", {8, 24}},
                {"transformer.h.0.attn.c_attn.bias", "F32", {24}},
                {"transformer.h.0.attn.c_proj.weight", "F32", {8, 8}},
                {"transformer.h.0.attn.c_proj.bias", "F32", {8}},
                {"transformer.h.0.ln_2.weight", "F32", {8}},
                {"transformer.h.0.ln_2.bias", "F32", {8}},
                {"transformer.h.0.mlp.c_fc.weight", "F32", {8, 32}},
                {"transformer.h.0.mlp.c_fc.bias", "F32", {32}},
                {"transformer.h.0.mlp.c_proj.weight", "F32", {32, 8}},
                {"transformer.h.0.mlp.c_proj.bias", "F32", {8}},
                {"transformer.ln_f.weight", "F32", {8}},
                {"transformer.ln_f.bias", "F32", {8}},
                {"lm_head.weight", "F32", {16, 8}, head}};
    }
    static constexpr qint64 kUnique = 16 * 8 + 4 * 8 + 4 * 8 + 8 * 24 + 24 + 64 + 8 + 256 + 32 + 256 + 8 + 16;
    const std::string m_config = R"({"model_type":"gpt2","n_embd":8,"n_layer":1,"n_head":2,"n_positions":4,)"
                                 R"("vocab_size":16,"architectures":["GPT2LMHeadModel"]})";

private slots:
    void aFileAloneIsReadByItsNames() {
        const auto graph = open(write("tiny.safetensors", test::safetensorsText(gpt2())));
        QCOMPARE(graph->name, std::string("tiny"));
        QCOMPARE(graph->blockCount(), 1);
        std::vector<std::string> names;
        for (const contract::Operator& op : graph->operators)
            names.push_back(op.name);
        QCOMPARE(names, (std::vector<std::string>{"wpe", "wte", "h.0.ln_1", "h.0.attn.c_attn", "h.0.attn.c_proj",
                                                  "h.0.ln_2", "h.0.mlp.c_proj", "h.0.mlp.c_fc", "ln_f"}));
        const auto count = graph->countParameters();
        QCOMPARE(qint64(count.unique), kUnique);
        QCOMPARE(qint64(count.duplicated), qint64(128)); // lm_head holds the bytes of wte
        QCOMPARE(qint64(graph->weights->bufferElements), qint64(17));
        QCOMPARE(qint64(count.stored), kUnique + 128 + 17);
        QCOMPARE(qint64(graph->sequence), qint64(4)); // learned positions
        // Conv1D stores (in, out): the bias tells.
        const contract::Operator& attention = graph->operators[3];
        QCOMPARE(qint64(attention.tensors.front().rows), qint64(24));
        QCOMPARE(attention.flopsForward, 2.0 * 4 * 8 * 24);
        QVERIFY(notes(*graph, "attention itself is not"));
        QVERIFY(planner::withSequence(graph, 2));
        QVERIFY(!planner::withSequence(graph, 5));
    }

    void anUntiedHeadIsAParameter() {
        const auto graph = open(write("tiny.safetensors", test::safetensorsText(gpt2(9))));
        QCOMPARE(qint64(graph->countParameters().unique), kUnique + 128);
        QCOMPARE(qint64(graph->countParameters().duplicated), qint64(0));
        QCOMPARE(graph->operators.back().name, std::string("lm_head"));
    }

    void blocksComeInTheOrderOfTheirNumbers() {
        std::vector<TensorText> tensors{{"model.embed_tokens.weight", "BF16", {10, 4}}};
        for (const int block : {0, 1, 10, 2})
            tensors.push_back({"model.layers." + std::to_string(block) + ".mlp.up_proj.weight", "BF16", {8, 4}});
        tensors.push_back({"model.layers.0.self_attn.rotary_emb.inv_freq", "F32", {2}});
        tensors.push_back({"model.norm.weight", "BF16", {4}});
        const auto graph = open(write("x.safetensors", test::safetensorsText(tensors)));
        QCOMPARE(graph->operators[3].name, std::string("layers.2.mlp.up_proj"));
        QCOMPARE(graph->operators[4].name, std::string("layers.10.mlp.up_proj"));
        QCOMPARE(graph->operators.back().name, std::string("norm"));
        QCOMPARE(qint64(graph->weights->elementsByDtype.at("BF16")), qint64(40 + 4 * 32 + 4));
        QCOMPARE(qint64(graph->weights->bufferElements), qint64(2));
    }

    void shardsAreOneNetwork() {
        const auto all = gpt2();
        const std::string first =
            write("model-00001-of-00002.safetensors", test::safetensorsText({all.begin(), all.begin() + 6}));
        beside(first, "model-00002-of-00002.safetensors", test::safetensorsText({all.begin() + 6, all.end()}));
        std::string map;
        for (std::size_t i = 0; i < all.size(); ++i)
            map += (i > 0 ? "," : "") + ("\"" + all[i].name) + R"(":"model-0000)" + (i < 6 ? "1" : "2") +
                   "-of-00002.safetensors\"";
        const std::string index =
            beside(first, "model.safetensors.index.json", R"({"metadata":{},"weight_map":{)" + map + "}}");
        for (const std::string& argument : {index, fs::path(index).parent_path().string()}) {
            const auto graph = open(argument);
            QCOMPARE(qint64(graph->countParameters().unique), kUnique);
            QCOMPARE(qint64(graph->weights->files), qint64(2));
        }
    }

    void aHeadOfTheEmbeddingsBytesThatTheConfigurationDoesNotTieIsSaid() {
        const std::string file = write("model.safetensors", test::safetensorsText(gpt2()));
        std::string untied = m_config;
        beside(file, "config.json", untied.insert(1, R"("tie_word_embeddings":false,)"));
        for (const std::string& argument : {file, fs::path(file).parent_path().string()}) {
            const auto graph = open(argument);
            QCOMPARE(graph->family, std::string("gpt2"));
            QCOMPARE(graph->warnings.size(), std::size_t(1));
            QVERIFY(notes(*graph, "does not tie them to it (1): lm_head.weight"));
            QCOMPARE(qint64(graph->countParameters().unique), kUnique + 128);
        }
    }

    void weightsBesideAConfigurationAreCompared() {
        const std::string file = write("model.safetensors", test::safetensorsText(gpt2()));
        beside(file, "config.json", m_config);
        for (const std::string& argument : {file, fs::path(file).parent_path().string()}) {
            const auto graph = open(argument);
            QCOMPARE(graph->family, std::string("gpt2"));
            QVERIFY2(graph->warnings.empty(), graph->warnings.empty() ? "" : graph->warnings.front().c_str());
            QCOMPARE(qint64(graph->countParameters().unique), kUnique);
            QCOMPARE(qint64(graph->countParameters().stored), kUnique + 128 + 17);
            QCOMPARE(qint64(graph->countParameters().duplicated), qint64(128));
        }
    }

    void differencesAreListed() {
        auto tensors = gpt2(9);
        tensors[1].shape = {5, 8};
        tensors.erase(tensors.begin() + 16, tensors.begin() + 18);
        tensors.push_back({"score.weight", "F32", {2, 8}});
        const std::string file = write("model.safetensors", test::safetensorsText(tensors));
        beside(file, "config.json", m_config);
        const auto graph = open(fs::path(file).parent_path().string());
        QVERIFY(notes(*graph, "tensors of the configuration that the weights lack (2): ln_f.weight, ln_f.bias"));
        QVERIFY(notes(*graph, "tensors of another shape in the weights (1): wpe.weight is (5, 8) and not (4, 8)"));
        QVERIFY(notes(*graph, "tensors of the weights that the configuration lacks (1): score.weight"));
        QVERIFY(notes(*graph, "lm_head.weight is stored apart from wte"));
        // Named itself, the file is not of that network.
        const auto alone = open(file);
        QCOMPARE(alone->family, std::string("safetensors"));
        QVERIFY(notes(*alone, "is of another network"));
    }

    void oldSpellingsAreRead() {
        const auto graph = open(write(
            "bert.safetensors", test::safetensorsText({{"bert.encoder.layer.0.output.LayerNorm.gamma", "F32", {4}},
                                                       {"bert.encoder.layer.0.output.LayerNorm.beta", "F32", {4}},
                                                       {"bert.embeddings.position_ids", "I64", {1, 4}}})));
        QCOMPARE(graph->operators.size(), std::size_t(1));
        QCOMPARE(graph->operators[0].tensors[0].name, std::string("weight"));
        QCOMPARE(qint64(graph->weights->bufferElements), qint64(4));
    }
};

QTEST_GUILESS_MAIN(tst_readers_weights)
#include "tst_readers_weights.moc"
