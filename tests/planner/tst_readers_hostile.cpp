// SPDX-License-Identifier: GPL-3.0-or-later
#include "planner/readers/Readers.h"

#include <QtTest>
#include <nlohmann/json.hpp>

using namespace shardscope;

/// Configurations that are wrong: each is refused as bad input, by file and field.
class tst_readers_hostile : public QObject {
    Q_OBJECT

private slots:
    void wrongConfigurationsAreRefusedByField_data() {
        QTest::addColumn<QByteArray>("text");
        QTest::addColumn<QString>("expected");
        const auto row = [](const char* name, const QByteArray& text, const char* expected) {
            QTest::newRow(name) << text << QString(expected);
        };
        // Not JSON, or not a configuration.
        row("empty", "", "not valid JSON");
        row("truncated", R"({"model_type": "gpt2", "n_embd": 7)", "not valid JSON");
        row("unclosed", R"({"model_type": "gpt2")", "not valid JSON");
        row("trailing", R"({"model_type": "gpt2"} x)", "not valid JSON");
        row("comment", "// hello\n{}", "not valid JSON");
        row("not a number", R"({"model_type": "gpt2", "n_embd": NaN})", "not valid JSON");
        row("overflowing number", R"({"model_type": "gpt2", "n_embd": 1e999})", "not valid JSON");
        row("not UTF-8", "{\"model_type\": \"gpt2\xff\"}", "not valid JSON");
        row("zero bytes", QByteArray(64, '\0'), "not valid JSON");
        row("duplicate key", R"({"model_type": "gpt2", "n_embd": 768, "n_embd": 1})", "n_embd");
        row("deep nesting", QByteArray(100000, '['), "deep");
        row("array", "[]", "must be an object");
        row("string", "\"gpt2\"", "must be an object");
        row("null", "null", "must be an object");
        row("no family", "{}", "model_type");
        row("null family", R"({"model_type": null})", "model_type");
        row("family of wrong type", R"({"model_type": 3})", "model_type");
        row("endless family", R"({"model_type": ")" + QByteArray(100000, 'x') + R"("})", "model_type");
        row("unknown family", R"({"model_type": "mamba"})", "gpt2, llama, mistral, mixtral, qwen2");
        row("family in capitals", R"({"model_type": "GPT2"})", "model_type is \"GPT2\"");
        row("quantised", R"({"model_type": "llama", "quantization_config": {"quant_method": "gptq"}})",
            "quantization_config says that the weights are quantised");
        row("text part of no family", R"({"model_type": "llava", "text_config": {}})",
            "text_config has no model_type; it must name a family: gpt2");
        row("text part of unknown family", R"({"model_type": "llava", "text_config": {"model_type": "mamba"}})",
            "text_config.model_type is \"mamba\"");
        row("text part as text", R"({"model_type": "llava", "text_config": "llama"})", "text_config must be an object");
        row("quantised text part",
            R"({"model_type": "llava", "text_config": {"model_type": "llama", "quantization_config": {}}})",
            "text_config.quantization_config says");
        row("a plan", R"({"format": "shardscope-plan", "version": 1})", "format is \"shardscope-plan\"");
        // Sizes.
        row("zero", R"({"model_type": "gpt2", "n_embd": 0})", "n_embd is 0");
        row("negative", R"({"model_type": "gpt2", "n_layer": -12})", "n_layer is -12");
        row("huge", R"({"model_type": "gpt2", "vocab_size": 1e30})", "vocab_size is 1e+30");
        row("beyond 64 bits", R"({"model_type": "gpt2", "vocab_size": 18446744073709551617})", "vocab_size");
        row("largest unsigned", R"({"model_type": "gpt2", "n_positions": 18446744073709551615})", "n_positions");
        row("many layers", R"({"model_type": "llama", "num_hidden_layers": 1000000000})", "num_hidden_layers");
        row("fraction", R"({"model_type": "gpt2", "n_head": 12.5})", "n_head is 12.5");
        row("float that is whole", R"({"model_type": "gpt2", "n_embd": 768.0})", "n_embd is 768.0");
        row("text", R"({"model_type": "llama", "hidden_size": "4096"})", "hidden_size must be an integer");
        row("truth", R"({"model_type": "llama", "num_attention_heads": true})",
            "num_attention_heads must be an integer");
        row("null size", R"({"model_type": "llama", "vocab_size": null})", "vocab_size must be an integer");
        row("list", R"({"model_type": "qwen2", "intermediate_size": [1, 2]})", "intermediate_size");
        row("object", R"({"model_type": "qwen3", "max_position_embeddings": {}})", "max_position_embeddings");
        row("inner of zero", R"({"model_type": "gpt2", "n_inner": 0})", "n_inner is 0");
        row("too large together",
            R"({"model_type": "llama", "hidden_size": 1048576, "num_hidden_layers": 16384, "intermediate_size": 4194304})",
            "too large");
        // Sizes that do not fit together.
        row("heads of gpt2", R"({"model_type": "gpt2", "n_embd": 770, "n_head": 12})",
            "x/config.json: n_head 12 does not divide n_embd 770");
        row("default heads of gpt2", R"({"model_type": "gpt2", "n_embd": 770})", "n_embd 770 is not a multiple");
        row("more heads than width", R"({"model_type": "gpt2", "n_embd": 4, "n_head": 12})", "n_head 12");
        row("heads of llama", R"({"model_type": "llama", "hidden_size": 4100, "num_attention_heads": 32})",
            "num_attention_heads 32 does not divide hidden_size 4100");
        row("width below heads", R"({"model_type": "llama", "hidden_size": 8, "num_attention_heads": 32})",
            "hidden_size 8");
        row("key heads", R"({"model_type": "llama", "num_attention_heads": 32, "num_key_value_heads": 5})",
            "num_key_value_heads 5 does not divide num_attention_heads 32");
        row("more key heads", R"({"model_type": "llama", "num_attention_heads": 32, "num_key_value_heads": 64})",
            "num_key_value_heads 64");
        row("default key heads", R"({"model_type": "qwen2", "hidden_size": 896, "num_attention_heads": 14})",
            "num_attention_heads 14 is not a multiple of the default num_key_value_heads 32");
        row("odd heads", R"({"model_type": "llama", "head_dim": 65})", "head_dim gives heads of 65");
        row("odd heads by width", R"({"model_type": "llama", "hidden_size": 2080})", "hidden_size gives heads of 65");
        row("default key heads and head size",
            R"({"model_type": "qwen3", "hidden_size": 2560, "num_attention_heads": 48})", "num_attention_heads");
        // Other fields.
        row("activation of gpt2", R"({"model_type": "gpt2", "activation_function": "relu"})",
            "activation_function is \"relu\"");
        row("activation of llama", R"({"model_type": "llama", "hidden_act": "gelu"})", "hidden_act is \"gelu\"");
        row("activation of wrong type", R"({"model_type": "llama", "hidden_act": 1})", "hidden_act must be a string");
        row("epsilon", R"({"model_type": "gpt2", "layer_norm_epsilon": -1})", "layer_norm_epsilon is -1");
        row("epsilon as text", R"({"model_type": "llama", "rms_norm_eps": "1e-5"})", "rms_norm_eps must be a number");
        row("tied as text", R"({"model_type": "llama", "tie_word_embeddings": "yes"})",
            "tie_word_embeddings must be true or false");
        row("bias as number", R"({"model_type": "llama", "attention_bias": 1})", "attention_bias");
        row("cross-attention", R"({"model_type": "gpt2", "add_cross_attention": true})", "add_cross_attention");
        row("rope base", R"({"model_type": "llama", "rope_theta": 0})", "rope_theta is 0");
        row("rope scaling as text", R"({"model_type": "llama", "rope_scaling": "linear"})",
            "rope_scaling must be an object");
        row("rope scaling without kind", R"({"model_type": "llama", "rope_scaling": {"factor": 2}})",
            "rope_scaling.rope_type");
        row("rope factor", R"({"model_type": "llama", "rope_scaling": {"type": "linear", "factor": -2}})",
            "rope_scaling.factor is -2");
        row("rope parameters", R"({"model_type": "llama", "rope_parameters": []})",
            "rope_parameters must be an object");
        row("endless rope scaling",
            R"({"model_type": "llama", "rope_scaling": {"type": "x", "y": ")" + QByteArray(100000, 'y') + R"("}})",
            "rope_scaling is longer");
        row("head of another network", R"({"model_type": "vit", "architectures": ["ViTForMaskedImageModeling"]})",
            "architectures[0] is \"ViTForMaskedImageModeling\"; of vit this version reads");
        row("labels", R"({"model_type": "bert", "id2label": []})", "id2label must be an object");
        row("no labels", R"({"model_type": "bert", "num_labels": 0})", "num_labels is 0");
        row("more active experts", R"({"model_type": "mixtral", "num_experts_per_tok": 9})",
            "num_experts_per_tok makes 9 active of 8");
        row("endless experts", R"({"model_type": "mixtral", "num_local_experts": 65536, "num_hidden_layers": 16384})",
            "too large");
        row("too many experts", R"({"model_type": "qwen3_moe", "num_experts": 1000000})", "num_experts is 1000000");
        row("dense layers", R"({"model_type": "qwen2_moe", "mlp_only_layers": [-1]})", "mlp_only_layers[0] is -1");
        row("sparse step", R"({"model_type": "qwen2_moe", "decoder_sparse_step": 0})", "decoder_sparse_step is 0");
        row("active experts of deepseek", R"({"model_type": "deepseek_v2"})", "num_experts_per_tok is missing");
        row("layer types", R"({"model_type": "gemma2", "layer_types": ["full_attention"]})", "layer_types must name");
        row("layer type", R"({"model_type": "gemma2", "num_hidden_layers": 1, "layer_types": ["x"]})",
            "layer_types[0] is \"x\"");
        row("image of three sides", R"({"model_type": "vit", "image_size": [1, 2, 3]})", "image_size");
        row("patch larger than image", R"({"model_type": "vit", "patch_size": 512})",
            "image_size to its default, which gives 0 patches");
        row("image of many patches", R"({"model_type": "vit", "patch_size": 1, "image_size": 65536})", "image_size");
        row("feed-forward of t5", R"({"model_type": "t5", "feed_forward_proj": "open-gelu"})", "feed_forward_proj");
        row("positions of bert", R"({"model_type": "bert", "position_embedding_type": "relative_key"})",
            "position_embedding_type is \"relative_key\"");
        row("positions of roberta", R"({"model_type": "roberta", "max_position_embeddings": 2})",
            "max_position_embeddings 2 leaves no position");
        row("key heads of falcon", R"({"model_type": "falcon", "new_decoder_architecture": true, "num_kv_heads": 3})",
            "num_kv_heads 3 does not divide");
        row("too large to lower",
            R"({"model_type": "bloom", "hidden_size": 1048576, "n_layer": 16384, "n_head": 1024})", "too large");
        row("window", R"({"model_type": "mistral", "sliding_window": -1})", "sliding_window is -1");
        row("architectures", R"({"model_type": "gpt2", "architectures": "GPT2LMHeadModel"})",
            "architectures must be an array");
        row("architecture", R"({"model_type": "gpt2", "architectures": [1]})", "architectures[0]");
    }
    void wrongConfigurationsAreRefusedByField() {
        QFETCH(QByteArray, text);
        QFETCH(QString, expected);
        const auto graph = planner::readConfig(
            std::string_view(text.constData(), static_cast<std::size_t>(text.size())), "x", "x/config.json");
        QVERIFY(!graph);
        const QString message = QString::fromStdString(graph.error().message);
        QVERIFY2(message.contains(expected), qPrintable(message));
        QVERIFY2(message.startsWith("x/config.json: "), qPrintable(message));
        QVERIFY2(message.size() < 1000, qPrintable(message));
        QVERIFY(graph.error().kind == contract::ErrorKind::BadInput);
    }

    void everyTruncationIsRefusedWithoutHarm() {
        const auto text = contract::readTextFile(planner::modelsFolder() + "/graphs/llama-3.1-8b/config.json");
        QVERIFY(text);
        const std::size_t end = text->rfind('}');
        for (std::size_t length = 0; length < end; ++length)
            QVERIFY(!planner::readConfig(std::string_view(*text).substr(0, length), "x", "x/config.json"));
    }

    /// Any one member replaced by something else is either read or refused by file.
    void everyReplacedMemberIsReadOrRefused() {
        for (const char* name :
             {"gpt2-xl", "llama-3.1-8b", "mistral-7b-v0.1", "qwen2.5-7b", "qwen3-4b", "mixtral-8x7b", "gemma-2b",
              "opt-30b", "pythia-160m", "bert-base-uncased", "t5-base", "vit-base-patch16-224"}) {
            const auto document = contract::readJsonFile(planner::modelsFolder() + "/graphs/" + name + "/config.json");
            QVERIFY(document);
            const std::vector<contract::Json> others{nullptr,
                                                     true,
                                                     -1,
                                                     0,
                                                     3,
                                                     1.5,
                                                     1e300,
                                                     "x",
                                                     contract::Json::array(),
                                                     contract::Json::object(),
                                                     std::int64_t{1} << 53};
            for (const auto& [key, value] : document->items()) {
                for (const contract::Json& other : others) {
                    contract::Json changed = *document;
                    changed[key] = other;
                    // Three layers are enough for a look at each field and keep the many readings quick.
                    for (const char* layers : {"n_layer", "num_hidden_layers"}) {
                        if (changed.contains(layers) && key != layers)
                            changed[layers] = 3;
                    }
                    const auto graph = planner::readConfig(changed.dump(), "x", "x/config.json");
                    if (!graph)
                        QVERIFY2(graph.error().message.starts_with("x/config.json: "), graph.error().message.c_str());
                }
            }
        }
    }
};

QTEST_GUILESS_MAIN(tst_readers_hostile)
#include "tst_readers_hostile.moc"
