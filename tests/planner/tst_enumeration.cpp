// SPDX-License-Identifier: GPL-3.0-or-later
// Full mode against an exhaustive enumerator that shares no search code: it tries every placement, coalescing,
// recomputation and accumulation, and adds memory up from the buffer tables that the runtime would allocate.
#include "planner/cost/OperatorPricer.h"
#include "planner/support/PlannerFixtures.h"
#include "runtime/contract/StepProgram.h"
#include "support/Sanitized.h"

#include <QtTest>

#include <algorithm>
#include <limits>
#include <random>
#include <set>

using namespace shardscope;
using namespace shardscope::testing;
using contract::Placement;
using contract::PlacementKind;
using contract::ShardGroup;

namespace {

struct Best {
    bool found = false;
    std::int64_t product = 0;
    std::int64_t picoseconds = 0;
    std::int64_t peak = 0;
    std::int64_t smallestPeak = std::numeric_limits<std::int64_t>::max();
    std::int64_t coalescedPlans = 0; ///< looked at
};

class Enumerator {
public:
    Enumerator(const planner::PlanRequest& request, std::vector<std::size_t> open, std::int64_t limit)
        : m_request(request), m_open(std::move(open)), m_limit(limit),
          m_preset(*contract::findPreset(request.precision)), m_pricer(request, m_preset) {
        std::vector<ShardGroup> groups{ShardGroup::World};
        if (request.cluster.nodes > 1 && request.cluster.devicesPerNode > 1)
            groups.push_back(ShardGroup::Node);
        m_choices.push_back({});
        for (const ShardGroup group : groups) {
            m_choices.push_back({PlacementKind::Keep, 1, 1, group});
            for (const std::int32_t slices : request.slices) {
                for (std::int32_t sharded = 1; sharded <= slices; ++sharded)
                    m_choices.push_back({PlacementKind::Shard, slices, sharded, group});
            }
            m_modes.push_back({PlacementKind::Keep, 1, 1, group});
            m_modes.push_back({PlacementKind::Shard, 1, 1, group});
            m_uniform.push_back({PlacementKind::Keep, 1, 1, group});
            m_uniform.push_back({PlacementKind::Keep, 1, 1, group, true});
            for (const std::int32_t slices : request.slices)
                m_uniform.push_back({PlacementKind::Shard, slices, slices, group});
        }
    }

    Best run(const std::vector<std::pair<std::int64_t, std::int64_t>>& batches) {
        const auto& operators = m_request.graph->operators;
        const std::int32_t blocks = m_request.graph->blockCount();
        for (const auto& [samples, accumulate] : batches) {
            m_samples = samples;
            m_accumulate = accumulate;
            for (int mask = 0; mask < (1 << blocks); ++mask) {
                m_decisions.assign(operators.size(), {});
                for (std::size_t i = 0; i < operators.size(); ++i)
                    m_decisions[i].recompute = operators[i].block >= 0 && ((mask >> operators[i].block) & 1) != 0;
                chooseModes(0);
            }
        }
        return m_best;
    }

private:
    bool isOpen(std::size_t op) const { return std::find(m_open.begin(), m_open.end(), op) != m_open.end(); }

    /// Every block: its open operators one by one, or all alike in one collective.
    void chooseModes(std::int32_t block) {
        if (block == m_request.graph->blockCount()) {
            place(0);
            return;
        }
        m_blockMode.resize(static_cast<std::size_t>(block) + 1);
        m_blockMode[static_cast<std::size_t>(block)] = nullptr;
        const bool isOpenBlock = std::any_of(m_open.begin(), m_open.end(), [&](std::size_t op) {
            return m_request.graph->operators[op].block == block;
        });
        if (m_request.granularity == planner::Granularity::Block && isOpenBlock)
            placeAlike(block);
        else
            chooseModes(block + 1);
        const auto& operators = m_request.graph->operators;
        std::int64_t members = 0;
        for (const std::size_t op : m_open)
            members += operators[op].block == block ? 1 : 0;
        if (members < 2)
            return;
        for (const Placement& mode : m_modes) {
            m_blockMode.resize(static_cast<std::size_t>(block) + 1);
            m_blockMode[static_cast<std::size_t>(block)] = &mode;
            for (const std::size_t op : m_open) {
                if (operators[op].block != block)
                    continue;
                m_decisions[op].placement = mode;
                m_decisions[op].coalesced = true;
            }
            chooseModes(block + 1);
            for (const std::size_t op : m_open) {
                if (operators[op].block == block)
                    m_decisions[op].coalesced = false;
            }
        }
    }

    /// The open operators of a block all the same, each with collectives of its own.
    void placeAlike(std::int32_t block) {
        const auto& operators = m_request.graph->operators;
        for (const Placement& mode : m_uniform) {
            if (mode.held && m_accumulate == 1)
                continue;
            for (const std::size_t op : m_open) {
                if (operators[op].block != block)
                    continue;
                Placement& placement = m_decisions[op].placement;
                placement = mode;
                placement.slices = placement.shardedSlices =
                    static_cast<std::int32_t>(std::min<std::int64_t>(mode.slices, operators[op].maximumSlices()));
                m_isAlike.insert(op);
            }
            chooseModes(block + 1);
        }
        std::erase_if(m_isAlike, [&](std::size_t op) { return operators[op].block == block; });
    }

    void place(std::size_t next) {
        if (next == m_open.size()) {
            evaluate();
            return;
        }
        const auto& operators = m_request.graph->operators;
        const std::size_t op = m_open[next];
        if (m_decisions[op].coalesced || m_isAlike.contains(op)) {
            place(next + 1);
            return;
        }
        const auto set = [&](const Placement& placement) {
            m_decisions[op].placement = placement;
            for (std::size_t i = 0; i < operators.size(); ++i) {
                if (operators[i].tiedTo == operators[op].name)
                    m_decisions[i].placement = placement;
            }
            place(next + 1);
        };
        for (const Placement& placement : m_choices) {
            set(placement);
            if (placement.kind == PlacementKind::Keep && m_accumulate > 1) {
                Placement held = placement;
                held.held = true;
                set(held);
            }
        }
    }

    planner::OperatorPricer::Neighbours besideBlock(std::int32_t block) const {
        const auto& operators = m_request.graph->operators;
        planner::OperatorPricer::Neighbours beside;
        const auto forward = [&](std::size_t op) { return m_pricer.forwardSeconds(operators[op], m_samples); };
        for (std::size_t i = 0; i < operators.size(); ++i) {
            if (i + 1 < operators.size() && operators[i].block != block && operators[i + 1].block == block) {
                for (std::size_t j = 0; j <= i; ++j) {
                    if (j == i || (operators[i].block >= 0 && operators[j].block == operators[i].block))
                        beside.forwardSeconds += forward(j);
                }
            }
            if (i > 0 && operators[i].block != block && operators[i - 1].block == block) {
                for (std::size_t j = i; j < operators.size(); ++j) {
                    if (j == i || (operators[i].block >= 0 && operators[j].block == operators[i].block))
                        beside.backwardSeconds += 2 * forward(j);
                }
            }
        }
        return beside;
    }

    std::int64_t stepTime() const {
        const auto& operators = m_request.graph->operators;
        std::int64_t time = 0;
        for (std::size_t i = 0; i < operators.size(); ++i) {
            planner::OperatorPricer::Situation situation;
            situation.samples = m_samples;
            situation.accumulate = m_accumulate;
            situation.recompute = m_decisions[i].recompute;
            situation.endsBlock =
                operators[i].block >= 0 && (i + 1 == operators.size() || operators[i + 1].block != operators[i].block);
            if (i > 0)
                situation.neighbours.forwardSeconds = m_pricer.forwardSeconds(operators[i - 1], m_samples);
            if (i + 1 < operators.size())
                situation.neighbours.backwardSeconds = 2 * m_pricer.forwardSeconds(operators[i + 1], m_samples);
            planner::PlacementFacts facts = m_pricer.facts(operators[i], m_decisions[i].placement);
            if (m_decisions[i].coalesced)
                facts.exchange = {};
            time += std::llround(
                m_pricer.stepSeconds(facts, m_pricer.forwardSeconds(operators[i], m_samples), situation) * 1e12);
        }
        for (std::int32_t block = 0; block < m_request.graph->blockCount(); ++block) {
            std::vector<planner::OperatorPricer::Member> members;
            for (std::size_t i = 0; i < operators.size(); ++i) {
                if (operators[i].block == block && m_decisions[i].coalesced)
                    members.push_back({operators[i], m_decisions[i].placement});
            }
            if (!members.empty())
                time +=
                    std::llround(m_pricer.priceCoalesced(m_pricer.coalesce(members), m_accumulate, besideBlock(block))
                                     .exposedSeconds() *
                                 1e12);
        }
        return time;
    }

    void evaluate() {
        const auto& operators = m_request.graph->operators;
        contract::Training training;
        training.sequence = m_request.graph->sequence;
        training.microBatch = m_samples;
        training.accumulate = m_accumulate;
        QVERIFY(!contract::findCoalescingFault(operators, m_decisions));
        m_best.coalescedPlans +=
            std::any_of(m_decisions.begin(), m_decisions.end(), [](const auto& d) { return d.coalesced; }) ? 1 : 0;
        const contract::StepProgram program =
            contract::buildStepProgram(operators, m_decisions, m_request.prefetchDepth);
        const std::int64_t peak =
            contract::buildBufferTable({operators, m_decisions, m_request.cluster.devices(),
                                        m_request.cluster.devicesPerNode, m_preset, training, m_request.prefetchDepth},
                                       program)
                .totalBytes();
        m_best.smallestPeak = std::min(m_best.smallestPeak, peak);
        if (peak > m_limit)
            return;
        const std::int64_t time = stepTime();
        const std::int64_t product = m_samples * m_accumulate;
        const auto mine = static_cast<long double>(product) * static_cast<long double>(m_best.picoseconds);
        const auto theirs = static_cast<long double>(m_best.product) * static_cast<long double>(time);
        if (!m_best.found || mine > theirs || (mine == theirs && peak < m_best.peak)) {
            m_best.found = true;
            m_best.product = product;
            m_best.picoseconds = time;
            m_best.peak = peak;
        }
    }

    const planner::PlanRequest& m_request;
    std::vector<std::size_t> m_open;
    std::vector<Placement> m_choices;
    std::vector<Placement> m_modes;
    std::vector<Placement> m_uniform{{}}; ///< of a whole block
    std::set<std::size_t> m_isAlike;      ///< operators placed with their blocks
    std::vector<const Placement*> m_blockMode;
    std::int64_t m_limit;
    contract::Preset m_preset;
    planner::OperatorPricer m_pricer;
    std::int64_t m_samples = 1;
    std::int64_t m_accumulate = 1;
    std::vector<contract::OperatorDecision> m_decisions;
    Best m_best;
};

} // namespace

class TestEnumeration : public QObject {
    Q_OBJECT

private slots:
    void everySmallGraphEqualsExhaustiveEnumeration_data() {
        QTest::addColumn<bool>("byBlock");
        QTest::newRow("operator by operator") << false;
        QTest::newRow("block by block") << true;
    }
    void everySmallGraphEqualsExhaustiveEnumeration() {
        QFETCH(bool, byBlock);
        std::mt19937_64 random(20240607);
        const auto pick = [&](std::int64_t low, std::int64_t high) {
            return std::uniform_int_distribution<std::int64_t>(low, high)(random);
        };
#ifdef SHARDSCOPE_SANITIZED
        constexpr int kCases = 150; // ten times as slow
#else
        constexpr int kCases = 500;
#endif
        int feasible = 0, infeasible = 0, coalesced = 0, recomputed = 0, accumulated = 0, node = 0, tied = 0, held = 0;
        std::int64_t coalescedLookedAt = 0;
        for (int n = 0; n < kCases; ++n) {
            const std::int64_t layers = n % 3 == 0 ? 2 : 1;
            planner::PlanRequest request = smallRequest(random, layers);
            if (n % 2 == 0) {
                request.cluster.nodes = 2;
                request.cluster.devicesPerNode = pick(2, 3);
                request.cluster.between = {request.cluster.inside.latencySeconds * static_cast<double>(pick(1, 8)),
                                           request.cluster.inside.bytesPerSecond / static_cast<double>(pick(1, 20))};
            }
            request.granularity = byBlock ? planner::Granularity::Block : planner::Granularity::Operator;
            const auto& operators = request.graph->operators;
            // Leave a few operators open; the others are pinned to replicate so that enumeration ends.
            std::vector<std::size_t> open;
            for (std::size_t i = 0; i < operators.size(); ++i) {
                if (!operators[i].isTied() && operators[i].kind != contract::OperatorKind::Norm &&
                    operators[i].name != "wpe")
                    open.push_back(i);
            }
            std::shuffle(open.begin(), open.end(), random);
            open.resize(request.cluster.nodes > 1 ? 2 : 3);
            std::sort(open.begin(), open.end());
            for (std::size_t i = 0; i < operators.size(); ++i) {
                const std::size_t owner = operators[i].isTied() ? 0 : i;
                if (std::find(open.begin(), open.end(), owner) == open.end())
                    request.pins.push_back({operators[i].name, Placement{}});
            }
            std::vector<std::pair<std::int64_t, std::int64_t>> batches;
            if (pick(0, 1) == 1) { // the global batch is given, micro-batch x accumulation chosen
                const std::int64_t each = pick(1, 6);
                request.globalBatch = each * request.cluster.devices();
                request.accumulate = 0;
                for (std::int64_t samples = 1; samples <= each; ++samples) {
                    if (each % samples == 0)
                        batches.emplace_back(samples, each / samples);
                }
            } else {
                request.microBatch = pick(1, 4);
                request.accumulate = pick(1, 3);
                batches.emplace_back(request.microBatch, request.accumulate);
            }
            const auto planner = planner::Planner::create(request);
            QVERIFY2(planner.has_value(), planner ? "" : planner.error().message.c_str());
            const std::int64_t smallest = (*planner)->solve(0)->smallestFeasibleBytes;
            // Half of them so tight that recomputation is needed.
            const std::int64_t limit = smallest + pick(-smallest / 20, n % 4 < 2 ? smallest / 10 : smallest);
            const Best best = Enumerator(request, open, limit).run(batches);
            if (QTest::currentTestFailed())
                return;
            QCOMPARE(smallest, best.smallestPeak);
            coalescedLookedAt += best.coalescedPlans;
            const auto found = (*planner)->solve(limit);
            QCOMPARE(found->feasible, best.found);
            if (!best.found) {
                ++infeasible;
                continue;
            }
            ++feasible;
            QVERIFY(found->certificate.provenOptimal);
            const double rate = static_cast<double>(best.product * request.cluster.devices()) /
                                (static_cast<double>(best.picoseconds) * 1e-12);
            QVERIFY2(std::abs(found->samplesPerSecond - rate) <= 1e-12 * rate,
                     qPrintable(QString("case %1: %2 samples/s found, %3 enumerated")
                                    .arg(n)
                                    .arg(found->samplesPerSecond, 0, 'g', 15)
                                    .arg(rate, 0, 'g', 15)));
            QCOMPARE(found->peakBytes, best.peak);
            const auto any = [&](auto predicate) {
                return std::any_of(found->operators.begin(), found->operators.end(), predicate) ? 1 : 0;
            };
            coalesced += any([](const auto& op) { return op.coalesced; });
            recomputed += any([](const auto& op) { return op.recompute; });
            node += any([](const auto& op) { return op.placement.group == ShardGroup::Node; });
            held += any([](const auto& op) { return op.placement.held; });
            accumulated += found->training.accumulate > 1 ? 1 : 0;
            tied += operators.back().isTied() ? 1 : 0;
        }
        // Every decision must have been worth taking somewhere, or this test would not test it.
        qInfo("feasible %d, infeasible %d; optimal plans with coalescing %d, recomputation %d, node groups %d, held "
              "gradients %d, accumulation %d, tied weights %d; %lld coalesced plans enumerated",
              feasible, infeasible, coalesced, recomputed, node, held, accumulated, tied,
              static_cast<long long>(coalescedLookedAt));
        QVERIFY(feasible > kCases / 2 && infeasible > 5 && coalesced > 10 && recomputed > kCases / 50 && node > 10 &&
                held > 2 && accumulated > 20 && tied > 50);
    }
};

QTEST_APPLESS_MAIN(TestEnumeration)
#include "tst_enumeration.moc"
