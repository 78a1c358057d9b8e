// SPDX-License-Identifier: GPL-3.0-or-later
#include "planner/readers/WeightGraph.h"

#include <fmt/format.h>

#include <map>
#include <set>
#include <vector>

namespace shardscope::planner {

namespace {

constexpr std::size_t kListed = 5;

std::string shapeText(const std::vector<std::int64_t>& shape) {
    return fmt::format("({})", fmt::join(shape, ", "));
}

/// "tensors of the configuration that the weights lack (3): a, b, c".
void note(Graph& graph, const std::vector<std::string>& names, std::string_view what) {
    if (names.empty())
        return;
    std::string list;
    for (std::size_t i = 0; i < names.size() && i < kListed; ++i)
        list += (i > 0 ? ", " : "") + names[i];
    if (names.size() > kListed)
        list += fmt::format(" and {} more", names.size() - kListed);
    graph.warnings.push_back(fmt::format("{} ({}): {}", what, names.size(), list));
}

} // namespace

bool compareWithWeights(Graph& graph, const WeightFiles& weights) {
    const std::vector<StoredKind> kinds = classifyTensors(weights);
    graph.weights = summarize(weights, kinds);
    graph.warnings.insert(graph.warnings.end(), weights.notes.begin(), weights.notes.end());
    std::map<std::string, const StoredTensor*> stored;
    std::set<std::string> copies;
    for (std::size_t i = 0; i < weights.tensors.size(); ++i) {
        if (kinds[i] == StoredKind::Parameter)
            stored.emplace(operatorTensorName(weights.tensors[i].name), &weights.tensors[i]);
        else if (kinds[i] == StoredKind::Copy)
            copies.insert(operatorTensorName(weights.tensors[i].name));
    }
    std::vector<std::string> missing, different, untied;
    bool apart = false;
    for (const contract::Operator& op : graph.operators) {
        for (const contract::TensorSpec& tensor : op.tensors) {
            // A tied weight may lie in the file under either name, or under both.
            const auto found = stored.find(op.name + "." + tensor.name);
            if (found == stored.end()) {
                if (!op.isTied())
                    (copies.contains(op.name + "." + tensor.name) ? untied : missing)
                        .push_back(op.name + "." + tensor.name);
                continue;
            }
            const bool fits = found->second->shape == tensor.shape;
            apart = apart || (fits && op.isTied());
            if (!fits)
                different.push_back(fmt::format("{}.{} is {} and not {}", op.name, tensor.name,
                                                shapeText(found->second->shape), shapeText(tensor.shape)));
            else if (op.isTied())
                graph.warnings.push_back(fmt::format("{}.{} is stored apart from {}, to which the configuration ties "
                                                     "it",
                                                     op.name, tensor.name, op.tiedTo));
            stored.erase(found);
        }
    }
    std::vector<std::string> extra;
    for (const auto& [name, tensor] : stored)
        extra.push_back(name);
    note(graph, untied, "tensors with the embedding's bytes, though the configuration does not tie them to it");
    note(graph, missing, "tensors of the configuration that the weights lack");
    note(graph, different, "tensors of another shape in the weights");
    note(graph, extra, "tensors of the weights that the configuration lacks");
    return missing.empty() && different.empty() && extra.empty() && !apart;
}

} // namespace shardscope::planner
