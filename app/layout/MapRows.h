// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "app/layout/MemoryParts.h"
#include "planner/search/Planner.h"

#include <QString>

#include <cstdint>
#include <vector>

namespace shardscope::app {

/// One operator of a plan as the map draws it.
struct MapRow {
    std::int32_t op = 0;
    QString name;      ///< "h.3.mlp.c_fc"
    QString shortName; ///< without its block: "mlp.c_fc"
    std::int32_t block = -1;
    QString blockName; ///< "h.3"
    contract::Placement placement;
    bool recompute = false;
    bool pinned = false;
    bool coalesced = false; ///< gathered and reduced in one collective with others of its block
    MemoryParts memory{};
    std::int64_t memoryBytes = 0;
    double computeSeconds = 0; ///< with recomputation and optimizer
    double exposedSeconds = 0;
    double hiddenSeconds = 0;
};

std::vector<MapRow> mapRows(const planner::PlanResult& plan);

/// What one column of the map stands for: one operator, or the operators at the same place of equal blocks.
struct MapColumn {
    std::vector<std::int32_t> rows; ///< indices into the rows, ascending
    std::int32_t group = 0;
};

/// Neighbouring columns that belong together: a run of equal blocks, or one operator outside blocks.
struct MapGroup {
    QString label;           ///< "h.0–19", "wte"
    std::int32_t blocks = 0; ///< 0 outside blocks
    std::int32_t firstColumn = 0;
    std::int32_t lastColumn = 0;
};

struct MapColumns {
    std::vector<MapColumn> columns;
    std::vector<MapGroup> groups;
};

/// Consecutive blocks with the same operators, decisions and bytes become one group when `fold`, else each block is its
/// own group with a column per operator.
MapColumns foldColumns(const std::vector<MapRow>& rows, bool fold);

struct Span {
    double begin = 0;
    double end = 0;
    double width() const { return end - begin; }
    double center() const { return (begin + end) / 2; }
};

/// Columns `first` to `last` of one group whose operators share a collective.
struct CoalescedRun {
    std::int32_t first = 0;
    std::int32_t last = 0;
};
/// The coalesced operators of every block, from the first to the last of them; those between that are not coalesced are
/// skipped by the runs' marks.
std::vector<CoalescedRun> coalescedRuns(const std::vector<MapRow>& rows, const MapColumns& columns);

/// Places the columns on [0, width): as wide as the operators they stand for, but no column under `minimum` while that
/// fits, and `gap` between groups while that leaves two thirds of the width.
std::vector<Span> placeColumns(const MapColumns& columns, double width, double minimum, double gap);

/// The column at x, -1 before the first, after the last and in gaps wider than three pixels.
std::int32_t columnAt(const std::vector<Span>& spans, double x);

/// Top of the memory axis: the tallest bar, or less when a few bars outside the blocks dwarf the rest; those are then
/// drawn as broken.
struct MapScale {
    std::int64_t top = 0;
    bool broken = false;
    double communicationTop = 0; ///< seconds
};
MapScale scaleOf(const std::vector<MapRow>& rows);

} // namespace shardscope::app
