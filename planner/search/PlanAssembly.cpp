// SPDX-License-Identifier: GPL-3.0-or-later
#include "planner/search/PlanAssembly.h"

#include <algorithm>

namespace shardscope::planner {

using contract::Category;
using contract::Ledger;

namespace {

constexpr std::size_t index(std::int32_t value) {
    return static_cast<std::size_t>(value);
}

class Assembly {
public:
    Assembly(const PlanSearch& search, std::int64_t limitBytes, const SearchOutcome& outcome)
        : m_search(search), m_space(search.space()), m_outcome(outcome), m_result(std::make_shared<PlanResult>()) {
        m_result->request = m_space.request();
        m_result->limitBytes = limitBytes;
        m_result->notes = m_space.notes();
        m_result->smallestFeasibleBytes = search.smallestFeasibleBytes();
        m_result->cancelled = outcome.cancelled;
    }

    std::shared_ptr<PlanResult> build() {
        if (!m_outcome.best.table) {
            m_result->binding = binding();
            return m_result;
        }
        m_result->feasible = true;
        m_decided = decide(m_space, m_outcome.best.runs);
        m_reached = reach(m_space, *m_outcome.best.table, m_decided);
        fillTraining();
        fillOperators();
        fillLedger();
        fillSpeed();
        fillCertificate();
        return m_result;
    }

private:
    const BatchTable& table() const { return *m_outcome.best.table; }

    void fillTraining() {
        const PlanRequest& request = m_space.request();
        contract::Training& training = m_result->training;
        training.sequence = request.graph->sequence;
        training.microBatch = table().batch().samples;
        training.accumulate = table().batch().accumulate;
        training.globalBatch = table().batch().product() * m_space.ranks();
        training.precision = m_space.preset().name;
        training.optimizer = request.optimizer;
        training.recompute = request.recompute;
        training.lossChunks = std::min(request.lossChunks, training.microBatch * training.sequence);
        training.attention = request.graph->attention;
        training.attentionDropout =
            request.graph->attentionDropout && training.attention != contract::AttentionKernel::Fused;
    }

    void fillOperators() {
        const auto& operators = m_space.request().graph->operators;
        for (std::size_t i = 0; i < operators.size(); ++i) {
            const std::int32_t c = m_space.operatorClasses()[i];
            const OperatorClass& entry = m_space.classes()[index(c)];
            const std::int32_t p = m_decided.placements[i];
            const bool recompute = m_decided.recompute[i];
            PlannedOperator planned{static_cast<std::int32_t>(i), entry.placements[index(p)], recompute,
                                    m_space.pinned()[i],          m_decided.coalesced[i],     {}};
            PlacementFacts facts = entry.facts[index(p)];
            if (planned.coalesced)
                facts.exchange = {}; // the block's is shared out below
            planned.cost = m_space.pricer().price(facts, table().forwardSeconds(static_cast<std::int32_t>(i)),
                                                  table().situation(c, recompute));
            const PlacementBytes& bytes = facts.bytes;
            planned.cost.memory[Category::Parameters] = bytes.state.parameters;
            planned.cost.memory[Category::Gradients] = bytes.state.gradients;
            planned.cost.memory[Category::Optimizer] = bytes.state.optimizer;
            planned.cost.memory[Category::Activations] = table().keptBytes(c, recompute);
            planned.cost.memory[Category::Gathered] = bytes.slot.gatheredBytes;
            planned.cost.memory[Category::Unreduced] = bytes.slot.unreducedBytes;
            m_result->operators.push_back(std::move(planned));
        }
        m_result->counts = countPlacements(m_space, m_outcome.best.runs);
        for (const Decided::CoalescedBlock& block : m_decided.blocks)
            shareOut(block);
    }

    /// Gives every coalesced operator its part of the block's communication, by its parameters.
    void shareOut(const Decided::CoalescedBlock& block) {
        const BundleGroup& group = m_space.groups()[block.group];
        const BlockVariant& variant = group.front().variants[index(block.variant)];
        const OperatorCost whole = table().coalescedCost(group.front(), variant.exchange);
        const auto& operators = m_space.request().graph->operators;
        const std::vector<Unit>& units = group.members[block.member].units;
        double parameters = 0;
        for (std::size_t u = 0; u < units.size(); ++u) {
            if (variant.members[u])
                parameters += static_cast<double>(operators[index(units[u].operators.front())].tensorElements());
        }
        for (std::size_t u = 0; u < units.size(); ++u) {
            if (!variant.members[u])
                continue;
            const std::int32_t op = units[u].operators.front();
            const double share = static_cast<double>(operators[index(op)].tensorElements()) / std::max(1.0, parameters);
            m_result->operators[index(op)].cost.takeCommunication(whole, share);
        }
    }

    void fillLedger() {
        Ledger& ledger = m_result->ledger;
        for (const PlannedOperator& planned : m_result->operators) {
            for (const Category category :
                 {Category::Parameters, Category::Gradients, Category::Optimizer, Category::Activations})
                ledger[category] += planned.cost.memory[category];
        }
        ledger[Category::Activations] += m_reached.live.total();
        const contract::BaseSize& base = table().base();
        ledger[Category::Logits] = base.logits + base.losses;
        ledger[Category::Data] = base.tokens + base.targets;
        ledger[Category::Collective] = base.collective;
        m_result->peakOperator = m_reached.slotOperator;
        ledger[Category::Gathered] = m_space.slotCount() * m_reached.slot.gatheredBytes;
        ledger[Category::Unreduced] = m_space.slotCount() * m_reached.slot.unreducedBytes;
        std::int64_t reserve = 0;
        for (const contract::ReserveLine& line : m_space.request().cluster.reserve) {
            const Category category = line.what.find("collective") != std::string::npos ? Category::Collective
                                      : line.what.find("slack") != std::string::npos    ? Category::Slack
                                                                                        : Category::Context;
            ledger[category] += line.bytes;
            reserve += line.bytes;
        }
        m_result->peakBytes = ledger.total();
        // Our arenas are taken whole before the first step, so a resumed run peaks no higher than a fresh one.
        m_result->peaks.firstStep = m_result->peakBytes;
        m_result->peaks.resume = m_result->peakBytes;
        m_result->peaks.optimizerStep = ledger[Category::Parameters] + ledger[Category::Gradients] +
                                        ledger[Category::Optimizer] + base.collective + reserve;
    }

    void fillSpeed() {
        const PlanRequest& request = m_space.request();
        m_result->stepSeconds = static_cast<double>(m_outcome.best.time) * 1e-12;
        const double samples = static_cast<double>(m_result->training.globalBatch);
        m_result->samplesPerSecond = samples / m_result->stepSeconds;
        m_result->tokensPerSecond = m_result->samplesPerSecond * static_cast<double>(m_result->training.sequence);
        const contract::Device& device = request.cluster.device;
        const bool half = m_space.preset().gatheredBytes == 2 && device.peakFlopsBf16 > 0;
        const double peakFlops = half ? device.peakFlopsBf16 : device.peakFlopsFp32;
        // Model FLOPs: forward + backward = 3 x forward; recomputation is not useful work.
        if (peakFlops > 0)
            m_result->modelFlopsUtilization = 3 * request.graph->flopsForward() * m_result->samplesPerSecond /
                                              (peakFlops * static_cast<double>(m_space.ranks()));
    }

    void fillCertificate() {
        contract::Certificate& certificate = m_result->certificate;
        const double ranks = static_cast<double>(m_space.ranks());
        certificate.provenOptimal = m_outcome.proven;
        certificate.value = m_result->samplesPerSecond;
        certificate.upperBound = m_outcome.proven ? certificate.value : m_outcome.upperBound * 1e12 * ranks;
        certificate.gap = m_outcome.proven ? 0 : std::max(0.0, 1 - certificate.value / certificate.upperBound);
        certificate.lowerBoundSeconds = m_result->stepSeconds * (1 - certificate.gap);
        certificate.thresholds = m_outcome.thresholds;
        certificate.shadowPrice = m_outcome.best.shadowPrice * 1e-12;
        certificate.work = m_outcome.work;
        certificate.stoppedBy = m_outcome.stoppedBy;
    }

    /// The largest part of the smallest peak, in the words of the ledger.
    std::string binding() const {
        if (m_space.slotLevels().empty())
            return "states";
        const BatchTable& smallest = m_search.table(0);
        const auto [live, level] = smallest.smallest();
        const std::pair<const char*, std::int64_t> parts[] = {
            {"states", level.leastState},
            {"activations", smallest.minimumKept(live) + live},
            {"logits", smallest.base().logits + smallest.base().losses},
            {"slots", m_space.slotCount() * level.slot},
            {"reserve", m_space.request().cluster.reserveBytes()}};
        return std::max_element(std::begin(parts), std::end(parts),
                                [](const auto& a, const auto& b) { return a.second < b.second; })
            ->first;
    }

    const PlanSearch& m_search;
    const DecisionSpace& m_space;
    const SearchOutcome& m_outcome;
    std::shared_ptr<PlanResult> m_result;
    Decided m_decided;
    Reached m_reached;
};

} // namespace

std::int32_t recomputedBlocks(const PlanResult& plan) {
    std::int32_t block = -1, recomputed = 0;
    for (const PlannedOperator& planned : plan.operators) {
        const std::int32_t own = plan.request.graph->operators[index(planned.op)].block;
        recomputed += own != block && planned.recompute ? 1 : 0;
        block = own;
    }
    return recomputed;
}

PlanResultPointer assemblePlan(const PlanSearch& search, std::int64_t limitBytes, const SearchOutcome& outcome,
                               double solveMilliseconds) {
    const std::shared_ptr<PlanResult> result = Assembly(search, limitBytes, outcome).build();
    result->solveMilliseconds = solveMilliseconds;
    return result;
}

} // namespace shardscope::planner
