// SPDX-License-Identifier: GPL-3.0-or-later
#include "planner/search/BatchTable.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace shardscope::planner {

namespace {

constexpr std::size_t kComposedKept = 64; // a frontier visits few thresholds of many batches; bound what is remembered

constexpr std::size_t index(std::int32_t value) {
    return static_cast<std::size_t>(value);
}
std::int64_t toPicoseconds(double seconds) {
    return std::llround(seconds * 1e12);
}

} // namespace

BatchTable::BatchTable(const DecisionSpace& space, DecisionSpace::Batch batch) : m_space(space), m_batch(batch) {
    const PlanRequest& request = space.request();
    const auto& operators = request.graph->operators;
    m_base = contract::sizeBase(operators, request.graph->sequence, batch.samples, 1, space.ranks(), space.preset());
    if (request.mode == CostMode::Paper)
        m_base = {.logits = m_base.logits}; // the paper counts neither inputs nor communication buffers
    m_fixedBytes = m_base.total() + request.cluster.reserveBytes();

    for (std::size_t c = 0; c < space.classes().size(); ++c) {
        const OperatorClass& entry = space.classes()[c];
        const contract::Operator& op = operators[index(entry.op)];
        m_kept.push_back(
            {space.pricer().keptBytes(op, batch.samples, false), space.pricer().keptBytes(op, batch.samples, true)});
        auto& times = m_times.emplace_back();
        for (const contract::Placement& placement : entry.placements) {
            std::array<std::int64_t, 2> both{};
            for (const bool recompute : {false, true})
                both[recompute] =
                    toPicoseconds(space.pricer()
                                      .price(op, placement, situation(static_cast<std::int32_t>(c), recompute))
                                      .stepSeconds());
            times.push_back(both);
        }
    }

    const contract::LiveRegions floor = live({});
    m_liveFloor = floor.total();
    std::vector<std::int64_t> slots;
    for (const BundleGroup& group : space.groups()) {
        GroupTable table;
        table.count = static_cast<std::int32_t>(group.members.size());
        table.allowed = group.front().recomputeAllowed;
        std::int32_t block = -1;
        for (const Unit& unit : group.front().units) {
            std::vector<UnitOption> options(space.classes()[index(unit.classes.front())].placements.size());
            for (const std::int32_t c : unit.classes) {
                const OperatorClass& entry = space.classes()[index(c)];
                for (const bool recompute : {false, true})
                    table.kept[recompute] += m_kept[index(c)][recompute];
                for (std::size_t p = 0; p < options.size(); ++p) {
                    options[p].bytes += entry.bytes[p].state.total();
                    options[p].slot = std::max(options[p].slot, entry.bytes[p].slot.total());
                    for (const bool recompute : {false, true})
                        options[p].time[recompute] += m_times[index(c)][p][recompute];
                }
            }
            for (const UnitOption& option : options)
                slots.push_back(option.slot);
            block = operators[index(unit.operators.front())].block;
            table.units.push_back(std::move(options));
        }
        // A block decided operator by operator still needs the whole block's intermediates.
        if (block >= 0 && table.allowed[1])
            table.recomputeBytes = contract::recomputeBytes(operators, block, space.preset(), batch.samples);
        m_groups.push_back(std::move(table));
    }

    std::int64_t leastLive = m_liveFloor;
    std::int64_t leastSlot = 0;
    m_liveLevels.push_back(m_liveFloor);
    for (const GroupTable& group : m_groups) {
        if (group.allowed[1])
            m_liveLevels.push_back(m_liveFloor + group.recomputeBytes);
        if (!group.allowed[0])
            leastLive = std::max(leastLive, m_liveFloor + group.recomputeBytes);
        for (const std::vector<UnitOption>& unit : group.units) {
            std::int64_t least = std::numeric_limits<std::int64_t>::max();
            for (const UnitOption& option : unit)
                least = std::min(least, option.slot);
            leastSlot = std::max(leastSlot, least);
        }
    }
    slots.push_back(leastSlot);
    const auto finish = [](std::vector<std::int64_t>& levels, std::int64_t least) {
        std::sort(levels.begin(), levels.end());
        levels.erase(std::unique(levels.begin(), levels.end()), levels.end());
        levels.erase(levels.begin(), std::lower_bound(levels.begin(), levels.end(), least));
    };
    finish(m_liveLevels, leastLive);
    finish(slots, leastSlot);
    m_slotLevels = std::move(slots);
}

OperatorPricer::Situation BatchTable::situation(std::int32_t operatorClass, bool recompute) const {
    const OperatorClass& entry = m_space.classes()[index(operatorClass)];
    const auto& operators = m_space.request().graph->operators;
    OperatorPricer::Situation situation{m_batch.samples, m_batch.accumulate, recompute, entry.endsBlock, {}};
    const auto forward = [&](std::int32_t op) {
        return op < 0 ? 0.0 : m_space.pricer().forwardSeconds(operators[index(op)], m_batch.samples);
    };
    situation.neighbours = {forward(entry.previous), 2 * forward(entry.next)};
    return situation;
}

contract::LiveRegions BatchTable::live(const std::vector<bool>& recomputedSampleBlocks) const {
    return contract::sizeLive(m_space.sample(), m_space.preset(), m_batch.samples, recomputedSampleBlocks);
}

bool BatchTable::mayRecompute(const GroupTable& group, std::int64_t live) const {
    return group.allowed[1] && m_liveFloor + group.recomputeBytes <= live;
}

std::int64_t BatchTable::minimumBytes(std::int64_t live, std::int64_t slot) const {
    std::int64_t total = 0;
    for (const GroupTable& group : m_groups) {
        std::int64_t bytes = std::numeric_limits<std::int64_t>::max();
        for (const bool recompute : {false, true}) {
            if (recompute ? mayRecompute(group, live) : group.allowed[0])
                bytes = std::min(bytes, group.kept[recompute]);
        }
        for (const std::vector<UnitOption>& unit : group.units) {
            std::int64_t least = std::numeric_limits<std::int64_t>::max();
            for (const UnitOption& option : unit) {
                if (option.slot <= slot)
                    least = std::min(least, option.bytes);
            }
            bytes += least;
        }
        total += group.count * bytes;
    }
    return total;
}

std::int64_t BatchTable::smallestPeak() const {
    std::int64_t smallest = std::numeric_limits<std::int64_t>::max();
    for (const std::int64_t live : m_liveLevels) {
        for (const std::int64_t slot : m_slotLevels)
            smallest = std::min(smallest, m_fixedBytes + transientBytes(live, slot) + minimumBytes(live, slot));
    }
    return smallest;
}

BatchTable::DualValue BatchTable::dual(std::int64_t live, std::int64_t slot, double multiplier) const {
    DualValue total;
    for (const GroupTable& group : m_groups) {
        DualValue best{std::numeric_limits<double>::infinity(), 0};
        for (const bool recompute : {false, true}) {
            if (!(recompute ? mayRecompute(group, live) : group.allowed[0]))
                continue;
            DualValue sum{multiplier * static_cast<double>(group.kept[recompute]),
                          static_cast<double>(group.kept[recompute])};
            for (const std::vector<UnitOption>& unit : group.units) {
                DualValue least{std::numeric_limits<double>::infinity(), 0};
                for (const UnitOption& option : unit) {
                    const double bytes = static_cast<double>(option.bytes);
                    const double value = static_cast<double>(option.time[recompute]) + multiplier * bytes;
                    if (option.slot <= slot && (value < least.value || (value == least.value && bytes < least.bytes)))
                        least = {value, bytes};
                }
                sum.value += least.value;
                sum.bytes += least.bytes;
            }
            if (sum.value < best.value)
                best = sum;
        }
        total.value += group.count * best.value;
        total.bytes += group.count * best.bytes;
    }
    return total;
}

std::int64_t BatchTable::lowerBound(std::int64_t live, std::int64_t slot, std::int64_t capacity,
                                    double& multiplier) const {
    if (minimumBytes(live, slot) > capacity)
        return kInfeasibleTime;
    const double available = static_cast<double>(capacity);
    double bestValue = -std::numeric_limits<double>::infinity();
    const auto evaluate = [&](double guess) {
        const DualValue at = dual(live, slot, guess);
        // Rounding may have lifted the sum: stay below the true dual value.
        const double value = at.value - guess * available - 1e-12 * (std::abs(at.value) + guess * available);
        if (value > bestValue) {
            bestValue = value;
            multiplier = guess;
        }
        return at.bytes <= available;
    };
    const double guess = multiplier;
    double high = 0;
    if (!evaluate(0)) {
        // The dual is concave in the multiplier: bracket its top between a multiplier too small and one too large.
        double low = 0;
        high = guess > 0 ? guess : 1e-3;
        for (int i = 0; i < 60 && !evaluate(high); ++i) {
            low = high;
            high *= 4;
        }
        for (int i = 0; i < 24 && high - low > 1e-7 * high; ++i) {
            const double middle = low > 0 ? std::sqrt(low * high) : high / 16;
            (evaluate(middle) ? high : low) = middle;
        }
    }
    return std::max<std::int64_t>(0, static_cast<std::int64_t>(std::ceil(bestValue)));
}

std::vector<BundleChoice> BatchTable::composeGroup(const GroupTable& group, std::int64_t live, std::int64_t slot,
                                                   std::vector<KnapsackOption>& options) const {
    struct Point {
        std::int64_t bytes, time;
        std::int32_t parent, placement;
    };
    const auto before = [](const Point& a, const Point& b) {
        return a.bytes != b.bytes ? a.bytes < b.bytes : a.time < b.time;
    };
    std::vector<BundleChoice> choices;
    for (const bool recompute : {false, true}) {
        if (!(recompute ? mayRecompute(group, live) : group.allowed[0]))
            continue;
        // Minkowski sum of the units' options, keeping only Pareto points; each layer points into the one before.
        std::vector<std::vector<Point>> layers{{{group.kept[recompute], 0, -1, -1}}};
        for (const std::vector<UnitOption>& unit : group.units) {
            std::vector<Point> merged;
            for (std::size_t p = 0; p < unit.size(); ++p) {
                if (unit[p].slot > slot)
                    continue;
                const bool dominated = std::any_of(unit.begin(), unit.end(), [&](const UnitOption& other) {
                    return other.slot <= slot && other.bytes <= unit[p].bytes &&
                           other.time[recompute] <= unit[p].time[recompute] &&
                           (other.bytes < unit[p].bytes || other.time[recompute] < unit[p].time[recompute] ||
                            &other < &unit[p]);
                });
                if (dominated)
                    continue;
                std::vector<Point> shifted;
                shifted.reserve(layers.back().size());
                for (std::size_t i = 0; i < layers.back().size(); ++i)
                    shifted.push_back({layers.back()[i].bytes + unit[p].bytes,
                                       layers.back()[i].time + unit[p].time[recompute], static_cast<std::int32_t>(i),
                                       static_cast<std::int32_t>(p)});
                std::vector<Point> both(merged.size() + shifted.size());
                std::merge(merged.begin(), merged.end(), shifted.begin(), shifted.end(), both.begin(), before);
                merged = std::move(both);
            }
            std::vector<Point> pareto;
            for (const Point& point : merged) {
                if (pareto.empty() || point.time < pareto.back().time)
                    pareto.push_back(point);
            }
            layers.push_back(std::move(pareto));
        }
        for (const Point& last : layers.back()) {
            options.push_back({last.bytes, last.time});
            BundleChoice choice{recompute, std::vector<std::int32_t>(group.units.size())};
            const Point* point = &last;
            for (std::size_t u = group.units.size(); u > 0; --u) {
                choice.placements[u - 1] = point->placement;
                point = &layers[u - 1][index(point->parent)];
            }
            choices.push_back(std::move(choice));
        }
    }
    return choices;
}

std::shared_ptr<const ComposedProblem> BatchTable::compose(std::int64_t live, std::int64_t slot) const {
    const std::pair key{live, slot};
    {
        const std::lock_guard lock(m_mutex);
        if (const auto found = m_composed.find(key); found != m_composed.end())
            return found->second;
    }
    std::vector<KnapsackGroup> groups;
    std::vector<std::vector<BundleChoice>> choices;
    for (const GroupTable& group : m_groups) {
        KnapsackGroup composed{group.count, {}};
        choices.push_back(composeGroup(group, live, slot, composed.options));
        if (composed.options.empty())
            return nullptr;
        groups.push_back(std::move(composed));
    }
    auto knapsack = Knapsack::create(groups);
    if (!knapsack)
        return nullptr;
    auto problem = std::make_shared<const ComposedProblem>(std::move(*knapsack), std::move(choices));
    const std::lock_guard lock(m_mutex);
    if (m_composed.size() >= kComposedKept)
        m_composed.clear(); // whoever still solves one holds its own reference
    return m_composed.emplace(key, std::move(problem)).first->second;
}

} // namespace shardscope::planner
