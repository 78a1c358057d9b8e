// SPDX-License-Identifier: GPL-3.0-or-later
// Compares counts and tensor names with those that the transformers library builds for the same configurations.
// tests/pytorch/transformers_fixtures.py writes what is compared with; the test beside it does so again.
#include "planner/readers/Readers.h"
#include "runtime/contract/Plan.h"

#include <QtTest>
#include <nlohmann/json.hpp>

#include <filesystem>
#include <map>
#include <set>

using namespace shardscope;

namespace {

const std::string kData = std::string(SHARDSCOPE_SOURCE_DIR) + "/tests/planner/data/";

std::string shapeText(const std::vector<std::int64_t>& shape) {
    std::string text;
    for (const std::int64_t extent : shape)
        text += (text.empty() ? "" : "x") + std::to_string(extent);
    return text;
}

/// "layers.3.mlp.experts.17.w1" -> "layers.*.mlp.experts.*.w1"
std::string withoutIndices(const std::string& name) {
    std::string pattern;
    std::size_t begin = 0;
    while (begin <= name.size()) {
        const std::size_t end = std::min(name.find('.', begin), name.size());
        const std::string part = name.substr(begin, end - begin);
        const bool isIndex = !part.empty() && part.find_first_not_of("0123456789") == std::string::npos;
        const bool inside = begin > 0 && end < name.size();
        pattern += (begin > 0 ? "." : "") + (isIndex && inside ? std::string("*") : part);
        begin = end + 1;
    }
    return pattern;
}

/// "NAME SHAPE" of every tensor that an operator owns.
std::set<std::string> tensorLines(const planner::Graph& graph) {
    std::set<std::string> lines;
    for (const contract::Operator& op : graph.operators) {
        for (const contract::TensorSpec& tensor : op.tensors) {
            if (!op.isTied())
                lines.insert(op.name + "." + tensor.name + " " + shapeText(tensor.shape));
        }
    }
    return lines;
}

std::string sortedText(const std::set<std::string>& lines) {
    std::string text;
    for (const std::string& line : lines)
        text += (text.empty() ? "" : "\n") + line;
    return text;
}

} // namespace

class tst_readers_transformers : public QObject {
    Q_OBJECT

    contract::Json m_networks;

private slots:
    void initTestCase() {
        const auto document = contract::readJsonFile(kData + "transformers.json");
        QVERIFY2(document, document ? "" : document.error().message.c_str());
        m_networks = document->at("networks");
        QVERIFY(m_networks.size() >= 100);
    }

    void countsAndNamesAreThoseOfTheLibrary_data() {
        QTest::addColumn<int>("index");
        for (std::size_t i = 0; i < m_networks.size(); ++i)
            QTest::newRow(m_networks[i].at("name").get<std::string>().c_str()) << static_cast<int>(i);
    }
    void countsAndNamesAreThoseOfTheLibrary() {
        QFETCH(int, index);
        const contract::Json& network = m_networks[static_cast<std::size_t>(index)];
        const contract::Json& config = network.at("config");
        const std::string file = config.is_string() ? kData + config.get<std::string>() : std::string("x/config.json");
        const auto text =
            config.is_string() ? contract::readTextFile(file) : contract::Result<std::string>(config.dump());
        QVERIFY2(text, text ? "" : text.error().message.c_str());
        const auto graph = planner::readConfig(*text, "x", file);
        QVERIFY2(graph, graph ? "" : graph.error().message.c_str());

        const std::set<std::string> lines = tensorLines(**graph);
        std::map<std::string, std::int64_t> ours;
        for (const std::string& line : lines)
            ++ours[withoutIndices(line.substr(0, line.find(' '))) + line.substr(line.find(' '))];
        std::map<std::string, std::int64_t> theirs;
        for (const contract::Json& tensor : network.at("tensors"))
            theirs[tensor[0].get<std::string>() + " " + shapeText(tensor[1].get<std::vector<std::int64_t>>())] =
                tensor[2].get<std::int64_t>();
        std::string difference;
        for (const auto& [line, count] : ours) {
            if (!theirs.contains(line) || theirs.at(line) != count)
                difference += "ours " + line + " x" + std::to_string(count) + "\n";
        }
        for (const auto& [line, count] : theirs) {
            if (!ours.contains(line) || ours.at(line) != count)
                difference += "theirs " + line + " x" + std::to_string(count) + "\n";
        }
        QVERIFY2(difference.empty(), difference.c_str());
        QCOMPARE(contract::sha256(sortedText(lines)), network.at("sha256").get<std::string>());
        const auto count = (*graph)->countParameters();
        QCOMPARE(qint64(count.unique), network.at("unique").get<qint64>());
        QCOMPARE(qint64(count.active), network.at("active").get<qint64>());
    }

    void everyFamilyHasTwoNetworksAndItsDefaults() {
        std::map<std::string, int> seen;
        for (const contract::Json& network : m_networks) {
            const contract::Json& config = network.at("config");
            const contract::Json document =
                config.is_string() ? *contract::readJsonFile(kData + config.get<std::string>()) : config;
            ++seen[document.at("model_type").get<std::string>()];
        }
        seen["gemma3_text"] += seen["gemma3"];
        for (const char* family :
             {"gpt2",      "llama",    "mistral",     "mixtral",     "qwen2", "qwen2_moe", "qwen3",
              "qwen3_moe", "gemma",    "gemma2",      "gemma3_text", "phi",   "phi3",      "opt",
              "bloom",     "gpt_neox", "gptj",        "falcon",      "bert",  "roberta",   "distilbert",
              "t5",        "vit",      "deepseek_v2", "deepseek_v3"})
            QVERIFY2(seen[family] >= 3, family);
    }
};

QTEST_GUILESS_MAIN(tst_readers_transformers)
#include "tst_readers_transformers.moc"
