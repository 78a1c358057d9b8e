// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "runtime/contract/Architecture.h"
#include "runtime/contract/BufferTable.h"
#include "runtime/contract/Cluster.h"
#include "runtime/contract/Ledger.h"
#include "runtime/contract/Placement.h"
#include "runtime/contract/Training.h"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace shardscope::contract {

inline constexpr int kPlanVersion = 1;

struct PlanGraph {
    std::string name;
    std::string family;
    std::string sha256;                       ///< of the graph's operators, hexadecimal
    std::optional<Architecture> architecture; ///< absent for graphs our engine does not speak of
    bool operator==(const PlanGraph&) const = default;
};

struct PlanParallel {
    std::int64_t pipeline = 1;
    std::int64_t tensor = 1;
    std::int64_t data = 1;
    bool operator==(const PlanParallel&) const = default;
};

struct PlanOperator {
    std::string name;
    Placement placement;
    bool recompute = false;
    std::string tiedTo;
    bool coalesced = false; ///< see OperatorDecision
    bool operator==(const PlanOperator&) const = default;
};

struct Peaks {
    std::int64_t firstStep = 0;
    std::int64_t resume = 0;
    std::int64_t optimizerStep = 0;
    bool operator==(const Peaks&) const = default;
};

/// What the planner expects of one operator, for laying measured over predicted.
struct PredictedOperator {
    std::string name;
    std::int64_t stateBytes = 0;
    std::int64_t keptBytes = 0;
    std::int64_t slotBytes = 0;
    double computeSeconds = 0;
    double communicationSeconds = 0;
    double exposedSeconds = 0;
    bool operator==(const PredictedOperator&) const = default;
};

struct Predicted {
    std::int64_t peakBytes = 0;
    Peaks peaks;
    Ledger ledger;
    double stepSeconds = 0;
    double samplesPerSecond = 0;
    std::vector<PredictedOperator> perOperator;
    bool operator==(const Predicted&) const = default;
};

/// Why the plan may be trusted. Holds no durations: equal plans are equal files.
struct Certificate {
    bool provenOptimal = false;
    double value = 0;      ///< samples per second
    double upperBound = 0; ///< no plan under this limit and cost model is faster
    double gap = 0;        ///< 1 - value / upperBound
    double lowerBoundSeconds = 0;
    std::int64_t thresholds = 0;
    double shadowPrice = 0; ///< seconds of step time that one more byte saves
    std::int64_t work = 0;
    std::string stoppedBy; ///< "", "tolerance", "work-limit", "time-limit", "cancelled"
    bool operator==(const Certificate&) const = default;
};

/// Self-contained: the runtime needs nothing else but data.
struct Plan {
    std::string createdBy;
    PlanGraph graph;
    Cluster cluster;
    Training training;
    PlanParallel parallel;
    std::string target = "cpu"; ///< "cpu", "cuda" or "pytorch"
    std::string mode = "full";  ///< "paper" or "full"
    std::int64_t limitBytes = 0;
    std::int32_t prefetchDepth = 1;
    std::vector<PlanOperator> operators;
    BufferTable buffers;
    Predicted predicted;
    Certificate certificate;
    bool operator==(const Plan&) const = default;
};

/// The whole file, ending in a newline. Deterministic.
std::string formatPlan(const Plan& plan);
/// Reads and checks: unknown versions, enum values and missing fields are refused with their JSON path; where an
/// architecture is given the operators must be exactly those it lowers to. Errors: BadInput.
Result<Plan> parsePlan(std::string_view text, std::string_view file);
Result<Plan> readPlanFile(const std::string& path);

/// Decisions of the plan in the order of `operators` (which must be the lowering of its architecture).
std::vector<OperatorDecision> planDecisions(const Plan& plan);

/// Hexadecimal SHA-256 of a text, for plan and graph identities.
std::string sha256(std::string_view text);

} // namespace shardscope::contract
