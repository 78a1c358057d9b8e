// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/layout/MapRows.h"

#include <algorithm>

namespace shardscope::app {

std::vector<MapRow> mapRows(const planner::PlanResult& plan) {
    std::vector<MapRow> rows;
    if (!plan.request.graph)
        return rows;
    const auto& operators = plan.request.graph->operators;
    rows.reserve(plan.operators.size());
    for (const planner::PlannedOperator& planned : plan.operators) {
        if (planned.op < 0 || static_cast<std::size_t>(planned.op) >= operators.size())
            continue;
        const contract::Operator& op = operators[static_cast<std::size_t>(planned.op)];
        MapRow row;
        row.op = planned.op;
        row.name = QString::fromStdString(op.name);
        row.block = op.block;
        row.blockName = QString::fromStdString(op.blockName);
        row.shortName = row.block >= 0 && row.name.startsWith(row.blockName + '.')
                            ? row.name.mid(row.blockName.size() + 1)
                            : row.name;
        row.placement = planned.placement;
        row.recompute = planned.recompute;
        row.pinned = planned.pinned;
        row.coalesced = planned.coalesced;
        row.memory = partsOf(planned.cost.memory);
        for (const std::int64_t bytes : row.memory)
            row.memoryBytes += bytes;
        row.computeSeconds =
            planned.cost.computeSeconds + planned.cost.recomputeSeconds + planned.cost.optimizerSeconds;
        row.exposedSeconds = planned.cost.exposedSeconds();
        row.hiddenSeconds = std::max(0.0, planned.cost.gatherSeconds + planned.cost.reduceSeconds - row.exposedSeconds);
        rows.push_back(std::move(row));
    }
    return rows;
}

namespace {

struct Block {
    std::size_t begin = 0;
    std::size_t end = 0;
    std::size_t size() const { return end - begin; }
};

std::vector<Block> blocksOf(const std::vector<MapRow>& rows) {
    std::vector<Block> blocks;
    for (std::size_t i = 0; i < rows.size();) {
        std::size_t end = i + 1;
        while (rows[i].block >= 0 && end < rows.size() && rows[end].block == rows[i].block)
            ++end;
        blocks.push_back({i, end});
        i = end;
    }
    return blocks;
}

bool looksEqual(const std::vector<MapRow>& rows, const Block& a, const Block& b) {
    if (a.size() != b.size() || rows[a.begin].block < 0 || rows[b.begin].block < 0)
        return false;
    for (std::size_t i = 0; i < a.size(); ++i) {
        const MapRow& left = rows[a.begin + i];
        const MapRow& right = rows[b.begin + i];
        if (left.placement != right.placement || left.recompute != right.recompute ||
            left.coalesced != right.coalesced || left.memory != right.memory || left.shortName != right.shortName)
            return false;
    }
    return true;
}

QString runLabel(const MapRow& first, const MapRow& last) {
    if (first.block < 0)
        return first.name;
    if (first.block == last.block)
        return first.blockName;
    const auto dot = last.blockName.lastIndexOf('.');
    return first.blockName + QChar(0x2013) + last.blockName.mid(dot + 1);
}

} // namespace

MapColumns foldColumns(const std::vector<MapRow>& rows, bool fold) {
    MapColumns result;
    const std::vector<Block> blocks = blocksOf(rows);
    for (std::size_t i = 0; i < blocks.size();) {
        std::size_t end = i + 1;
        while (fold && end < blocks.size() && looksEqual(rows, blocks[i], blocks[end]))
            ++end;
        MapGroup group;
        group.firstColumn = static_cast<std::int32_t>(result.columns.size());
        group.blocks = rows[blocks[i].begin].block >= 0 ? static_cast<std::int32_t>(end - i) : 0;
        group.label = runLabel(rows[blocks[i].begin], rows[blocks[end - 1].begin]);
        for (std::size_t place = 0; place < blocks[i].size(); ++place) {
            MapColumn column;
            column.group = static_cast<std::int32_t>(result.groups.size());
            column.rows.reserve(end - i);
            for (std::size_t block = i; block < end; ++block)
                column.rows.push_back(static_cast<std::int32_t>(blocks[block].begin + place));
            result.columns.push_back(std::move(column));
        }
        group.lastColumn = static_cast<std::int32_t>(result.columns.size()) - 1;
        result.groups.push_back(std::move(group));
        i = end;
    }
    return result;
}

std::vector<CoalescedRun> coalescedRuns(const std::vector<MapRow>& rows, const MapColumns& columns) {
    std::vector<CoalescedRun> runs;
    for (const MapGroup& group : columns.groups) {
        if (group.blocks == 0)
            continue;
        CoalescedRun run{-1, -1};
        for (std::int32_t c = group.firstColumn; c <= group.lastColumn; ++c) {
            const std::int32_t row = columns.columns[static_cast<std::size_t>(c)].rows.front();
            if (!rows[static_cast<std::size_t>(row)].coalesced)
                continue;
            run.first = run.first < 0 ? c : run.first;
            run.last = c;
        }
        if (run.first >= 0)
            runs.push_back(run);
    }
    return runs;
}

std::vector<Span> placeColumns(const MapColumns& columns, double width, double minimum, double gap) {
    const std::size_t count = columns.columns.size();
    std::vector<Span> spans(count);
    if (count == 0 || width <= 0)
        return spans;
    const auto gaps = static_cast<double>(columns.groups.size() - 1);
    if (gaps > 0)
        gap = std::min(gap, width / 3 / gaps);
    const double room = width - gaps * gap;

    // Columns that would fall under the minimum take it; the others share what is left in proportion.
    std::vector<double> widths(count, 0);
    std::vector<bool> isFixed(count, false);
    const bool canFix = minimum * static_cast<double>(count) <= room;
    for (bool changed = true; changed;) {
        changed = false;
        double weight = 0, free = room;
        for (std::size_t i = 0; i < count; ++i) {
            if (isFixed[i])
                free -= minimum;
            else
                weight += static_cast<double>(columns.columns[i].rows.size());
        }
        for (std::size_t i = 0; i < count; ++i) {
            if (isFixed[i])
                continue;
            widths[i] = weight > 0 ? free * static_cast<double>(columns.columns[i].rows.size()) / weight : 0;
            if (canFix && widths[i] < minimum - 1e-9) {
                widths[i] = minimum;
                isFixed[i] = true;
                changed = true;
            }
        }
    }
    double x = 0;
    for (std::size_t i = 0; i < count; ++i) {
        if (i > 0 && columns.columns[i].group != columns.columns[i - 1].group)
            x += gap;
        spans[i] = {x, x + widths[i]};
        x += widths[i];
    }
    return spans;
}

std::int32_t columnAt(const std::vector<Span>& spans, double x) {
    const auto after = std::upper_bound(spans.begin(), spans.end(), x,
                                        [](double value, const Span& span) { return value < span.begin; });
    if (after == spans.begin())
        return -1;
    const auto found = std::prev(after);
    if (x < found->end)
        return static_cast<std::int32_t>(found - spans.begin());
    if (after != spans.end() && after->begin - found->end <= 3)
        return static_cast<std::int32_t>(found - spans.begin());
    return -1;
}

MapScale scaleOf(const std::vector<MapRow>& rows) {
    MapScale scale;
    std::int64_t tallest = 0, tallestInBlocks = 0;
    double longestInBlocks = 0;
    for (const MapRow& row : rows) {
        tallest = std::max(tallest, row.memoryBytes);
        if (row.block >= 0)
            tallestInBlocks = std::max(tallestInBlocks, row.memoryBytes);
        if (row.block >= 0)
            longestInBlocks = std::max(longestInBlocks, row.exposedSeconds + row.hiddenSeconds);
        scale.communicationTop = std::max(scale.communicationTop, row.exposedSeconds + row.hiddenSeconds);
    }
    scale.top = tallest;
    // A vocabulary can hold as much as a dozen layers; the layers must stay readable beside it.
    if (tallestInBlocks > 0 && tallest > 2 * tallestInBlocks) {
        scale.top = tallestInBlocks * 13 / 10;
        scale.broken = true;
    }
    if (longestInBlocks > 0 && scale.communicationTop > 3 * longestInBlocks)
        scale.communicationTop = longestInBlocks * 1.3;
    return scale;
}

} // namespace shardscope::app
