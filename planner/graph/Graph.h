// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "runtime/contract/Architecture.h"
#include "runtime/contract/Operator.h"

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace shardscope::planner {

/// A neural network as the planner sees it: operators in forward order, sized for one sequence length.
struct Graph {
    std::string name;                 ///< bundled name, folder or file stem
    std::string title;                ///< what a person reads: "GPT-2 XL"
    std::string family;               ///< "gpt2", "llama", ...
    std::string source;               ///< path it was read from
    std::int64_t sequence = 0;        ///< the length the operators are lowered for
    std::int64_t maximumSequence = 0; ///< context length, 0 when unlimited
    std::optional<contract::Architecture> architecture;
    std::vector<contract::Operator> operators;
    std::vector<std::string> warnings; ///< readable notes of the import

    struct Parameters {
        std::int64_t unique = 0;
        std::int64_t stored = 0;
        std::int64_t duplicated = 0;
        std::int64_t active = 0;
    };
    Parameters countParameters() const;
    double flopsForward() const; ///< of one sample
    std::int32_t blockCount() const;
    std::string sha256() const;
};
using GraphPointer = std::shared_ptr<const Graph>;

/// The same graph lowered for another sequence length. Errors: BadInput when it exceeds the context.
contract::Result<GraphPointer> withSequence(const GraphPointer& graph, std::int64_t sequence);

} // namespace shardscope::planner
