// SPDX-License-Identifier: GPL-3.0-or-later
#include "runtime/contract/Placement.h"

#include <fmt/format.h>

#include <charconv>
#include <optional>
#include <vector>

namespace shardscope::contract {

namespace {

std::optional<std::int32_t> positiveInteger(std::string_view text) {
    std::int32_t value = 0;
    const auto [end, status] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (status != std::errc{} || end != text.data() + text.size() || value < 1)
        return std::nullopt;
    return value;
}

} // namespace

std::string formatPlacement(const Placement& placement) {
    std::string text;
    switch (placement.kind) {
    case PlacementKind::Replicate:
        text = "replicate";
        break;
    case PlacementKind::Keep:
        text = placement.held ? "keep-held" : "keep";
        break;
    case PlacementKind::Shard:
        text = "shard";
        if (placement.slices > 1)
            text += fmt::format(":{}", placement.slices);
        if (placement.shardedSlices < placement.slices)
            text += fmt::format(":{}", placement.shardedSlices);
        break;
    }
    if (placement.group == ShardGroup::Node)
        text += "@node";
    return text;
}

Result<Placement> parsePlacement(std::string_view text) {
    const auto wrong = [&] {
        return usageError(
            fmt::format("\"{}\" is not a placement; write replicate, keep, keep-held, shard, shard:S (S slices) or "
                        "shard:S:K (the first K of S sharded), each with @node to shard inside nodes only",
                        text));
    };
    Placement placement;
    std::string_view rest = text;
    if (rest.ends_with("@node")) {
        placement.group = ShardGroup::Node;
        rest.remove_suffix(5);
    }
    std::vector<std::string_view> fields;
    while (true) {
        const auto colon = rest.find(':');
        fields.push_back(rest.substr(0, colon));
        if (colon == std::string_view::npos)
            break;
        rest.remove_prefix(colon + 1);
    }
    if (fields[0] == "replicate" && fields.size() == 1 && placement.group == ShardGroup::World)
        return placement;
    if ((fields[0] == "keep" || fields[0] == "keep-held") && fields.size() == 1) {
        placement.held = fields[0] == "keep-held";
        placement.kind = PlacementKind::Keep;
        return placement;
    }
    if (fields[0] != "shard" || fields.size() > 3)
        return wrong();
    placement.kind = PlacementKind::Shard;
    if (fields.size() >= 2) {
        const auto slices = positiveInteger(fields[1]);
        if (!slices)
            return wrong();
        placement.slices = *slices;
        placement.shardedSlices = *slices;
    }
    if (fields.size() == 3) {
        const auto sharded = positiveInteger(fields[2]);
        if (!sharded || *sharded > placement.slices)
            return wrong();
        placement.shardedSlices = *sharded;
    }
    return placement;
}

} // namespace shardscope::contract
