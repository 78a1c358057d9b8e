// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "planner/search/PeakProblem.h"
#include "runtime/contract/Json.h"
#include "runtime/contract/Result.h"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace shardscope::planner {

struct AbstractOption {
    std::string label;
    std::int64_t stateBytes = 0;
    std::int64_t transientBytes = 0;
    std::int64_t nanoseconds = 0;
};

struct AbstractOperator {
    std::string name;
    std::vector<AbstractOption> options;
};

/// The optimisation problem without networks or clusters: the content of a `shardscope-problem` file.
struct AbstractProblem {
    std::int64_t limitBytes = 0;
    std::int64_t baseBytes = 0;
    std::vector<AbstractOperator> operators;
};

struct AbstractAnswer {
    bool feasible = false;
    bool provenOptimal = false;
    bool cancelled = false;
    std::int64_t nanoseconds = 0;
    std::int64_t peakBytes = 0;
    std::int64_t lowerBoundNanoseconds = 0;
    double gap = 0;
    std::vector<std::int32_t> optionIndices; ///< [operator]
    std::vector<std::string> choice;         ///< [operator]: the option's label
    std::int64_t smallestFeasibleBytes = 0;
    double solveMilliseconds = 0;
};

/// Errors: BadInput, naming the file and the JSON path.
contract::Result<AbstractProblem> readAbstractProblem(std::string_view text, std::string_view fileName);

/// Operators with equal options are solved as one group; its earlier operators get the earlier options.
/// Errors: BadInput when an operator has no options or a sum reaches 2^62 (a read problem never fails).
contract::Result<AbstractAnswer> solveAbstractProblem(const AbstractProblem& problem, const SearchLimits& limits = {});

/// The answer as `shardscope-plan solve --problem` prints it.
contract::OrderedJson toJson(const AbstractAnswer& answer);

} // namespace shardscope::planner
