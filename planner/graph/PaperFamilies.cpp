// SPDX-License-Identifier: GPL-3.0-or-later
#include "planner/graph/PaperFamilies.h"

#include "planner/graph/NetworkBuilder.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace shardscope::planner {

using contract::OperatorRole;
using contract::Result;
using contract::usageError;
using Norm = NetworkBuilder::Norm;

namespace {

constexpr std::int64_t kHeadDim = 64;

struct Usual {
    std::string_view name;
    std::int64_t layers;
    std::vector<std::int64_t> hidden;
};
const std::array<Usual, 3>& usualShapes() {
    static const std::array<Usual, 3> shapes{Usual{"narrow-deep", 96, {1024}}, Usual{"wide-shallow", 4, {8192}},
                                             Usual{"inconsistent", 24, {1024, 2048, 4096}}};
    return shapes;
}

contract::Architecture architectureOf(const PaperFamily& family) {
    contract::Architecture a;
    a.family = "gpt2";
    a.layers = family.layers;
    a.hidden = family.hidden.front();
    a.heads = a.kvHeads = a.hidden / kHeadDim;
    a.headDim = kHeadDim;
    a.intermediate = 4 * a.hidden;
    a.vocabulary = family.vocabulary;
    a.positions = family.positions;
    a.attentionBias = a.attentionOutputBias = a.mlpBias = true;
    return a;
}

void addBlock(NetworkBuilder& builder, std::int64_t hidden) {
    NetworkBuilder::Attention attention;
    attention.heads = attention.kvHeads = hidden / kHeadDim;
    attention.headDim = kHeadDim;
    builder.norm("ln_1", hidden, Norm::LayerNorm);
    builder.fusedAttention("attn.c_attn", "attn.c_proj", hidden, attention, true, true);
    builder.norm("ln_2", hidden, Norm::LayerNorm);
    builder.mlp("mlp.c_fc", "mlp.c_proj", hidden, 4 * hidden, true);
}

std::vector<contract::Operator> lowerInconsistent(const PaperFamily& family, std::int64_t sequence, bool& tooLarge) {
    NetworkBuilder builder(sequence);
    const auto parts = static_cast<std::int64_t>(family.hidden.size());
    builder.embedding("wte", family.vocabulary, family.hidden.front()).role = OperatorRole::TokenEmbedding;
    builder.embedding("wpe", family.positions, family.hidden.front()).role = OperatorRole::PositionEmbedding;
    std::int64_t layer = 0;
    for (std::int64_t part = 0; part < parts && !builder.tooLarge(); ++part) {
        const std::int64_t hidden = family.hidden[static_cast<std::size_t>(part)];
        if (part > 0)
            builder.linear(fmt::format("widen.{}", part), hidden, family.hidden[static_cast<std::size_t>(part - 1)],
                           false);
        for (; layer < (part + 1) * family.layers / parts; ++layer) {
            builder.enterBlock(fmt::format("h.{}", layer));
            addBlock(builder, hidden);
        }
        builder.leaveBlock();
    }
    builder.norm("ln_f", family.hidden.back(), Norm::LayerNorm).role = OperatorRole::FinalNorm;
    builder.linear("lm_head", family.vocabulary, family.hidden.back(), false).role = OperatorRole::Head;
    tooLarge = builder.tooLarge();
    return builder.take();
}

Result<PaperFamily> complete(PaperFamily family) {
    const auto* usual = std::find_if(usualShapes().begin(), usualShapes().end(),
                                     [&](const Usual& shape) { return shape.name == family.name; });
    if (usual == usualShapes().end())
        return usageError(fmt::format("--family {}: is unknown; there are {}", family.name, paperFamilyNames()));
    if (family.layers == 0)
        family.layers = usual->layers;
    if (family.hidden.empty())
        family.hidden = usual->hidden;
    if (family.name != "inconsistent" && family.hidden.size() != 1)
        return usageError(fmt::format("--hidden: {} has one width; several are for inconsistent", family.name));
    if (family.layers < static_cast<std::int64_t>(family.hidden.size()) || family.layers > (1 << 14))
        return usageError(
            fmt::format("--layers {}: must be from {} to {}", family.layers, family.hidden.size(), 1 << 14));
    for (const std::int64_t hidden : family.hidden) {
        if (hidden < kHeadDim || hidden % kHeadDim != 0 || hidden > (1 << 20))
            return usageError(
                fmt::format("--hidden {}: must be a multiple of {}, at most {}", hidden, kHeadDim, 1 << 20));
    }
    if (family.vocabulary < 1 || family.vocabulary > (1 << 26) || family.positions < 1 || family.positions > (1 << 24))
        return usageError("--vocabulary and --positions: must be positive and at most 2^26 and 2^24");
    return family;
}

} // namespace

std::string paperFamilyNames() {
    std::string list;
    for (const Usual& shape : usualShapes())
        list += fmt::format("{}{}", list.empty() ? "" : ", ", shape.name);
    return list;
}

Result<GraphPointer> makePaperFamily(const PaperFamily& wanted, std::int64_t sequence) {
    const auto family = complete(wanted);
    if (!family)
        return tl::unexpected(family.error());
    auto graph = std::make_shared<Graph>();
    graph->sequence = sequence == 0 ? std::min<std::int64_t>(family->positions, 4096) : sequence;
    graph->maximumSequence = family->positions;
    if (graph->sequence < 1 || graph->sequence > family->positions)
        return usageError(fmt::format("--sequence {}: is outside 1..{}", sequence, family->positions));
    graph->name = fmt::format("{}-{}x{}", family->name, family->layers, fmt::join(family->hidden, "-"));
    graph->title = fmt::format("{}, {} layers of {}", family->name, family->layers, fmt::join(family->hidden, ", "));
    if (family->hidden.size() == 1) {
        graph->architecture = architectureOf(*family);
        graph->family = graph->architecture->family;
        auto operators = contract::lowerArchitecture(*graph->architecture, graph->sequence);
        if (!operators)
            return usageError(operators.error().message);
        graph->operators = std::move(*operators);
        return GraphPointer(std::move(graph));
    }
    graph->family = "inconsistent";
    graph->lower = [family = *family](std::int64_t tokens) -> Result<std::vector<contract::Operator>> {
        bool tooLarge = false;
        auto operators = lowerInconsistent(family, tokens, tooLarge);
        if (tooLarge)
            return usageError("the sizes make a network that is too large to plan");
        return operators;
    };
    auto operators = graph->lower(graph->sequence);
    if (!operators)
        return tl::unexpected(operators.error());
    graph->operators = std::move(*operators);
    return GraphPointer(std::move(graph));
}

} // namespace shardscope::planner
