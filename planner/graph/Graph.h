// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "runtime/contract/Architecture.h"
#include "runtime/contract/Operator.h"
#include "runtime/contract/Training.h"

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace shardscope::planner {

/// What the files of a network's weights hold, by their headers.
struct StoredWeights {
    std::string source;
    std::int64_t files = 0;
    std::int64_t elements = 0;       ///< of all tensors
    std::int64_t bufferElements = 0; ///< rotary frequencies, masks, position ids: not parameters
    std::int64_t copiedElements = 0; ///< tied weights that are stored again
    std::int64_t bytes = 0;
    std::map<std::string, std::int64_t> elementsByDtype;
};

/// A neural network as the planner sees it: operators in forward order, sized for one sequence length.
struct Graph {
    std::string name;                 ///< bundled name, folder or file stem
    std::string title;                ///< what a person reads: "GPT-2 XL"
    std::string family;               ///< "gpt2", "llama", ...
    std::string source;               ///< path it was read from
    std::int64_t sequence = 0;        ///< the length the operators are lowered for
    std::int64_t maximumSequence = 0; ///< context length, 0 when unlimited
    std::optional<contract::Architecture> architecture;
    /// Lowers the same network for another length; empty where `architecture` does or where the length is fixed.
    std::function<contract::Result<std::vector<contract::Operator>>(std::int64_t sequence)> lower;
    std::vector<contract::Operator> operators;
    contract::AttentionKernel attention = contract::AttentionKernel::Fused; ///< that the operators are lowered for
    bool attentionDropout = false;        ///< the network drops out probabilities of attention when it trains
    std::optional<StoredWeights> weights; ///< where they were read
    std::vector<std::string> warnings;    ///< readable notes of the import
    std::vector<std::string> unknownKeys; ///< those of them that speak of keys of a graph file which are ignored

    struct Parameters {
        std::int64_t unique = 0;     ///< trainable, tied weights once, every expert
        std::int64_t stored = 0;     ///< elements that a file of weights holds
        std::int64_t duplicated = 0; ///< of which are copies of others
        std::int64_t active = 0;     ///< that one token passes through
    };
    Parameters countParameters() const;
    double flopsForward() const; ///< of one sample
    std::int32_t blockCount() const;
    std::string sha256() const;
};
using GraphPointer = std::shared_ptr<const Graph>;

/// The same graph lowered for another sequence length. Errors: BadInput when it exceeds the context.
contract::Result<GraphPointer> withSequence(const GraphPointer& graph, std::int64_t sequence);

/// The same graph with fused or unfused attention; see contract::materialiseScores(). Errors: BadInput when the scores
/// are too large, or when the graph is known with unfused attention only.
contract::Result<GraphPointer> withAttention(const GraphPointer& graph, contract::AttentionKernel attention);
/// The same with the attention, and its dropout, that a plan was trained with.
contract::Result<GraphPointer> withAttentionOf(const GraphPointer& graph, const contract::Training& training);

} // namespace shardscope::planner
