// SPDX-License-Identifier: GPL-3.0-or-later
// The search methods of OSDP beside ours on the same instances, as layers grow:
//   depth-first   the paper's search (IJCAI 2023, section 3.3): operators in order, each replicated or sharded; a
//   branch
//                 ends when the memory chosen so far exceeds the limit. Exact, exponential; stopped after a number of
//                 nodes, which is then printed with ">".
//   programme     the released code's dynamic programme: per layer one of four strategies (attention and feed-forward
//                 replicated or sharded), memory in whole MiB cut off per layer, least time for each MiB of the limit.
// One batch size; both repeat everything for each further one. The limit lies halfway between all sharded and all
// replicated; the slot of the largest sharded operator is taken off the limit for everyone.
#include "planner/search/AbstractProblem.h"
#include "runtime/contract/Bytes.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

using namespace shardscope;

namespace {

constexpr double kRanks = 8;
constexpr double kLatencySeconds = 9e-5; // 8x-titan-pcie3
constexpr double kSecondsPerByte = 2.5e-10;
constexpr std::int64_t kMostNodes = 100'000'000;

double milliseconds(std::chrono::steady_clock::time_point from) {
    return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - from).count();
}

struct Choice {
    std::int64_t bytes;
    std::int64_t nanoseconds;
};
/// Replicated and sharded, as the paper prices them: fp32, 16 bytes of state a parameter.
using Item = std::array<Choice, 2>;

Item priceItem(double parameters) {
    const double phase = (kRanks - 1) * (kLatencySeconds + 4 * parameters / kRanks * kSecondsPerByte);
    return {Choice{std::llround(16 * parameters), std::llround(2 * phase * 1e9)},
            Choice{std::llround(16 * parameters / kRanks), std::llround(3 * phase * 1e9)}};
}

/// Attention and feed-forward of each layer. Widths differ from layer to layer where `inconsistent`.
std::vector<Item> makeItems(int layers, bool inconsistent) {
    std::vector<Item> items;
    for (int layer = 0; layer < layers; ++layer) {
        const double hidden = inconsistent ? 1024 + 64 * (layer % 16) : 1536;
        items.push_back(priceItem(4 * hidden * hidden + 4 * hidden));
        items.push_back(priceItem(8 * hidden * hidden + 5 * hidden));
    }
    return items;
}

struct Outcome {
    bool finished = true;
    std::int64_t nanoseconds = std::numeric_limits<std::int64_t>::max();
    std::int64_t bytes = 0;
    std::int64_t nodes = 0;
    double milliseconds = 0;
};

class DepthFirst {
public:
    DepthFirst(const std::vector<Item>& items, std::int64_t capacity) : m_items(items), m_capacity(capacity) {}

    Outcome run() {
        const auto begin = std::chrono::steady_clock::now();
        visit(0, 0, 0);
        m_outcome.milliseconds = milliseconds(begin);
        return m_outcome;
    }

private:
    void visit(std::size_t item, std::int64_t bytes, std::int64_t nanoseconds) {
        if (++m_outcome.nodes > kMostNodes) {
            m_outcome.finished = false;
            return;
        }
        if (bytes > m_capacity)
            return;
        if (item == m_items.size()) {
            if (nanoseconds < m_outcome.nanoseconds) {
                m_outcome.nanoseconds = nanoseconds;
                m_outcome.bytes = bytes;
            }
            return;
        }
        for (const Choice& choice : m_items[item]) {
            visit(item + 1, bytes + choice.bytes, nanoseconds + choice.nanoseconds);
            if (!m_outcome.finished)
                return;
        }
    }

    const std::vector<Item>& m_items;
    std::int64_t m_capacity;
    Outcome m_outcome;
};

Outcome runProgramme(const std::vector<Item>& items, std::int64_t capacity) {
    const auto begin = std::chrono::steady_clock::now();
    const auto limit = static_cast<std::size_t>(capacity / contract::kMiB);
    const std::size_t layers = items.size() / 2;
    constexpr double kNever = std::numeric_limits<double>::infinity();
    Outcome outcome;
    std::vector<double> best(limit + 1, 0);
    std::vector<std::vector<std::int8_t>> taken(layers, std::vector<std::int8_t>(limit + 1, -1));
    const auto strategy = [&](std::size_t layer, int s) {
        const Choice& attention = items[2 * layer][static_cast<std::size_t>(s & 1)];
        const Choice& feedForward = items[2 * layer + 1][static_cast<std::size_t>(s >> 1)];
        return Choice{attention.bytes + feedForward.bytes, attention.nanoseconds + feedForward.nanoseconds};
    };
    for (std::size_t layer = 0; layer < layers; ++layer) {
        std::vector<double> next(limit + 1, kNever);
        for (std::size_t memory = 0; memory <= limit; ++memory) {
            for (int s = 0; s < 4; ++s) {
                ++outcome.nodes;
                const Choice choice = strategy(layer, s);
                const auto cut = static_cast<std::size_t>(choice.bytes / contract::kMiB);
                if (cut > memory)
                    continue;
                const double value = best[memory - cut] + static_cast<double>(choice.nanoseconds);
                if (value < next[memory]) {
                    next[memory] = value;
                    taken[layer][memory] = static_cast<std::int8_t>(s);
                }
            }
        }
        best = std::move(next);
    }
    outcome.finished = best[limit] < kNever;
    if (outcome.finished) {
        outcome.nanoseconds = 0;
        std::size_t memory = limit;
        for (std::size_t layer = layers; layer-- > 0;) {
            const Choice choice = strategy(layer, taken[layer][memory]);
            outcome.nanoseconds += choice.nanoseconds;
            outcome.bytes += choice.bytes;
            memory -= static_cast<std::size_t>(choice.bytes / contract::kMiB);
        }
    }
    outcome.milliseconds = milliseconds(begin);
    return outcome;
}

bool compare(int layers, bool inconsistent) {
    const std::vector<Item> items = makeItems(layers, inconsistent);
    planner::AbstractProblem problem;
    std::int64_t least = 0;
    std::int64_t most = 0;
    for (const Item& item : items) {
        most += item[0].bytes;
        least += item[1].bytes;
        problem.operators.push_back(
            {"x",
             {{"replicate", item[0].bytes, 0, item[0].nanoseconds}, {"shard", item[1].bytes, 0, item[1].nanoseconds}}});
    }
    const std::int64_t capacity = least + (most - least) / 2;
    problem.limitBytes = capacity;
    const auto ours = planner::solveAbstractProblem(problem);
    if (!ours || !ours->feasible) {
        fmt::print(stderr, "{} layers: our solver found nothing\n", layers);
        return false;
    }
    const Outcome search = DepthFirst(items, capacity).run();
    const Outcome programme = runProgramme(items, capacity);
    const double optimum = static_cast<double>(ours->nanoseconds);
    const auto percent = [&](const Outcome& outcome) {
        return (static_cast<double>(outcome.nanoseconds) / optimum - 1) * 100;
    };
    const double beyond = static_cast<double>(programme.bytes - capacity) / static_cast<double>(contract::kMiB);
    const std::string quality = search.nanoseconds == std::numeric_limits<std::int64_t>::max()
                                    ? "none"
                                    : fmt::format("{:+.3f}", percent(search));
    fmt::print("{:<12} {:>6} {:>9.3f} {:>7} | {:>12} {:>10.1f} {:>9} | {:>11} {:>9.1f} {:>9} {:>10}\n",
               inconsistent ? "inconsistent" : "equal", layers, ours->solveMilliseconds,
               ours->provenOptimal ? "proven" : "open",
               fmt::format("{}{}", search.finished ? "" : ">", search.finished ? search.nodes : kMostNodes),
               search.milliseconds, quality, programme.nodes, programme.milliseconds,
               programme.finished ? fmt::format("{:+.3f}", percent(programme)) : "none",
               programme.finished ? fmt::format("{:+.2f}", beyond) : "-");
    // Nobody within the limit may be better than a proven optimum.
    return !ours->provenOptimal || !search.finished || search.nanoseconds == ours->nanoseconds;
}

} // namespace

int main() {
    fmt::print("{:<12} {:>6} {:>9} {:>7} | {:>12} {:>10} {:>9} | {:>11} {:>9} {:>9} {:>10}\n", "", "", "ours", "",
               "depth-first", "", "% from", "programme", "", "% from", "MiB beyond");
    fmt::print("{:<12} {:>6} {:>9} {:>7} | {:>12} {:>10} {:>9} | {:>11} {:>9} {:>9} {:>10}\n", "layers", "count", "ms",
               "", "nodes", "ms", "optimum", "steps", "ms", "optimum", "the limit");
    bool agree = true;
    for (const bool inconsistent : {false, true}) {
        for (const int layers : {4, 6, 8, 10, 12, 16, 24, 32, 48})
            agree = compare(layers, inconsistent) && agree;
    }
    if (!agree)
        fmt::print(stderr, "the depth-first search and our optimum differ\n");
    return agree ? 0 : 1;
}
