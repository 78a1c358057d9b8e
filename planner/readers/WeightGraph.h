// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "planner/graph/Graph.h"
#include "planner/readers/WeightFiles.h"

#include <cstdint>
#include <string>

namespace shardscope::planner {

/// What a tensor of a file of weights is, by its name and dtype.
enum class StoredKind {
    Parameter,
    Buffer, ///< rotary frequencies, masks, position ids, running statistics
    Copy,   ///< the same bytes as another tensor, under the name of a tied weight
};
std::vector<StoredKind> classifyTensors(const WeightFiles& weights);

/// Counts of a file of weights, for Graph::weights.
StoredWeights summarize(const WeightFiles& weights, const std::vector<StoredKind>& kinds);

/// The name of a tensor as operators have it: without "transformer." or "model.", and in the spelling of today
/// ("gamma" of old BERT files is "weight").
std::string operatorTensorName(const std::string& stored);

/// A graph from weights alone: modules and blocks are recognised by name, matrix products are counted, attention is not
/// (heads are in no header). `sequence` 0: min(learned positions, 4096).
contract::Result<GraphPointer> readWeightGraph(const WeightFiles& weights, const std::string& name,
                                               std::int64_t sequence);

/// Puts the counts of weights beside a configuration's graph, and says where tensors differ. False when they are those
/// of another network.
bool compareWithWeights(Graph& graph, const WeightFiles& weights);

} // namespace shardscope::planner
