// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "planner/graph/Graph.h"
#include "runtime/contract/Cluster.h"
#include "runtime/contract/Ledger.h"
#include "runtime/contract/Plan.h"
#include "runtime/contract/Training.h"

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

namespace shardscope::planner {

enum class CostMode { Paper, Full };

/// Whether a block's operators may be gathered and reduced in one collective, as FSDP does. Full mode only.
enum class Coalescing {
    Auto,   ///< wherever it is better
    Never,  ///< every operator on its own
    Always, ///< every block whose pins allow it
};

/// What is placed alike.
enum class Granularity {
    Operator, ///< every operator on its own
    Block,    ///< a block's operators all the same, except where pins or their sizes say otherwise
};

/// A user's wish for the operators whose names match a glob. Later pins win.
struct Pin {
    std::string pattern; ///< "*", "h.3.*", "*.mlp.*"
    contract::Placement placement;
    bool operator==(const Pin&) const = default;
};
struct RecomputePin {
    std::string pattern; ///< matches block names
    bool recompute = false;
    bool operator==(const RecomputePin&) const = default;
};

/// What is asked, apart from the budget. Zero means automatic for batch, accumulate and globalBatch.
struct PlanRequest {
    GraphPointer graph; ///< lowered for the sequence wanted
    contract::Cluster cluster;
    CostMode mode = CostMode::Full;
    std::string precision; ///< empty: bf16-adam where the device has bf16, else fp32-adam
    std::int64_t microBatch = 0;
    std::int64_t accumulate = 1; ///< 0 = auto
    std::int64_t globalBatch = 0;
    contract::RecomputePolicy recompute = contract::RecomputePolicy::Auto;
    std::vector<std::int32_t> slices{1, 2, 4, 8, 16};
    bool allowReplicate = true;
    bool allowKeep = true; ///< ignored in paper mode, which has no keep
    bool allowShard = true;
    bool allowWorldGroup = true; ///< shards spread over all devices
    bool allowNodeGroup = true;  ///< shards inside nodes only; full mode, several nodes
    Coalescing coalescing = Coalescing::Auto;
    Granularity granularity = Granularity::Operator;
    std::vector<Pin> pins;
    std::vector<RecomputePin> recomputePins;
    contract::Optimizer optimizer;
    std::int32_t prefetchDepth = 1; ///< 0 in paper mode
    std::int64_t lossChunks = 1;    ///< the logits are computed in so many pieces
};

/// How long a search may take.
struct SearchBudget {
    double tolerance = 0;        ///< stop at this certified gap
    std::int64_t workLimit = 0;  ///< deterministic; 0 = none
    double timeLimitSeconds = 0; ///< not deterministic; 0 = none
    std::stop_token stop{};
};

/// For an answer that follows the mouse: stops after work that takes a few milliseconds, with a certified gap where the
/// proof takes longer. Deterministic.
SearchBudget interactiveBudget();

/// Bytes and seconds of one operator under its decision; per device and per step.
struct OperatorCost {
    contract::Ledger memory; ///< parameters, gradients, optimizer, activations (kept), gathered + unreduced (its slot)
    double computeSeconds = 0; ///< forward + backward
    double recomputeSeconds = 0;
    double gatherSeconds = 0; ///< all gathers, before overlap
    double reduceSeconds = 0; ///< reduce-scatters and all-reduces, before overlap
    double exposedGatherSeconds = 0;
    double exposedReduceSeconds = 0;
    double optimizerSeconds = 0;
    std::int64_t communicatedBytes = 0; ///< sent by this device
    double exposedSeconds() const { return exposedGatherSeconds + exposedReduceSeconds; }
    /// Takes a share (0..1) of a coalesced block's communication.
    void takeCommunication(const OperatorCost& block, double share) {
        gatherSeconds = share * block.gatherSeconds;
        reduceSeconds = share * block.reduceSeconds;
        exposedGatherSeconds = share * block.exposedGatherSeconds;
        exposedReduceSeconds = share * block.exposedReduceSeconds;
        communicatedBytes = static_cast<std::int64_t>(share * static_cast<double>(block.communicatedBytes));
    }
    /// What it adds to the step time.
    double stepSeconds() const { return computeSeconds + recomputeSeconds + exposedSeconds() + optimizerSeconds; }
};

/// The decision for one operator, and what it costs.
struct PlannedOperator {
    std::int32_t op = 0; ///< index into Graph::operators
    contract::Placement placement;
    bool recompute = false;
    bool pinned = false;
    bool coalesced = false; ///< with the other coalesced operators of its block; its cost is its share by bytes
    OperatorCost cost;
};

struct PlacementCounts {
    std::int64_t replicate = 0, keep = 0, shard = 0;
    std::int64_t split = 0;     ///< also counted in `shard`
    std::int64_t coalesced = 0; ///< also counted in `keep` or `shard`
};

/// The answer for one budget. Immutable once made; shared with the window as shared_ptr<const PlanResult>.
struct PlanResult {
    PlanRequest request;
    std::int64_t limitBytes = 0;
    bool feasible = false;
    bool cancelled = false;

    // Infeasible: what would be needed, and what stands in the way.
    std::int64_t smallestFeasibleBytes = 0; ///< over everything the request leaves open
    std::string binding;                    ///< "states", "activations", "logits", "slots", "reserve"; "" when feasible
    std::vector<std::string> notes;         ///< pins that had to be adjusted, and the like

    // Feasible:
    contract::Training training;
    std::vector<PlannedOperator> operators; ///< one per graph operator, in forward order
    contract::Ledger ledger;                ///< of one device; sums to peakBytes (slots count their maximum)
    std::int64_t peakBytes = 0;             ///< includes the reserve
    contract::Peaks peaks;
    std::int32_t peakOperator = -1; ///< the operator whose slot or live memory sets the maximum
    double stepSeconds = 0;
    double samplesPerSecond = 0; ///< of the whole cluster
    double tokensPerSecond = 0;
    double modelFlopsUtilization = 0;
    PlacementCounts counts;
    contract::Certificate certificate;
    double solveMilliseconds = 0; ///< shown, never written to a plan file
};
/// How many blocks of a feasible plan are recomputed.
std::int32_t recomputedBlocks(const PlanResult& plan);
using PlanResultPointer = std::shared_ptr<const PlanResult>;

struct FrontierPoint {
    std::int64_t memoryBytes = 0; ///< the budget asked
    std::int64_t peakBytes = 0;
    double samplesPerSecond = 0;
    double stepSeconds = 0;
    std::int64_t microBatch = 0;
    double gap = 0;
    PlacementCounts counts;
};

/// A well-known policy as a restriction of what the search may choose.
struct BaselinePolicy {
    std::string name; ///< "DDP", "ZeRO-2", "FSDP", "HSDP", "OSDP", "OSDP with splitting"
    std::string what; ///< in a few words
    PlanRequest request;
};
/// Those that make sense on the cluster. Each is open in its batch (unless the request fixes it) and recomputation, and
/// priced by the full cost model.
std::vector<BaselinePolicy> baselinePolicies(const PlanRequest& request);

/// A policy's best plan.
struct Baseline {
    std::string name;
    std::string what;
    bool feasible = false; ///< under the limit it was asked for
    std::int64_t peakBytes = 0;
    double samplesPerSecond = 0;
    double stepSeconds = 0;
    std::int64_t microBatch = 0;
    std::int64_t smallestFeasibleBytes = 0;
    PlanResultPointer plan;
};

/// Beyond this ratio between the ends of a frontier its budgets are spaced by equal factors instead of equal steps.
inline constexpr double kWideRange = 24;

struct Frontier {
    std::vector<FrontierPoint> points; ///< ascending memory
    std::int64_t smallestFeasibleBytes = 0;
    std::int64_t largestUsefulBytes = 0; ///< more memory does not make it faster (or the end of the range searched)
};

/// Why an operator is placed as it is.
struct Reason {
    contract::Placement alternative;       ///< the cheapest other placement in the direction asked
    std::int64_t stateDeltaBytes = 0;      ///< alternative minus chosen (state and kept)
    double stepDeltaSeconds = 0;           ///< alternative minus chosen
    bool wholeBlock = false;               ///< both are of the operator's whole block, which is placed alike
    std::optional<std::int64_t> flipBytes; ///< next budget on the frontier where its placement differs
    std::optional<contract::Placement> flipPlacement;
};

using Progress = std::function<void(double fraction)>;

/// Plans one request at any number of budgets; what does not depend on the budget is computed once.
/// Thread-safe: const calls may run concurrently.
class Planner {
public:
    /// Errors: Usage for a contradictory request (unknown precision, batch that does not divide, bad pin).
    static contract::Result<std::shared_ptr<const Planner>> create(const PlanRequest& request);
    virtual ~Planner() = default;

    /// The best plan whose peak is at most `limitBytes` (which includes the cluster's reserve).
    virtual PlanResultPointer solve(std::int64_t limitBytes, const SearchBudget& budget = {}) const = 0;

    /// `points` budgets between the smallest feasible and max(device memory, all-replicated at its best batch).
    /// Cancelled early when `budget.stop` is requested (then fewer points).
    virtual Frontier frontier(std::int32_t points, const SearchBudget& budget = {},
                              const Progress& progress = {}) const = 0;

    /// The supported budgets in the same range: there the linear relaxation of some batch is met exactly, so that less
    /// memory costs more than anywhere else. Ascending.
    virtual std::vector<FrontierPoint> breakpoints(const SearchBudget& budget = {},
                                                   const Progress& progress = {}) const = 0;

    /// The cheapest change of one operator of a plan, and the budget at which its placement flips.
    virtual std::vector<Reason> reasons(const PlanResult& plan, std::int32_t op,
                                        const SearchBudget& budget = {}) const = 0;

    virtual const PlanRequest& request() const = 0;
};

/// Every policy of baselinePolicies() under the same limit.
std::vector<Baseline> solveBaselines(const PlanRequest& request, std::int64_t limitBytes,
                                     const SearchBudget& budget = {});

/// The self-contained plan file of a feasible result.
contract::Plan emitPlan(const PlanResult& result, const std::string& createdBy);

} // namespace shardscope::planner
